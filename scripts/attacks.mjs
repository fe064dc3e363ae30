// The one command for a reader who does not believe it: `npm run attacks` runs the whole corpus of attacks
// (`__test__/fixtures/attacks`) on every supported Node, under four configurations, and prints a table.
//
// | configuration | what holds the child |
// | --- | --- |
// | kernel | Landlock, seccomp and limits, and Node's Permission Model |
// | kernelAlone | Landlock, seccomp and limits |
// | node | Node's Permission Model and limits |
// | open | limits only: what escapes here shows that the attack is a real one |
//
// Ends with 1 where anything escaped under `kernel` or `kernelAlone`, or anything else than expected came of an attack.
// Options: `--node=22,26` and `--configuration=kernel,open` for some of them; names of attacks for these only. Throws
// where the package is not built or a Node cannot be installed.

import { mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

import { build } from 'esbuild'

import { OLDEST_VERSIONS, installNodes } from './install-nodes.mjs'

const repository = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const require = createRequire(import.meta.url)
const { runFallbackFilesSandboxed } = require('../index.js')
const { runWithoutPermissionModel } = require('../js/sandbox/internal-for-tests.js')

/** The runner is TypeScript, which Node 20 does not read. */
async function loadRunner() {
  const folder = path.join(repository, '.cache')
  mkdirSync(folder, { recursive: true })
  const outfile = path.join(folder, `attacks-${process.pid}.mjs`)
  const entry = path.join(repository, '__test__', 'support', 'attacks.ts')
  try {
    await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' })
    return await import(pathToFileURL(outfile).href)
  } finally {
    rmSync(outfile, { force: true })
  }
}

const EXPECTED_WIDTH = 24

function oneLine(text, most = 100) {
  const line = text.replace(/\s+/g, ' ')
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}

/** A line for each attack, the Nodes put together where the same came of it, and what had to come of it. */
function printTable(rows) {
  console.log(`  ${'attack'.padEnd(28)} ${'expected'.padEnd(EXPECTED_WIDTH)} what came of it`)
  for (const [attack, own] of byAttack(rows)) {
    const outcomes = new Set(own.map(({ actual }) => oneLine(actual).replace(/\d{3,}/g, '…')))
    const mark = own.every(({ holds }) => holds) ? '  ' : '! '
    const told =
      outcomes.size === 1 ? [...outcomes][0] : own.map(({ node, actual }) => `${node}: ${oneLine(actual)}`).join(' | ')
    const expected = oneLine([...new Set(own.flatMap((row) => row.expected))].join(' or '), EXPECTED_WIDTH)
    console.log(`${mark}${attack.padEnd(28)} ${expected.padEnd(EXPECTED_WIDTH)} ${told}`)
    for (const { node, holds, expected, detail } of own) {
      if (!holds) console.log(`    on ${node} expected ${expected.join(' or ')}; ${oneLine(detail)}`)
    }
  }
}

function byAttack(rows) {
  const groups = new Map()
  for (const row of rows) groups.set(row.attack, [...(groups.get(row.attack) ?? []), row])
  return groups
}

/** What each configuration says about the claim. */
const MEANINGS = {
  kernel: 'what is promised: nothing may escape',
  kernelAlone: "the same with Node's Permission Model switched off: nothing may escape",
  node: "a control: what Node's Permission Model alone lets through",
  open: 'a control: where nothing but limits holds, the attacks must be real',
}

const USAGE = `npm run attacks -- [NAME...] [--node=20,22,24,26] [--configuration=${Object.keys(MEANINGS).join()}]

Runs what hostile files try (__test__/fixtures/attacks, a folder for each NAME) in the sandbox, and prints what came of it;
everything takes some six minutes. Ends with 1 where anything escaped that must not, or anything unexpected happened.
`

/** The asked-for ones of all there are; throws for one that is not there, since nothing tried is nothing shown. */
function choose(kind, given, all) {
  if (given === undefined) return all
  const asked = given.split(',')
  const unknown = asked.find((each) => !all.includes(each))
  if (unknown !== undefined) throw new Error(`there is no ${kind} ${unknown}; there are ${all.join(', ')}`)
  return all.filter((each) => asked.includes(each))
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { node: { type: 'string' }, configuration: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(USAGE)
    return
  }
  const { configurations, readAttacks, runCorpus, runnerFor } = await loadRunner()
  const folder = path.join(repository, '__test__', 'fixtures', 'attacks')
  const library = require.resolve('../sallyport.linux-x64-gnu.node')
  const majors = choose('Node', values.node, Object.keys(OLDEST_VERSIONS))
  const chosen = choose('configuration', values.configuration, configurations)
  const names = new Set(readAttacks(folder).map(({ name }) => name))
  const unknown = positionals.find((name) => !names.has(name))
  if (unknown !== undefined) throw new Error(`there is no attack ${unknown} in ${folder}`)
  const nodes = installNodes(majors)

  const all = []
  for (const configuration of chosen) {
    console.log(`\n=== ${configuration}: ${MEANINGS[configuration]}\n`)
    const rows = []
    for (const { version, program } of nodes) {
      console.error(`trying on Node ${version}…`)
      rows.push(
        ...(await runCorpus({
          folder,
          library,
          run: runnerFor(configuration, { runFallbackFilesSandboxed, runWithoutPermissionModel }),
          configuration,
          nodePath: program,
          nodeVersion: version,
          only: positionals.length > 0 ? positionals : undefined,
        })),
      )
    }
    printTable(rows)
    all.push(...rows)
  }

  console.log('')
  for (const configuration of chosen) {
    const own = all.filter((row) => row.configuration === configuration)
    const escaped = own.filter(({ actual }) => actual === 'escapes')
    const other = own.filter(({ holds }) => !holds)
    const counts = `${own.length} attacks, ${escaped.length} escaped, ${other.length} other than expected`
    console.log(`${configuration.padEnd(12)} ${counts} (${MEANINGS[configuration]})`)
  }
  const broken = all.filter(
    ({ configuration, actual, holds }) => !holds || (configuration.startsWith('kernel') && actual === 'escapes'),
  )
  process.exitCode = broken.length === 0 ? 0 : 1
}

try {
  await main()
} catch (error) {
  console.error(`attacks: ${error.message}`)
  process.exitCode = 1
}
