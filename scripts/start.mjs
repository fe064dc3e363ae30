// Shows what the package does: makes a verified mirror of a real folder, says what it found and how long it took, and
// removes the mirror again; then evaluates the example projects in the sandbox, and says what they declare, what the
// hostile one was refused, and what held it.
//
//   npm start                mirrors this repository
//   npm start -- <folder>    mirrors any folder
//
// A refusal of the mirror is printed with its code and the path it names; nothing is left behind then. It ends with exit
// code 1 after one, and where an example did not do what it should. Folders that declare themselves to be caches (a
// CACHEDIR.TAG, as Cargo writes one, or the name `.cache`) are given as protected roots: they are large, and no command
// in the mirror needs them.

import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import {
  buildFileTreeIndex,
  describeContainedExecutionMirror,
  prepareContainedExecutionMirror,
  runFallbackFilesSandboxed,
} from '../index.mjs'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')
const examples = join(repository, 'examples')

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

async function mirror() {
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

function printEntities({ entitySet, provenanceByName }, root) {
  for (const entity of entitySet.entities) {
    const type = entity.form === 'declarable' ? entity.entityType : `output ${entity.outputName}`
    line(`  ${entity.name}`, `${type.padEnd(22)}${relative(root, provenanceByName[entity.name] ?? '')}`)
  }
}

/** The example project: what it declares. */
async function evaluate() {
  const root = join(examples, 'project')
  const files = ['storage.ts', 'site.ts'].map((name) => join(root, name))
  const { value: result, milliseconds } = await timed(() => runFallbackFilesSandboxed(files, root))
  const { entities, errors, bundleMs, isolation } = result
  line('project', `${relative(repository, root)}, in the sandbox`)
  line('entities', `${number(entities.size)}, in ${number(milliseconds)} ms (${number(bundleMs)} ms of it bundling)`)
  printEntities(result, root)
  for (const error of errors) line('  error', error.message)
  if (errors.length > 0) process.exitCode = 1
  return isolation
}

/** What a file of the hostile example was refused. */
function printAttempt(file, errors, isolation) {
  const error = errors.find((each) => each.file === file)
  const harmless = basename(file) === 'harmless.ts'
  const name = `  ${basename(file)}`.padEnd(26)
  if (harmless && error === undefined) console.log(`${name}evaluated, unharmed by the others`)
  else if (!harmless && error?.type === 'permission') console.log(`${name}refused: ${error.message.split(': ')[0]}`)
  else {
    console.log(`${name}${harmless ? 'HARMED' : 'NOT REFUSED'}${error === undefined ? '' : `: ${error.message}`}`)
    if (harmless || isolation.level === 'kernel') process.exitCode = 1
  }
}

/** The hostile example: what it was refused. At a level below `kernel` some of it may not be. */
async function attack() {
  const root = join(examples, 'hostile')
  const files = readdirSync(root).map((name) => join(root, name))
  const { errors, isolation } = await runFallbackFilesSandboxed(files, root)
  line('hostile project', `${relative(repository, root)}, in the sandbox`)
  const failures = errors.filter(({ file }) => file === '')
  for (const { message } of failures) line('  error', message)
  if (failures.length > 0) process.exitCode = 1
  else for (const file of files) printAttempt(file, errors, isolation)
}

function printIsolation({ level, guarantees, landlockAbi, kernel, node }) {
  const abi = landlockAbi === null ? 'without Landlock' : `Landlock ${landlockAbi}`
  line('isolation', `${level} (Linux ${kernel}, ${abi}, Node ${node})`)
  for (const [name, { held, by, reason }] of Object.entries(guarantees)) {
    line(`  ${name}`, held ? `held by ${by.join(', ')}` : `NOT HELD: ${reason}`)
  }
}

const REFUSAL_FIELDS = ['code', 'relativePath', 'rule', 'nodeKind', 'links', 'diagnostic', 'mirrorRoot', 'path']

/** Runs a part. One that fails says why, and the others go on. */
async function part(operation) {
  try {
    return await operation()
  } catch (error) {
    line('refused', `${error.name}: ${error.message}`)
    for (const field of REFUSAL_FIELDS) if (error[field] !== undefined) line(`  ${field}`, String(error[field]))
    process.exitCode = 1
  } finally {
    console.log()
  }
}

await part(mirror)
const isolation = await part(evaluate)
await part(attack)
if (isolation !== undefined) printIsolation(isolation)
