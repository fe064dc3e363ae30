'use strict'

// What may enter a bundle: nothing that the child could not have read itself, because the bundler reads with the
// caller's rights. Decides by real paths and reads only names of directories and manifests of packages; never fails:
// what cannot be looked at is not let in. Source of the rule: contract/sandbox.md, "Bundling", "the bundler is no way
// out". A real path may enter where it is at or within
//   1. the build root;
//   2. a read root;
//   3. sallyport's own `runtime/`;
//   4. the package of a trusted module;
//   5. a package found in a `node_modules` of a directory above the build root, wherever its link leads;
//   6. a package that a link in the build root's own `node_modules` leads to, where that is at or within the workspace
//      root or a `node_modules` of a directory above.

const fs = require('node:fs/promises')
const path = require('node:path')

const { RUNTIME_DIRECTORY } = require('../sandbox/runtime-modules')
const { kindOf, nearestPackage, packageOfModule, withAncestors } = require('./packages')
const { readBounded } = require('./read')

/** No manifest that a person wrote is larger, in bytes. */
const LARGEST_MANIFEST = 1024 * 1024

/**
 * @typedef {object} Containment
 * @property {string} root the canonical build root
 * @property {(realPath: string) => Promise<boolean>} allows whether a file may enter the bundle
 * @property {(realPath: string) => Promise<boolean>} allowsConfiguration whether a `tsconfig.json`, or what it extends,
 *   may be used: also where the workspace keeps the one its packages share, because only compiler options come of it
 */

/**
 * @param {string} root
 * @param {string} target both canonical
 * @returns {boolean} whether the target is at or within the root
 */
function isWithin(root, target) {
  return target === root || target.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
}

/**
 * @param {string} absolute
 * @returns {Promise<string | undefined>}
 */
function realPathOf(absolute) {
  return fs.realpath(absolute).catch(() => undefined)
}

/**
 * @param {string[]} paths
 * @returns {Promise<string[]>}
 */
async function realPathsOf(paths) {
  return (await Promise.all(paths.map(realPathOf))).filter((each) => each !== undefined)
}

/**
 * @param {string} directory
 * @returns {Promise<boolean>} whether a workspace of packages begins here
 */
async function isWorkspaceRoot(directory) {
  if ((await kindOf(path.join(directory, 'pnpm-workspace.yaml'))) === 'file') return true
  const manifest = path.join(directory, 'package.json')
  if ((await kindOf(manifest)) !== 'file') return false
  try {
    const content = JSON.parse(await readBounded(manifest, LARGEST_MANIFEST))
    return content !== null && typeof content === 'object' && content.workspaces !== undefined
  } catch {
    return false
  }
}

/**
 * @param {string[]} directories nearest first
 * @returns {Promise<string | undefined>}
 */
async function findWorkspaceRoot(directories) {
  for (const directory of directories) {
    if (await isWorkspaceRoot(directory)) return directory
  }
  return undefined
}

/**
 * @param {string} modulesDirectory a `node_modules`
 * @returns {Promise<string[]>} the real paths that its packages which are links lead to
 */
async function linkedPackages(modulesDirectory) {
  /** @type {(directory: string) => Promise<import('node:fs').Dirent[]>} */
  const list = (directory) => fs.readdir(directory, { withFileTypes: true }).catch(() => [])
  /** @type {string[]} */
  const links = []
  for (const entry of await list(modulesDirectory)) {
    if (entry.name.startsWith('.')) continue
    const absolute = path.join(modulesDirectory, entry.name)
    if (entry.name.startsWith('@')) {
      const scoped = await list(absolute)
      const all = entry.isSymbolicLink() ? scoped : scoped.filter((each) => each.isSymbolicLink())
      links.push(...all.map((each) => path.join(absolute, each.name)))
    } else if (entry.isSymbolicLink()) {
      links.push(absolute)
    }
  }
  return realPathsOf(links)
}

/**
 * Not every file below a `node_modules` is in a package: caches and lock files of package managers are not.
 * @param {string} modulesDirectory
 * @param {string} target within it
 * @returns {Promise<boolean>}
 */
async function isInPackage(modulesDirectory, target) {
  const segments = target.split(path.sep)
  const [first = '', ...rest] = segments.slice(segments.lastIndexOf('node_modules') + 1)
  const named = segments.includes('node_modules') && first !== '' && !first.startsWith('.')
  if (named && rest.length >= (first.startsWith('@') ? 2 : 1)) return true
  const root = await nearestPackage(target)
  return root !== undefined && root !== modulesDirectory && isWithin(modulesDirectory, root)
}

/**
 * @template T
 * @param {() => Promise<T>} make
 * @returns {() => Promise<T>} makes it once, and only if it is asked for
 */
function once(make) {
  /** @type {Promise<T> | undefined} */
  let made
  return () => (made ??= make())
}

/**
 * @param {{ buildRoot: string, readRoots?: readonly string[], modules?: Record<string, string | undefined> }} options
 * @returns {Promise<Containment>}
 */
async function createContainment({ buildRoot, readRoots = [], modules = {} }) {
  const root = (await realPathOf(buildRoot)) ?? path.resolve(buildRoot)
  const above = withAncestors(root).slice(1)
  const trusted = Object.values(modules).filter((each) => each !== undefined)
  const roots = [
    root,
    ...(await realPathsOf([...readRoots, RUNTIME_DIRECTORY])),
    ...(await Promise.all(trusted.map(packageOfModule))),
  ]

  const modulesAbove = once(() =>
    realPathsOf(
      above
        .filter((directory) => path.basename(directory) !== 'node_modules')
        .map((directory) => path.join(directory, 'node_modules')),
    ),
  )
  const linkedAbove = once(async () => (await Promise.all((await modulesAbove()).map(linkedPackages))).flat())
  const workspaceRoot = once(() => findWorkspaceRoot(above))
  const linkedByProject = once(async () => {
    const places = [...(await modulesAbove())]
    const workspace = await workspaceRoot()
    if (workspace !== undefined) places.push(workspace)
    const targets = (await linkedPackages(path.join(root, 'node_modules'))).filter((target) =>
      places.some((place) => isWithin(place, target)),
    )
    const kinds = await Promise.all(targets.map((target) => kindOf(path.join(target, 'package.json'))))
    return targets.filter((_, index) => kinds[index] === 'file')
  })

  /** @param {string} realPath */
  const allows = async (realPath) => {
    if (roots.some((each) => isWithin(each, realPath))) return true
    for (const directory of await modulesAbove()) {
      if (isWithin(directory, realPath) && (await isInPackage(directory, realPath))) return true
    }
    if ((await linkedAbove()).some((each) => isWithin(each, realPath))) return true
    return (await linkedByProject()).some((each) => isWithin(each, realPath))
  }

  /** @param {string} realPath */
  const allowsConfiguration = async (realPath) => {
    if (await allows(realPath)) return true
    if (above.includes(path.dirname(realPath)) && /^[jt]sconfig[^/\\]*\.json$/.test(path.basename(realPath)))
      return true
    const workspace = await workspaceRoot()
    return workspace !== undefined && isWithin(workspace, realPath)
  }

  return { root, allows, allowsConfiguration }
}

module.exports = { createContainment, isWithin, realPathOf }
