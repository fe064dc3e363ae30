// The benchmark: sallyport beside `cp -a`, `sha256sum`, `rm -rf` and a sequential mirror in JavaScript, and the sandboxed
// run (`sandbox.mjs`) beside a fork and a bare start of Node, in one run.
//
//   npm run bench                       everything, some minutes
//   npm run bench -- --quick            smaller trees and fewer rounds, for a first look
//   npm run bench -- --json <file>      the figures as JSON too
//   npm run bench -- --markdown         the tables of the README at the end
//
// Rounds are interleaved, and what goes first changes from round to round; printed are medians, and ratios that are
// medians of the ratios of the rounds. Between two measurements on a disk everything is written out (`sync`), so that
// none pays for the one before it; in memory, as much as will be needed is touched first. All copies
// of a place stay until the end, and then removing them is measured too: ext4 is slow after many deletions.
// Nothing is asserted. Everything that was made is removed, after a failure and after SIGINT or SIGTERM too.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'

import { buildFileTreeIndex, describeContainedExecutionMirror, prepareContainedExecutionMirror } from '../index.mjs'
import { benchSandbox } from './sandbox.mjs'
import { LIMITS } from './support/limits.mjs'
import { markdownTable, sandboxTable } from './support/markdown.mjs'
import { makePlaces, removePlaces } from './support/places.mjs'
import { runScript, timeOperation, timeProgram } from './support/programs.mjs'
import { createReport, milliseconds, ratioText } from './support/report.mjs'
import { sequentialMirror } from './support/sequential-mirror.mjs'
import { makeLargeFiles, makeSmallFiles } from './support/sources.mjs'
import { measureStall } from './support/stall.mjs'
import { median, medianRatio } from './support/statistics.mjs'

const FULL = {
  small: { files: 10_000, directories: 256, bytes: 4096, rounds: 5 },
  large: { files: 16, mebibytes: 32, rounds: 3 },
  many: { files: 99_000, directories: 1000, bytes: 64, rounds: 3 },
  few: { files: 9900, directories: 100, bytes: 64, rounds: 3 },
  sequential: { files: 1000, directories: 26, bytes: 4096, rounds: 3 },
}
const QUICK = {
  small: { files: 2000, directories: 51, bytes: 4096, rounds: 3 },
  large: { files: 16, mebibytes: 4, rounds: 2 },
  many: { files: 19_800, directories: 200, bytes: 64, rounds: 1 },
  few: { files: 1980, directories: 20, bytes: 64, rounds: 1 },
  sequential: { files: 200, directories: 5, bytes: 4096, rounds: 1 },
}

/** Names of every process's arguments together may not be longer than this on Linux, with room for the environment. */
const LONGEST_ARGUMENTS = 1024 * 1024

const memoryChild = fileURLToPath(new URL('support/memory-child.mjs', import.meta.url))

function mirrorOf(sourceRoot, tempDirectory) {
  return prepareContainedExecutionMirror({ sourceRoot, controlPlaneRoots: [], limits: LIMITS, tempDirectory })
}

/**
 * Touches as much memory as a case will need. A virtual machine gets memory from its host when it first writes to it,
 * which takes longer than all that is measured here, and would count for whoever comes first. A host that takes unused
 * memory back (free page reporting) does so again after some seconds: then the large files vary from round to round.
 */
function backMemory(place, bytes) {
  if (place.label !== 'memory') return
  const path = join(place.folder, 'memory-backing')
  makeLargeFiles(path, { files: 1, mebibytes: Math.ceil(bytes / 1024 ** 2) })
  rmSync(path, { recursive: true })
}

async function settle(place) {
  if (place.label === 'disk') await timeProgram('sync', ['-f', place.folder])
}

/** Measures named operations in interleaved rounds. Gives the milliseconds of each, by name and round. */
async function rounds(place, count, operations) {
  const names = Object.keys(operations)
  const times = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < count; round += 1) {
    const rotated = names.map((_, position) => names[(position + round) % names.length])
    for (const name of rotated) {
      await settle(place)
      times[name][round] = await operations[name](round)
    }
  }
  return times
}

/** Mirror beside `cp -a`, index beside `sha256sum`, and removing beside `rm -rf`, of one tree. */
async function measureTree(place, name, makeTree, count) {
  const source = join(place.folder, `${name}-source`)
  const temporary = join(place.folder, `${name}-temporary`)
  const copies = join(place.folder, `${name}-copies`)
  const paths = makeTree(source)
  mkdirSync(temporary)
  mkdirSync(copies)
  backMemory(place, 2 * count * paths.reduce((sum, path) => sum + statSync(path).size, 0))
  const oneProcess = paths.reduce((sum, path) => sum + path.length + 9, 0) < LONGEST_ARGUMENTS

  // A first mirror that is not counted: it loads code, starts threads and reads the source into memory.
  const warmUp = await mirrorOf(source, temporary)

  const mirrors = []
  const phases = { snapshot: [], copy: [], verify: [] }
  const operations = {
    mirror: async (round) => {
      const { value, milliseconds } = await timeOperation(() => mirrorOf(source, temporary))
      mirrors[round] = value
      const report = describeContainedExecutionMirror(value)
      for (const phase of Object.keys(phases)) phases[phase].push(report.milliseconds[phase])
      return milliseconds
    },
    copy: (round) => timeProgram('cp', ['-a', source, join(copies, `${round}`)]),
    index: async () => (await timeOperation(() => buildFileTreeIndex({ resourceRoot: source }))).milliseconds,
    sumByXargs: () => timeProgram('sh', ['-c', 'find "$1" -type f -print0 | xargs -0 sha256sum', 'sh', source]),
    ...(oneProcess ? { sumInOneProcess: () => timeProgram('sha256sum', paths) } : {}),
  }
  const times = await rounds(place, count, operations)
  const measureRemoval = async () => {
    const removal = await rounds(place, count, {
      cleanup: async (round) => (await timeOperation(() => mirrors[round].cleanup())).milliseconds,
      remove: (round) => timeProgram('rm', ['-rf', join(copies, `${round}`)]),
    })
    await warmUp.cleanup()
    return removal
  }
  return { source, temporary, times, phases, measureRemoval }
}

async function measureStalls(source, temporary, count) {
  const made = []
  const index = []
  for (let round = 0; round < count; round += 1) {
    made.push(await measureStall(() => mirrorOf(source, temporary)))
    index.push((await measureStall(() => buildFileTreeIndex({ resourceRoot: source }))).longest)
  }
  const measureCleanup = async () => {
    const longest = []
    for (const { value } of made) longest.push((await measureStall(() => value.cleanup())).longest)
    return longest
  }
  return { stalls: { mirror: made.map(({ longest }) => longest), index }, measureCleanup }
}

/** The sequential mirror beside ours on the same, smaller tree. */
async function measureSequential(place, { rounds: count, ...tree }) {
  const source = join(place.folder, 'sequential-source')
  const temporary = join(place.folder, 'sequential-temporary')
  makeSmallFiles(source, tree)
  mkdirSync(temporary)
  return rounds(place, count, {
    sequential: async (round) => {
      const destination = join(temporary, `copy-${round}`)
      return (await timeOperation(() => sequentialMirror(source, destination))).milliseconds
    },
    mirror: async () => {
      const { milliseconds } = await timeOperation(() => mirrorOf(source, temporary))
      return milliseconds
    },
  })
}

/** Time and memory of many entries beside a tenth of them, each in a process of its own. */
async function measureMany(place, many, few) {
  const sources = { many: join(place.folder, 'many-source'), few: join(place.folder, 'few-source') }
  const warmUp = join(place.folder, 'warm-up-source')
  const temporary = join(place.folder, 'many-temporary')
  makeSmallFiles(sources.many, many)
  makeSmallFiles(sources.few, few)
  makeSmallFiles(warmUp, { files: 20, directories: 2, bytes: 64 })
  mkdirSync(temporary)
  const growth = {}
  const operations = {}
  for (const work of ['mirror', 'index']) {
    for (const size of ['few', 'many']) {
      const name = `${work}-${size}`
      growth[name] = []
      operations[name] = async () => {
        const child = await runScript(memoryChild, [work, sources[size], temporary, warmUp])
        growth[name].push(child.growthBytes)
        return child.milliseconds
      }
    }
  }
  return { times: await rounds(place, many.rounds, operations), growth }
}

const report = createReport()
const { print, row } = report

function printTree(times, phases) {
  row('cp -a', times.copy)
  row('mirror', times.mirror, ratioText(medianRatio(times.mirror, times.copy), 'cp -a'))
  const parts = Object.entries(phases).map(([phase, values]) => `${phase} ${milliseconds(median(values))}`)
  print(`    of it: ${parts.join(', ')}`)
  row('sha256sum of all, by find and xargs', times.sumByXargs)
  if (times.sumInOneProcess !== undefined) row('sha256sum of all, one process given all names', times.sumInOneProcess)
  row('index', times.index, ratioText(medianRatio(times.index, times.sumByXargs), 'sha256sum by xargs'))
  if (times.sumInOneProcess !== undefined) {
    const ratio = ratioText(medianRatio(times.index, times.sumInOneProcess), 'sha256sum, one process')
    print(`${' '.repeat(84)}${ratio}`)
  }
}

function printRemoval(title, removal) {
  row(`${title}: rm -rf of a copy`, removal.remove)
  row(
    `${title}: cleanup of a mirror`,
    removal.cleanup,
    ratioText(medianRatio(removal.cleanup, removal.remove), 'rm -rf'),
  )
}

function count(value) {
  return value.toLocaleString('en-US')
}

function mebibytes(bytes) {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}

function machine() {
  const [processor] = cpus()
  return {
    processor: processor?.model ?? 'unknown',
    cores: availableParallelism(),
    kernel: release(),
    node: process.version,
    package: JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version,
    loadBefore: loadavg()[0],
  }
}

async function measurePlace(place, sizes) {
  const { small, large, sequential, many, few } = sizes
  const figures = { fileSystem: place.fileSystem }
  print(`\n== ${place.label}: ${place.fileSystem}`)

  print(
    `\n${count(small.files)} files of ${small.bytes} bytes in ${small.directories} directories, ${small.rounds} rounds`,
  )
  const smallRun = await measureTree(place, 'small', (root) => makeSmallFiles(root, small), small.rounds)
  printTree(smallRun.times, smallRun.phases)
  const { stalls, measureCleanup } = await measureStalls(smallRun.source, smallRun.temporary, small.rounds)
  row('longest stall of the event loop, mirror', stalls.mirror)
  row('longest stall of the event loop, index', stalls.index, 'its result is handed over in one piece')

  const total = large.files * large.mebibytes
  print(`\n${total} MiB in ${large.files} files, ${large.rounds} rounds`)
  const largeRun = await measureTree(place, 'large', (root) => makeLargeFiles(root, large), large.rounds)
  printTree(largeRun.times, largeRun.phases)

  print(
    `\nsequential mirror in JavaScript beside ours, ${count(sequential.files)} files of ${sequential.bytes} bytes, ` +
      `${sequential.rounds} rounds`,
  )
  const sequentialTimes = await measureSequential(place, sequential)
  figures.sequential = { tree: sequential, times: sequentialTimes }
  row('sequential mirror', sequentialTimes.sequential)
  const times = medianRatio(sequentialTimes.sequential, sequentialTimes.mirror)
  row('mirror', sequentialTimes.mirror, `${times.toFixed(0)} times as fast`)
  const scale = small.files / sequential.files
  const scaled = (median(sequentialTimes.sequential) * scale) / median(smallRun.times.mirror)
  print(
    `    scaled by the number of files to ${count(small.files)}: ${milliseconds(median(sequentialTimes.sequential) * scale)}, ` +
      `${scaled.toFixed(0)} times the mirror above`,
  )

  const manyEntries = many.files + many.directories
  const fewEntries = few.files + few.directories
  print(
    `\n${count(manyEntries)} entries beside ${count(fewEntries)}, files of ${many.bytes} bytes, ${many.rounds} rounds`,
  )
  const manyRun = await measureMany(place, many, few)
  figures.many = { tree: many, beside: few, times: manyRun.times, growthBytes: manyRun.growth }
  for (const work of ['mirror', 'index']) {
    const [fewTimes, manyTimes] = [manyRun.times[`${work}-few`], manyRun.times[`${work}-many`]]
    const each = (medianRatio(manyTimes, fewTimes) * fewEntries) / manyEntries
    row(`${work}, ${count(fewEntries)} entries`, fewTimes)
    row(`${work}, ${count(manyEntries)} entries`, manyTimes, ratioText(each, 'the time of one entry'))
    const [fewGrowth, manyGrowth] = [manyRun.growth[`${work}-few`], manyRun.growth[`${work}-many`]].map(median)
    print(`    memory growth: ${mebibytes(fewGrowth)} and ${mebibytes(manyGrowth)}`)
  }

  print('\nremoving what was made above')
  const smallRemoval = await smallRun.measureRemoval()
  printRemoval(`${count(small.files)} files`, smallRemoval)
  const cleanup = await measureCleanup()
  row('longest stall of the event loop, cleanup', cleanup)
  const largeRemoval = await largeRun.measureRemoval()
  printRemoval(`${total} MiB`, largeRemoval)
  figures.small = { tree: small, times: { ...smallRun.times, ...smallRemoval }, phases: smallRun.phases }
  figures.large = { tree: large, times: { ...largeRun.times, ...largeRemoval }, phases: largeRun.phases }
  figures.stalls = { ...stalls, cleanup }
  return figures
}

async function main() {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, json: { type: 'string' }, markdown: { type: 'boolean' } },
  })
  const sizes = values.quick ? QUICK : FULL
  const about = machine()
  print(
    `sallyport ${about.package}, Node ${about.node}, Linux ${about.kernel}, ${about.cores} cores (${about.processor})`,
  )
  print(`load of the machine at the start: ${about.loadBefore.toFixed(2)}${values.quick ? '; a quick run' : ''}`)
  const places = makePlaces()
  const stop = () => {
    removePlaces(places)
    process.exit(130)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    const figures = { machine: about, quick: values.quick === true, places: {} }
    for (const place of places) figures.places[place.label] = await measurePlace(place, sizes)
    for (const label of ['memory', 'disk']) {
      if (!places.some((place) => place.label === label)) print(`\nno place of this kind here: ${label}`)
    }
    figures.sandbox = await benchSandbox(report, values.quick === true)
    about.loadAfter = loadavg()[0]
    print(`\nload of the machine at the end: ${about.loadAfter.toFixed(2)}`)
    if (values.markdown) {
      print(`\n${markdownTable(figures.places).join('\n')}`)
      print(`\n${sandboxTable(figures.sandbox).join('\n')}`)
    }
    if (values.json !== undefined)
      writeFileSync(values.json, `${JSON.stringify({ ...figures, text: report.output }, null, 2)}\n`)
  } finally {
    removePlaces(places)
  }
}

await main()
