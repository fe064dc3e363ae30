'use strict'

// What the kernel tells of the surroundings of this process, by which a missing layer can be explained: proc(5), and
// the marks that container programs leave. Nothing here fails: what cannot be read is not known, and is `null`.

const fs = require('node:fs')

/**
 * @typedef {object} Surroundings
 * @property {string[] | null} securityModules those that the kernel started with
 * @property {boolean | null} filtered whether a filter on system calls is around this process already
 * @property {string | null} profile the AppArmor profile or SELinux context of this process
 * @property {string | null} container what kind of container this process is in, as far as it shows
 * @property {'allowed' | 'restricted' | 'forbidden' | null} userNamespaces for an ordinary user; `restricted`: AppArmor
 *   allows them to some programs only
 */

/**
 * @param {string} path
 * @returns {string | null}
 */
function read(path) {
  try {
    return fs.readFileSync(path, 'utf8').replaceAll('\0', '').trim()
  } catch {
    return null
  }
}

/** @returns {string | null} */
function container() {
  if (fs.existsSync('/.dockerenv')) return 'docker'
  if (fs.existsSync('/run/.containerenv')) return 'podman'
  // systemd-nspawn and lxc leave their name here.
  const named = read('/run/systemd/container')
  if (named) return named
  const groups = read('/proc/1/cgroup') ?? ''
  return /docker|kubepods|containerd|lxc/.exec(groups)?.[0] ?? null
}

/** @returns {Surroundings['userNamespaces']} */
function userNamespaces() {
  const most = read('/proc/sys/user/max_user_namespaces')
  if (most === null) return null
  // A switch that Debian's and Ubuntu's kernels have.
  if (most === '0' || read('/proc/sys/kernel/unprivileged_userns_clone') === '0') return 'forbidden'
  return read('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1' ? 'restricted' : 'allowed'
}

/** @returns {Surroundings} */
function surroundings() {
  const mode = /^Seccomp:\s*(\d)/m.exec(read('/proc/self/status') ?? '')?.[1]
  return {
    securityModules: read('/sys/kernel/security/lsm')?.split(',') ?? null,
    filtered: mode === undefined ? null : mode !== '0',
    profile: read('/proc/self/attr/current') || null,
    container: container(),
    userNamespaces: userNamespaces(),
  }
}

module.exports = { surroundings }
