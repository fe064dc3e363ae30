// Makes a verified mirror of a real folder, says what it found and how long it took, and removes the mirror again.
//
//   npm start                this repository
//   npm start -- <folder>    any folder
//
// A refusal is printed with its code and the path it names, and ends with exit code 1; nothing is left behind then.
// Folders that declare themselves to be caches (a CACHEDIR.TAG, as Cargo writes one, or the name `.cache`) are given
// as protected roots: they are large, and no command in the mirror needs them.

import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import { buildFileTreeIndex, describeContainedExecutionMirror, prepareContainedExecutionMirror } from '../index.mjs'

const LONGEST_LIST = 25
const LIMITS = {
  maxFiles: 5_000_000,
  maxSourceBytes: 64 * 1024 ** 3,
  maxWorkspaceBytes: 64 * 1024 ** 3,
  prepareTimeoutMs: 10 * 60 * 1000,
}

function cacheFolders(folder) {
  const children = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const tagged = children.filter(({ name }) => existsSync(join(folder, name, 'CACHEDIR.TAG'))).map(({ name }) => name)
  const named = ['.cache', join('node_modules', '.cache')].filter((name) => existsSync(join(folder, name)))
  return [...new Set([...tagged, ...named])].map((name) => join(folder, name))
}

async function timed(operation) {
  const start = performance.now()
  const value = await operation()
  return { value, milliseconds: performance.now() - start }
}

function line(label, text) {
  console.log(`${label.padEnd(18)}${text}`)
}

function number(value) {
  return Math.round(value).toLocaleString('en-US')
}

function printReport(report, prepareMilliseconds) {
  const { files, directories, symlinks, bytes, treeHash, milliseconds, skipped } = report
  const entries = files + directories + symlinks
  const kinds = `${number(files)} files, ${number(directories)} directories, ${number(symlinks)} links`
  line('entries', `${number(entries)} (${kinds})`)
  line('bytes', number(bytes))
  line('tree hash', treeHash)
  line('snapshot', `${number(milliseconds.snapshot)} ms`)
  line('copy', `${number(milliseconds.copy)} ms`)
  line('verify', `${number(milliseconds.verify)} ms`)
  line('together', `${number(prepareMilliseconds)} ms`)
  line('left out', skipped.length === 0 ? 'nothing' : `${number(skipped.length)}`)
  for (const { relativePath, rule } of skipped.slice(0, LONGEST_LIST)) line('', `${relativePath} (${rule})`)
  if (skipped.length > LONGEST_LIST) line('', `and ${number(skipped.length - LONGEST_LIST)} more`)
}

async function main() {
  const repository = join(dirname(fileURLToPath(import.meta.url)), '..')
  // npm runs scripts in the package's folder and keeps the caller's here.
  const folder = resolve(process.env.INIT_CWD ?? process.cwd(), process.argv[2] ?? repository)
  line('source', folder)
  const prepared = await timed(() =>
    prepareContainedExecutionMirror({
      sourceRoot: folder,
      controlPlaneRoots: cacheFolders(folder),
      limits: LIMITS,
      hardlinks: 'copy',
    }),
  )
  const mirror = prepared.value
  try {
    line('mirror', mirror.hostMirrorRoot)
    const report = describeContainedExecutionMirror(mirror)
    printReport(report, prepared.milliseconds)
    const index = await timed(() => buildFileTreeIndex({ resourceRoot: mirror.hostMirrorRoot }))
    const same = index.value.treeHash === report.treeHash
    line(
      'index of mirror',
      `${same ? 'the same tree hash' : `DIFFERS: ${index.value.treeHash}`}, ${number(index.milliseconds)} ms`,
    )
    if (!same) process.exitCode = 1
  } finally {
    const disposed = await timed(() => mirror.cleanup())
    const gone = !existsSync(mirror.hostMirrorRoot)
    line('removed', gone ? `yes, ${number(disposed.milliseconds)} ms` : 'NO, the mirror is still there')
    if (!gone) process.exitCode = 1
  }
}

try {
  await main()
} catch (error) {
  line('refused', `${error.name}: ${error.message}`)
  for (const field of ['code', 'relativePath', 'rule', 'nodeKind', 'links', 'diagnostic', 'mirrorRoot', 'path']) {
    if (error[field] !== undefined) line(`  ${field}`, String(error[field]))
  }
  process.exitCode = 1
}
