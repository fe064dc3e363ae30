// The benchmark of the sandboxed run, alone or as a part of `npm run bench`: beside the same work by esbuild's JavaScript
// interface and `child_process.fork`, and beside a bare start of Node under its Permission Model, in one run.
//
//   node benches/sandbox.mjs             some minutes
//   node benches/sandbox.mjs --quick     fewer rounds
//   node benches/sandbox.mjs --markdown  the table of the README at the end
//
// Rounds are interleaved, and what goes first changes from round to round; printed are medians, and ratios and differences
// that are medians over the rounds. Nothing is asserted. What was made is removed, after a failure and a signal too.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { runFallbackFilesSandboxed } from '../index.mjs'
import { sandboxTable } from './support/markdown.mjs'
import { PERMISSION_FLAG } from './support/permission.mjs'
import { runScript, timeOperation, timeProgram } from './support/programs.mjs'
import { createReport, milliseconds, ratioText } from './support/report.mjs'
import { runByFork } from './support/sandbox-peer.mjs'
import { makeProjects } from './support/sandbox-projects.mjs'
import { measureStall } from './support/stall.mjs'
import { median, medianRatio } from './support/statistics.mjs'

const FULL = { first: 15, later: 40, large: 15, stalls: 15 }
const QUICK = { first: 5, later: 12, large: 5, stalls: 5 }

const LEVELS = ['node', 'best-effort', 'kernel']

const firstCall = fileURLToPath(new URL('support/sandbox-first.mjs', import.meta.url))

/** Measures named operations in interleaved rounds. Gives what each gave, by name and round. */
async function interleaved(count, operations) {
  const names = Object.keys(operations)
  const values = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < count; round += 1) {
    const rotated = names.map((_, position) => names[(position + round) % names.length])
    for (const name of rotated) values[name][round] = await operations[name]()
  }
  return values
}

async function evaluate({ files, root }, isolation) {
  const result = await runFallbackFilesSandboxed(files, root, { isolation })
  if (result.errors.length > 0) throw new Error(`benchmark: ${result.errors.join('; ')}`)
  return result
}

const timed = async (operation) => (await timeOperation(operation)).milliseconds

/** What the first call in a process takes, in a fresh one each time. */
function measureFirst({ files, root }, count) {
  const hosts = ['fork', ...LEVELS].map((how) => [how, () => runScript(firstCall, [how, root, ...files])])
  return interleaved(count, Object.fromEntries(hosts))
}

/** What later calls take. `bare`: the arguments of the bare start that they are measured beside. */
async function measureLater(project, count, bare) {
  // With the environment of a sandboxed child: certificates that are named in it cost some versions 60 ms at each start.
  const environment = { PATH: process.env.PATH }
  const operations = {
    ...(bare === undefined ? {} : { bare: () => timeProgram(process.execPath, bare, environment) }),
    fork: () => timed(() => runByFork(project.files, project.root)),
    ...Object.fromEntries(LEVELS.map((level) => [level, () => timed(() => evaluate(project, level))])),
  }
  await interleaved(2, operations)
  return interleaved(count, operations)
}

async function measureStalls(project, count) {
  const longest = []
  for (let round = 0; round < count; round += 1) {
    longest.push((await measureStall(() => evaluate(project, 'kernel'))).longest)
  }
  return longest
}

function medianDifference(left, right) {
  return median(left.map((value, round) => value - right[round]))
}

function printFirst({ print, row }, first, count) {
  print(`\nfirst call in a process, three small files, ${count} rounds, each in a process of its own`)
  const calls = Object.fromEntries(Object.entries(first).map(([how, list]) => [how, list.map(({ call }) => call)]))
  const loads = (how) => first[how].map(({ load }) => load)
  row("esbuild's interface, then fork", calls.fork)
  for (const level of LEVELS) {
    row(`sallyport, level ${level}`, calls[level], ratioText(medianRatio(calls[level], calls.fork), 'fork'))
  }
  print(`    loading before it: ${milliseconds(median(loads('fork')))} and ${milliseconds(median(loads('kernel')))}`)
  return calls
}

function printLater({ row }, times) {
  const beside = times.bare === undefined ? 'fork' : 'bare'
  if (times.bare !== undefined) row(`node ${PERMISSION_FLAG}, an empty module`, times.bare)
  row("esbuild's interface, then fork", times.fork)
  for (const level of LEVELS) {
    const ratio = ratioText(medianRatio(times[level], times.fork), 'fork')
    const difference = `${milliseconds(medianDifference(times[level], times[beside]))} more than ${beside}`
    row(`sallyport, level ${level}`, times[level], times.bare === undefined ? ratio : `${ratio}, ${difference}`)
  }
}

/** Measures everything; `report` is where it is printed. Gives the milliseconds by name and round. */
export async function benchSandbox(report, quick) {
  const { print, row } = report
  const counts = quick ? QUICK : FULL
  const base = mkdtempSync(join(realpathSync(tmpdir()), 'sallyport-bench-sandbox-'))
  const remove = () => rmSync(base, { recursive: true, force: true })
  const stop = () => {
    remove()
    process.exit(130)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    const { small, large } = makeProjects(base)
    const empty = join(base, 'empty.mjs')
    writeFileSync(empty, '')
    print(`\n== sandboxed run, Node ${process.version}`)

    const first = printFirst(report, await measureFirst(small, counts.first), counts.first)

    print(`\nlater calls, three small files, ${counts.later} rounds`)
    const bare = [PERMISSION_FLAG, `--allow-fs-read=${base}`, '--no-warnings', empty]
    const later = await measureLater(small, counts.later, bare)
    printLater(report, later)
    const layers = medianDifference(later.kernel, later.node)
    print(`    what the kernel's layers cost: ${milliseconds(layers)} (kernel beside node, median of the rounds)`)

    const { bundleBytes } = await evaluate(large, 'node')
    print(
      `\nlater calls, large packages (a bundle of ${(bundleBytes / 1024 ** 2).toFixed(1)} MiB), ${counts.large} rounds`,
    )
    const packages = await measureLater(large, counts.large)
    printLater(report, packages)

    print('\nlongest stall of the event loop during a call')
    const stalls = {
      small: await measureStalls(small, counts.stalls),
      large: await measureStalls(large, counts.stalls),
    }
    row('three small files', stalls.small)
    row('large packages', stalls.large)
    return { first, later, packages, stalls, layers }
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    remove()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, markdown: { type: 'boolean' } } })
  const report = createReport()
  const figures = await benchSandbox(report, values.quick === true)
  if (values.markdown) report.print(`\n${sandboxTable(figures).join('\n')}`)
}
