// Builds the addon and compares the generated loader and types with what is committed. Exit code 1 where they differ
// or where one is not committed at all.

import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')
const generated = ['binding.cjs', 'binding.d.cts']

function succeeds(program, ...programArguments) {
  return spawnSync(program, programArguments, { cwd: repository, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}

const fresh =
  succeeds('npm', 'run', '--silent', 'build') &&
  succeeds('git', 'ls-files', '--error-unmatch', '--', ...generated) &&
  succeeds('git', '--no-pager', 'diff', '--exit-code', 'HEAD', '--', ...generated)
if (!fresh) console.error(`check:generated: build the addon and commit ${generated.join(' and ')}`)
process.exitCode = fresh ? 0 : 1
