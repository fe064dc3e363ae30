'use strict'

// Sandboxed runs: project source in, data out. The child starts at once and boots while the bundler works; when the
// bundle is there it is told to begin. Whatever happens, the child is dead and its folder gone before a promise settles.
//
// A promise rejects only for a wrong argument (TypeErrors that name it), for a driver that cannot be bundled (esbuild's
// messages), for a level of isolation that cannot be given, and with the reason of the caller's signal; everything that
// goes wrong inside a run is an error in its result. Configurations and calls have no such result and reject with what
// went wrong. Source: contract/sandbox.md.

const fs = require('node:fs/promises')
const os = require('node:os')
const path = require('node:path')

const {
  invalidType,
  invalidValue,
  optional,
  requireAbsolutePath,
  requireArray,
  requireObject,
  requireString,
} = require('./arguments')
const { buildBundle, resolveExternalPackages } = require('./bundle')
const { copyReadable, holdBundleDirectory, removeBundleDirectory } = require('./bundle/directory')
const { DiscoveryError } = require('./discovery-error')
const { decodeEntitySet } = require('./entities')
const { runJob } = require('./job')
const { SANDBOX_LAUNCH_FAILED, SANDBOX_RESULT_INVALID } = require('./sandbox/codes')
const { driverSource } = require('./sandbox/driver')
const {
  forgetProgramFiles,
  layersFor,
  probe,
  reportOf,
  reportOfNothing,
  unavailable,
  unconfined,
  warnOfMissing,
} = require('./sandbox/isolation')
const { launcherPath } = require('./sandbox/launcher')
const { nodeProgram, requireProgram } = require('./sandbox/node-program')
const { FORGED, isGivenModule, requireModuleFiles, unusableDriver, unusableModule } = require('./sandbox/modules')
const { PREBUILT_RUNTIME, RUNTIME_NAME } = require('./sandbox/runtime-modules')
const { OPTIONS, checkOptions, requireDirectory, requireFile } = require('./sandbox/options')
const { refuseMisspelt } = require('./spelling')
const { describeNonData } = require('../runtime/data')

/**
 * @typedef {import('../index.js').SandboxOptions} SandboxOptions
 * @typedef {import('../index.js').SandboxRunResult} SandboxRunResult
 * @typedef {import('../index.js').IsolationReport} IsolationReport
 * @typedef {import('../index.js').EntitySetWire} EntitySetWire
 * @typedef {import('../index.js').DiscoveryErrorType} DiscoveryErrorType
 * @typedef {import('../index.js').SandboxErrorCode} SandboxErrorCode
 * @typedef {ReturnType<typeof checkOptions>} CheckedOptions
 */

/**
 * @typedef {{ file: string, message: string, type: DiscoveryErrorType, code?: SandboxErrorCode }} ReportedError
 * @typedef {{ kind: 'run', entitySet: EntitySetWire, errors: ReportedError[], provenanceByName: Record<string, string> }
 *   | { kind: 'value', value: unknown }
 *   | { kind: 'refused', list: { path: string, found: string }[] }
 *   | { kind: 'failed', error: ReportedError }
 *   | { kind: 'unusable', module: string, name: string }
 *   | { kind: 'broken', message: string, type: DiscoveryErrorType, code?: SandboxErrorCode }} Report
 */

const BOOT = path.join(__dirname, '..', 'runtime', 'boot.mjs')
const BOOT_NAME = 'boot.mjs'

// The descriptors at which the launcher puts the result and the control pipe (src/isolation/plan.rs).
const RESULT_DESCRIPTOR = 3
const CONTROL_DESCRIPTOR = 4

const RUN_TIMEOUT_MS = 120_000
const CONFIG_TIMEOUT_MS = 60_000
const MAX_RESULT_BYTES = 256 * 1024 * 1024
const MEMORY_LIMIT_MB = 2048

/** What Node takes besides the heap: measured, RLIMIT_DATA below this above the heap kills some versions at start. */
const NODE_OVERHEAD_MB = 1024

/**
 * @param {string} label
 * @param {CheckedOptions} options
 * @returns {(line: string, stream: 'stdout' | 'stderr') => void}
 */
function outputOf(label, options) {
  const prefix = options.outputPrefix ?? `[${label}] `
  // Looked up at each line: callers' tests put a spy there.
  return options.onOutput ?? ((line) => void process.stderr.write(`${prefix}${line}\n`))
}

/**
 * Node reads `*` in a grant as a wildcard, so such a path would grant its neighbours too.
 * @param {string} granted
 * @param {string} name
 * @returns {string}
 */
function requireGrantable(granted, name) {
  if (granted === path.parse(granted).root) {
    throw invalidValue(
      name,
      'another directory than the root of the file system, whose grant leaves nothing out',
      granted,
    )
  }
  if (granted.includes('*')) {
    throw invalidValue(
      name,
      'at a real path without "*", which Node\'s Permission Model would take for a wildcard',
      granted,
    )
  }
  return granted
}

/**
 * @param {string} buildRoot canonical
 * @param {CheckedOptions} options
 * @returns {Promise<string[]>} the read roots, canonical; each and the build root may be granted
 */
async function requireGrants(buildRoot, options) {
  requireGrantable(buildRoot, 'buildRoot')
  return Promise.all(
    options.readRoots.map(async (root, index) => {
      const name = `options.readRoots[${index}]`
      return requireGrantable(await requireDirectory(root, name), name)
    }),
  )
}

/**
 * @param {object} run
 * @param {string} run.label
 * @param {'run' | 'value'} run.expected
 * @param {Record<string, unknown>} run.task
 * @param {string} run.buildRoot canonical
 * @param {number} run.timeoutMs
 * @param {Record<string, string>} [run.env]
 * @param {boolean} [run.permissionModel] false only where a test shows what the kernel holds by itself
 * @param {CheckedOptions} options
 * @returns {Promise<{ report: Report, isolation: IsolationReport, bundleMs: number, bundleBytes: number,
 *   fileErrors: ReportedError[] }>}
 */
async function runChild(run, options) {
  const { label, expected, task, buildRoot, timeoutMs, env = {}, permissionModel = true } = run
  options.signal?.throwIfAborted()
  const launcher = launcherPath()
  const source = driverSource(task, options.modules)
  const programFound = nodeProgram(options.nodePath ?? process.execPath)
  const externalFound = resolveExternalPackages({ toolRoot: options.toolRoot, modules: options.modules })
  // Both go on meanwhile; what goes wrong is told in the order in which it is waited for.
  for (const found of [programFound, externalFound]) found.catch(() => undefined)
  // A whole line: what is embedded in the text is JSON, which has no line of its own.
  const driver = permissionModel ? source : source.replace(/^ *channel\.requireRestriction\(\);$/m, '')
  const program = await programFound
  const readRoots = await requireGrants(buildRoot, options)
  await requireModuleFiles(options)
  const external = await externalFound
  for (const root of external.readPaths) requireGrantable(root, 'options.toolRoot')
  requireGrantable(await fs.realpath(os.tmpdir()), 'the temp directory (TMPDIR)')
  const bundleDir = holdBundleDirectory()
  try {
    // Each once: Node 20 ends itself where it is given a root again.
    const readable = [...new Set([bundleDir, buildRoot, ...readRoots, ...external.readPaths])]
    const level = options.isolation ?? 'best-effort'
    const [{ layers, reason: noLandlock }] = await Promise.all([
      layersFor(level, program, readable),
      copyReadable(BOOT, path.join(bundleDir, BOOT_NAME)),
      copyReadable(PREBUILT_RUNTIME, path.join(bundleDir, RUNTIME_NAME)),
    ])
    if (level === 'kernel' && noLandlock !== undefined) {
      // Nothing is started: the probe tells of the kernel, not of a program whose libraries are not known.
      const answer = await probe(program, true, { missing: [['landlock', noLandlock]], signal: options.signal })
      throw unavailable(reportOf(answer, program))
    }
    const memoryLimitMb = options.memoryLimitMb ?? MEMORY_LIMIT_MB
    const request = {
      launcher,
      program: program.path,
      arguments: [
        ...(permissionModel ? [program.permissionFlag] : []),
        ...(permissionModel ? readable.map((root) => `--allow-fs-read=${root}`) : []),
        // Its default file is not granted, and Node ends at once where it may not read it.
        ...(layers.landlock === null ? [] : ['--openssl-config=/dev/null']),
        program.warningFlag,
        // Any flag of the engine costs Node 20 and 22 half of their start again, so it is given where it was asked for.
        ...(options.memoryLimitMb === undefined ? [] : [`--max-old-space-size=${memoryLimitMb}`]),
        path.join(bundleDir, BOOT_NAME),
      ],
      environment: Object.entries({
        ...(process.env.PATH === undefined ? {} : { PATH: process.env.PATH }),
        ...env,
        ...options.env,
        SALLYPORT_RESULT_FD: String(RESULT_DESCRIPTOR),
        SALLYPORT_CONTROL_FD: String(CONTROL_DESCRIPTOR),
      }),
      cpuSeconds: options.cpuSeconds ?? null,
      memoryLimitBytes: (memoryLimitMb + NODE_OVERHEAD_MB) * 1024 * 1024,
      maxResultBytes: options.maxResultBytes ?? MAX_RESULT_BYTES,
      timeoutMs: options.timeoutMs ?? timeoutMs,
      expected,
      label,
      readable,
      layers,
      bundleDirectory: bundleDir,
    }
    // The caller's abort ends all of it; a bundle that cannot be made, and a child that ended, only the rest of the run.
    // One listener for each run: callers have many share a signal.
    const aborting = new AbortController()
    const ending = new AbortController()
    const forwardAbort = () => {
      for (const controller of [aborting, ending]) controller.abort(options.signal?.reason)
    }
    options.signal?.addEventListener('abort', forwardAbort, { once: true })
    // It may have been aborted while the run was prepared.
    if (options.signal?.aborted) forwardAbort()
    try {
      // Found out once for the process, and meanwhile the child boots; it is not told to begin before the answer is known
      // where the kernel is demanded.
      const probing = probe(program, level !== 'node', { signal: aborting.signal })
      const bundling = buildBundle({
        driverSource: driver,
        bundleDir,
        runtimeBeside: true,
        buildRoot,
        readRoots,
        modules: options.modules,
        toolRoot: options.toolRoot,
        signal: ending.signal,
      })
      const running = runJob('sandbox', request, {
        signal: ending.signal,
        onOutput: outputOf(label, options),
        onStart: (job) =>
          void Promise.all([bundling, level === 'kernel' ? probing.then(requireKernel) : undefined]).then(
            () => job.begin(),
            (error) => ending.abort(error),
          ),
      })
      // A child that has ended needs no bundle: one that is still being made is given up.
      const ended = running.finally(() => ending.abort(new BundleNotNeeded()))
      // All are waited for: nothing of this call goes on after it has settled.
      const [ran, bundled, probed] = await Promise.allSettled([ended, bundling, probing])
      if (ran.status === 'rejected') {
        if (ran.reason instanceof NotHeld && probed.status === 'fulfilled') {
          throw unavailable(reportOf(probed.value, program))
        }
        throw unusableDriver(ran.reason, options)
      }
      if (probed.status === 'rejected') throw probed.reason
      /** @type {{ report: Report, missing: [import('./sandbox/isolation.js').Layer, string][] }} */
      const { report, missing } = ran.value.value
      if (noLandlock !== undefined) missing.push(['landlock', noLandlock])
      // What is known of the kernel is kept, so asking again about this very child starts nothing.
      const held = missing.length === 0 ? probed.value : await probe(program, level !== 'node', { missing })
      const isolation = reportOf(held, program)
      const isUnconfined = report.kind === 'broken' && report.code === SANDBOX_LAUNCH_FAILED
      if (isUnconfined) forgetProgramFiles(program)
      if (level === 'kernel') {
        if (Object.values(isolation.guarantees).some(({ held }) => !held)) throw unavailable(isolation)
        if (isUnconfined) throw unconfined(report, isolation)
      }
      if (level === 'best-effort') warnOfMissing(isolation)
      if (bundled.status === 'fulfilled') {
        const { durationMs, bytes, fileErrors } = bundled.value
        return { report, isolation, bundleMs: durationMs, bundleBytes: bytes, fileErrors }
      }
      if (!(bundled.reason instanceof BundleNotNeeded)) throw unusableDriver(bundled.reason, options)
      return { report, isolation, bundleMs: 0, bundleBytes: 0, fileErrors: [] }
    } finally {
      options.signal?.removeEventListener('abort', forwardAbort)
    }
  } finally {
    await removeBundleDirectory(bundleDir)
  }
}

/**
 * @param {import('./sandbox/isolation.js').ProbeAnswer} answer
 */
function requireKernel(answer) {
  if (!Object.values(answer.guarantees).every(({ held }) => held)) throw new NotHeld()
}

/** Ends a bundle that is still being made when its child has ended. */
class BundleNotNeeded extends Error {}

/** Ends a run whose guarantees are not held; what is missing is told once all of it is known. */
class NotHeld extends Error {}

/**
 * @param {ReportedError} error
 * @returns {InstanceType<typeof DiscoveryError>}
 */
function toDiscoveryError({ file, message, type, code }) {
  // The stack of this place says nothing about the project, and taking it costs more than all else.
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    const error = new DiscoveryError(file, message, type)
    return code === undefined ? error : Object.assign(error, { code })
  } finally {
    Error.stackTraceLimit = limit
  }
}

/**
 * @param {readonly string[]} files
 * @param {string} buildRoot
 * @param {SandboxOptions} [options]
 * @returns {Promise<SandboxRunResult>}
 */
async function runFallbackFilesSandboxed(files, buildRoot, options = {}) {
  return runFiles(files, buildRoot, options, true)
}

/**
 * @param {readonly string[]} files
 * @param {string} buildRoot
 * @param {SandboxOptions} options
 * @param {boolean} permissionModel
 * @returns {Promise<SandboxRunResult>}
 */
async function runFiles(files, buildRoot, options, permissionModel) {
  const given = Array.from(requireArray(files, 'files'), (file, index) => requireAbsolutePath(file, `files[${index}]`))
  const root = requireAbsolutePath(buildRoot, 'buildRoot')
  const checked = checkOptions(options)
  checked.signal?.throwIfAborted()
  const canonicalRoot = await requireDirectory(root, 'buildRoot')
  /** @type {Map<string, number>} */
  const seen = new Map()
  for (const [index, file] of given.entries()) {
    const canonical = await requireFile(file, `files[${index}]`, canonicalRoot)
    const first = seen.get(canonical)
    if (first !== undefined) throw invalidValue(`files[${index}]`, `another file than files[${first}]`, file)
    seen.set(canonical, index)
  }
  const nothing = {
    entities: new Map(),
    entitySet: { entities: [] },
    bundleMs: 0,
    bundleBytes: 0,
    provenanceByName: {},
  }
  if (given.length === 0) {
    await requireGrants(canonicalRoot, checked)
    await requireModuleFiles(checked)
    // Which Node another program is could only be told by starting it.
    if (checked.nodePath !== undefined) await requireProgram(checked.nodePath)
    const version = (checked.nodePath ?? process.execPath) === process.execPath ? process.versions.node : ''
    return { ...nothing, errors: [], isolation: reportOfNothing(version) }
  }
  const task = { kind: 'run', files: given, buildRoot: root, params: checked.params ?? {} }
  const run = { label: 'sandbox:run', expected: /** @type {const} */ ('run'), task, buildRoot: canonicalRoot }
  const { report, isolation, bundleMs, bundleBytes, fileErrors } = await runChild(
    { ...run, timeoutMs: RUN_TIMEOUT_MS, permissionModel },
    checked,
  )
  const told = { bundleMs, bundleBytes, isolation }
  const errors = fileErrors.map(toDiscoveryError)
  /**
   * @param {string} message
   * @param {DiscoveryErrorType} [type]
   * @param {SandboxErrorCode} [code]
   */
  const failed = (message, type = 'import', code) => {
    return { ...nothing, ...told, errors: [...errors, toDiscoveryError({ file: '', message, type, code })] }
  }
  if (report.kind === 'unusable') {
    if (isGivenModule(checked, report)) throw unusableModule(checked, report)
    return failed(FORGED, 'import', SANDBOX_RESULT_INVALID)
  }
  if (report.kind === 'broken') return failed(report.message, report.type, report.code)
  if (report.kind !== 'run') return failed(`a run gave a ${report.kind}`, 'import', SANDBOX_RESULT_INVALID)
  for (const error of report.errors) errors.push(toDiscoveryError(error))
  const { entitySet, provenanceByName } = report
  try {
    const entities = (checked.decodeEntitySet ?? decodeEntitySet)(entitySet)
    return { entities, entitySet, errors, provenanceByName, ...told }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return failed(`the entities of sandbox:run cannot be decoded: ${reason}`, 'import', SANDBOX_RESULT_INVALID)
  }
}

/**
 * @param {{ path: string, found: string }[]} list
 * @returns {string} a line each
 */
function listed(list) {
  return list.map(({ path: place, found }) => `${place}: ${found}`).join('\n')
}

/**
 * @param {string} configPath
 * @param {string} projectRoot
 * @param {SandboxOptions} [options]
 * @returns {Promise<{ config: unknown, bundleMs: number, bundleBytes: number, isolation: IsolationReport }>}
 */
async function evaluateConfigSandboxed(configPath, projectRoot, options = {}) {
  const file = requireAbsolutePath(configPath, 'configPath')
  const root = requireAbsolutePath(projectRoot, 'projectRoot')
  const checked = checkOptions(options)
  checked.signal?.throwIfAborted()
  const buildRoot = await requireDirectory(root, 'projectRoot')
  await requireFile(file, 'configPath', buildRoot)
  const { report, fileErrors, ...told } = await runChild(
    {
      label: 'sandbox:config',
      expected: 'value',
      task: { kind: 'config', file, params: checked.params ?? {} },
      buildRoot,
      timeoutMs: CONFIG_TIMEOUT_MS,
      env: process.env.CHANT_ENV === undefined ? {} : { CHANT_ENV: process.env.CHANT_ENV },
    },
    checked,
  )
  const { bundleMs, bundleBytes, isolation } = told
  if (report.kind === 'value') return { config: report.value, bundleMs, bundleBytes, isolation }
  throw evaluationError(report, fileErrors, checked, {
    failed: `Failed to evaluate ${configPath} inside the --sandbox boundary: `,
    refused: `Cannot evaluate ${configPath} inside the --sandbox boundary: it holds values that are not data.`,
  })
}

/**
 * @param {Exclude<Report, { kind: 'value' }>} report
 * @param {ReportedError[]} fileErrors
 * @param {CheckedOptions} options
 * @param {{ failed: string, refused: string }} words
 * @returns {Error}
 */
function evaluationError(report, fileErrors, options, words) {
  switch (report.kind) {
    case 'unusable':
      return isGivenModule(options, report)
        ? unusableModule(options, report)
        : Object.assign(new Error(words.failed + FORGED), { code: SANDBOX_RESULT_INVALID })
    case 'refused':
      return Object.assign(new Error(`${words.refused}\n${listed(report.list)}`), { refused: report.list })
    case 'failed': {
      const cause = toDiscoveryError(report.error)
      return Object.assign(new Error(words.failed + cause.message, { cause }), { file: cause.file, type: cause.type })
    }
    default: {
      const reason =
        report.kind === 'broken' ? report : { message: `an evaluation gave a ${report.kind}`, type: 'import' }
      const cause = toDiscoveryError(fileErrors[0] ?? { file: '', ...reason })
      const { file, type, code } = cause
      return Object.assign(new Error(words.failed + cause.message, { cause }), { file, type, ...(code && { code }) })
    }
  }
}

/**
 * @param {{ file: string, export?: string, args?: unknown[], buildRoot: string }} call
 * @param {SandboxOptions} [options]
 * @returns {Promise<{ value: unknown, isolation: IsolationReport }>}
 */
async function callSandboxed(call, options = {}) {
  const given = requireObject(call, 'call')
  refuseMisspelt(given, 'call', ['file', 'export', 'args', 'buildRoot'])
  const misplaced = OPTIONS.find((name) => given[name] !== undefined)
  if (misplaced !== undefined) {
    throw invalidValue(`call.${misplaced}`, 'among the options, the second argument', given[misplaced])
  }
  const file = requireAbsolutePath(given.file, 'call.file')
  const name = optional(given.export, 'call.export', requireString) ?? 'default'
  const args = optional(given.args, 'call.args', requireArray) ?? []
  const root = requireAbsolutePath(given.buildRoot, 'call.buildRoot')
  const checked = checkOptions(options)
  checked.signal?.throwIfAborted()
  const notData = describeNonData(args)
  if (notData.length > 0) {
    throw invalidType('call.args', `data; it holds\n${listed(notData)}\n`, args)
  }
  const buildRoot = await requireDirectory(root, 'call.buildRoot')
  await requireFile(file, 'call.file', buildRoot)
  const { report, fileErrors, isolation } = await runChild(
    {
      label: 'sandbox:call',
      expected: 'value',
      task: { kind: 'call', file, export: name, arguments: args, params: checked.params ?? {} },
      buildRoot,
      timeoutMs: RUN_TIMEOUT_MS,
    },
    checked,
  )
  if (report.kind === 'value') return { value: report.value, isolation }
  throw evaluationError(report, fileErrors, checked, {
    failed: `Failed to call ${name} of ${file} inside the sandbox: `,
    refused: `Cannot take the result of ${name} of ${file}: it holds values that are not data.`,
  })
}

module.exports = { callSandboxed, evaluateConfigSandboxed, runFallbackFilesSandboxed, runFiles }
