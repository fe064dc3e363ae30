// The whole test run: vitest on the Node that started this, vitest on each other supported Node, then the tests of the
// core.
//
// Prints each runner's own output and ends with one line, `N passed, N failed`, summed over all of them. Exit code 1
// where anything failed, a runner that crashed or left no report included. The long tests run in full on the first
// Node and with fewer rounds on the others (`SALLYPORT_TEST_EFFORT=reduced`, see `__test__/support/effort.ts`).

import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { countCargo, countVitest } from './counts.mjs'
import { installNodes } from './install-nodes.mjs'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')
const reports = join(repository, '.cache', 'reports')

/** Runs a program, shows what it writes and gives its exit code and standard output. */
function run(program, programArguments, environment) {
  return new Promise((resolve) => {
    const child = spawn(program, programArguments, {
      cwd: repository,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const chunks = []
    child.stdout.on('data', (chunk) => {
      chunks.push(chunk)
      process.stdout.write(chunk)
    })
    child.on('error', (error) => {
      console.error(`test: ${program} could not be started: ${error.message}`)
      resolve({ exitCode: null, output: '' })
    })
    child.on('close', (exitCode) => resolve({ exitCode, output: Buffer.concat(chunks).toString('utf8') }))
  })
}

async function runVitest(label, program, effort) {
  const reportFile = join(reports, `vitest-${label}.json`)
  rmSync(reportFile, { force: true })
  const { exitCode } = await run(
    program,
    [
      join('node_modules', 'vitest', 'vitest.mjs'),
      ...['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`],
    ],
    { SALLYPORT_TEST_EFFORT: effort, NO_COLOR: '1' },
  )
  let report = null
  try {
    report = readFileSync(reportFile, 'utf8')
  } catch (error) {
    console.error(`test: vitest on ${label} left no report: ${error.message}`)
  }
  return countVitest({ report, exitCode })
}

async function runCargo() {
  const { exitCode, output } = await run('cargo', ['test', '--no-default-features', '--color=never'], {})
  return countCargo({ report: output, exitCode })
}

async function main() {
  mkdirSync(reports, { recursive: true })
  const runners = [[`host ${process.version}`, () => runVitest('host', process.execPath, 'full')]]
  let unavailable = null
  try {
    for (const { major, version, program } of installNodes()) {
      // The host has run everything in full by then.
      if (version === process.version) continue
      runners.push([`Node ${version}`, () => runVitest(`node-${major}`, program, 'reduced')])
    }
  } catch (error) {
    unavailable = error
  }
  runners.push(['core', runCargo])

  const rows = []
  for (const [label, runner] of runners) {
    console.log(`\n=== ${label}`)
    rows.push([label, await runner()])
  }
  if (unavailable) {
    console.error(`test: ${unavailable.message}`)
    rows.push(['supported Node versions', { passed: 0, failed: 1 }])
  }

  console.log('')
  for (const [label, counts] of rows) console.log(`${label}: ${counts.passed} passed, ${counts.failed} failed`)
  const passed = rows.reduce((sum, [, counts]) => sum + counts.passed, 0)
  const failed = rows.reduce((sum, [, counts]) => sum + counts.failed, 0)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

await main()
