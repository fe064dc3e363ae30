// Makes a fresh clone ready: installs the development packages where they are missing or stale, then builds the addon.
//
// Needs Node 20 or newer, npm and cargo, no terminal and no input. Ends with the exit code of the step that failed;
// says which one it was.

import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')

function modified(relativePath) {
  return statSync(join(repository, relativePath), { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function run(description, program, ...programArguments) {
  const { status, signal, error } = spawnSync(program, programArguments, {
    cwd: repository,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status === 0) return
  console.error(`setup: ${description} failed: ${error?.message ?? (signal ? `ended by ${signal}` : `exit ${status}`)}`)
  process.exit(status || 1)
}

// npm writes this file last, so its time is that of the last complete installation.
if (modified('node_modules/.package-lock.json') < modified('package-lock.json')) {
  run('installing the packages', 'npm', 'ci', '--include=dev', '--no-audit', '--no-fund')
}
run('building the addon', 'npm', 'run', '--silent', 'build')
