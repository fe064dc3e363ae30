'use strict'

// What holds the child in: which layers are asked for, what they may open, and what the caller is told of it. A layer
// counts only if a probe has shown that it holds. Where the kernel is demanded and not every guarantee is held, fails with
// an Error of code `sandbox_isolation_unavailable` that names what is missing, why, and what to do. Source:
// contract/sandbox.md, "Isolation", and `IsolationReport` in contract/surface.md.

const os = require('node:os')

const binding = require('../binding')
const { runJob } = require('../job')
const { SANDBOX_ISOLATION_UNAVAILABLE } = require('./codes')
const { launcherPath } = require('./launcher')
const { nodeProgram } = require('./node-program')
const { optional, requireAbsolutePath, requireObject } = require('../arguments')
const { refuseMisspelt } = require('../spelling')

/**
 * @typedef {import('../../index.js').IsolationReport} IsolationReport
 * @typedef {import('../../index.js').IsolationGuarantee} IsolationGuarantee
 * @typedef {import('./node-program.js').NodeProgram} NodeProgram
 * @typedef {'kernel' | 'best-effort' | 'node'} Level
 * @typedef {'landlock' | 'seccomp' | 'resource-limits'} Layer
 */

/**
 * @typedef {object} TriedLayer
 * @property {Record<string, boolean> | null} refused what a probe was refused under this layer alone
 * @property {string | null} reason why it could not be applied
 */

/**
 * @typedef {object} ProbeAnswer
 * @property {{ landlockAbi: number | null, landlock: TriedLayer, seccomp: TriedLayer, resourceLimits: TriedLayer }} layers
 * @property {IsolationReport['guarantees']} guarantees
 */

/** @typedef {{ landlock: { readable: string[], executable: string[], writable: string[] } | null, seccomp: boolean, required: boolean }} Layers */

/** @typedef {{ loader?: string | null, libraries?: string[], reason?: string }} ProgramFiles */

const NO_LAYERS = Object.freeze({ landlock: null, seccomp: false, required: false })

const MEANING = Object.freeze({
  files: 'project source may read and change files outside the project',
  network: 'project source may reach the network',
  processes: 'project source may start programs',
  signals: 'project source may signal other processes',
  memory: 'project source may use all memory',
})

const ADVICE =
  'Run `npx sallyport doctor` for what each layer does here. In a container, allow the system calls landlock_* and ' +
  "seccomp in its profile; Landlock needs Linux 5.13 or later and 'landlock' in the kernel's lsm= list."

/** @type {Map<string, Promise<ProgramFiles>>} by the identity of the program */
const filesOfPrograms = new Map()

/**
 * @param {NodeProgram} program
 * @returns {Promise<ProgramFiles>}
 */
function programFiles(program) {
  let files = filesOfPrograms.get(program.identity)
  if (files === undefined) {
    files = runJob('programFiles', { path: program.path }).then(({ value }) => value)
    filesOfPrograms.set(program.identity, files)
    // Only what was found out is kept: what could not be looked at in a bad moment is looked at again.
    const forget = () => forgetProgramFiles(program)
    files.then(({ reason }) => reason !== undefined && forget(), forget)
  }
  return files
}

/**
 * Has it be found out again, since a child that was started with what is known could not be confined: libraries that were
 * replaced since, for instance.
 * @param {NodeProgram} program
 */
function forgetProgramFiles(program) {
  filesOfPrograms.delete(program.identity)
}

/**
 * @param {NodeProgram} program
 * @param {boolean} kernel
 * @param {{ missing?: [Layer, string][], signal?: AbortSignal }} [options] `missing`: layers that a child went without,
 *   and why
 * @returns {Promise<ProbeAnswer>} its guarantees are those of such a child
 */
async function probe(program, kernel, { missing = [], signal } = {}) {
  const nodeMajor = Number(program.version.split('.')[0])
  const request = { launcher: launcherPath(), tempDirectory: os.tmpdir(), nodeMajor, kernel, missing }
  return (await runJob('probe', request, { signal })).value
}

/**
 * The layers for one child.
 * @param {Level} level
 * @param {NodeProgram} program
 * @param {string[]} readable canonical
 * @returns {Promise<{ layers: Layers, reason?: string }>} `reason`: why Landlock is left out
 */
async function layersFor(level, program, readable) {
  if (level === 'node') return { layers: NO_LAYERS }
  const { loader, libraries = [], reason } = await programFiles(program)
  const required = level === 'kernel'
  if (reason !== undefined) return { layers: { landlock: null, seccomp: true, required }, reason }
  const executable = [program.path, ...(typeof loader === 'string' ? [loader] : [])]
  const landlock = { readable: [...readable, ...libraries], executable, writable: ['/dev/null'] }
  return { layers: { landlock, seccomp: true, required } }
}

/**
 * @param {ProbeAnswer} answer
 * @param {NodeProgram} program
 * @returns {IsolationReport}
 */
function reportOf(answer, program) {
  const { guarantees } = answer
  const held = Object.values(guarantees).map((guarantee) => guarantee.held)
  const isPartlyHeld = Object.entries(guarantees).some(([name, { held: isHeld }]) => isHeld && name !== 'memory')
  return {
    level: held.every(Boolean) ? 'kernel' : isPartlyHeld ? 'partial' : 'node',
    guarantees,
    kernel: os.release(),
    landlockAbi: answer.layers.landlockAbi,
    node: program.version,
  }
}

/**
 * @param {boolean} held
 * @param {string} reason
 * @returns {IsolationReport['guarantees']} the same of each
 */
function allGuarantees(held, reason) {
  const each = () => ({ held, by: [], reason })
  return { files: each(), network: each(), processes: each(), signals: each(), memory: each() }
}

/**
 * What is told where nothing was started, and nothing was asked of the kernel either.
 * @param {string} version of the Node that would have been started; empty where it was not asked
 * @returns {IsolationReport}
 */
function reportOfNothing(version) {
  const guarantees = allGuarantees(true, 'nothing was started, since there was nothing to evaluate')
  return { level: 'kernel', guarantees, kernel: os.release(), landlockAbi: null, node: version }
}

/**
 * @param {IsolationReport} report
 * @returns {[keyof typeof MEANING, IsolationGuarantee][]} what is not held
 */
function missingGuarantees(report) {
  return /** @type {[keyof typeof MEANING, IsolationGuarantee][]} */ (Object.entries(report.guarantees)).filter(
    ([, { held }]) => !held,
  )
}

/**
 * @param {IsolationReport} report
 * @returns {Error & { code: string, isolation: IsolationReport }}
 */
function unavailable(report) {
  const lines = missingGuarantees(report).map(([name, { reason }]) => `  ${name}: ${reason}`)
  const message = `The sandboxed run cannot be held by the kernel here. Not held:\n${lines.join('\n')}\n${ADVICE}`
  return Object.assign(new Error(message), { code: SANDBOX_ISOLATION_UNAVAILABLE, isolation: report })
}

/**
 * A child that could not be confined, and so was never started.
 * @param {{ message: string }} broken
 * @param {IsolationReport} report what the kernel holds by itself
 * @returns {Error & { code: string, isolation: IsolationReport }}
 */
function unconfined({ message }, report) {
  const isolation = { ...report, level: /** @type {const} */ ('node'), guarantees: allGuarantees(false, message) }
  const told = `${message}. It was demanded that the kernel holds it.`
  return Object.assign(new Error(told), { code: SANDBOX_ISOLATION_UNAVAILABLE, isolation })
}

/**
 * @param {IsolationReport} report
 * @returns {boolean} whether nobody has been told of just this in this process; from now on somebody has
 */
function isToldFirst(report) {
  return binding.isToldFirst(
    `isolation:${missingGuarantees(report)
      .map(([name]) => name)
      .join()}`,
  )
}

/**
 * Tells, once for the process and for what is missing, what a run goes without.
 * @param {IsolationReport} report
 */
function warnOfMissing(report) {
  const missing = missingGuarantees(report)
  if (missing.length === 0 || !isToldFirst(report)) return
  const lines = missing.map(([name, { reason }]) => `  ${name}: ${MEANING[name]} (${reason})`)
  process.stderr.write(
    `sallyport: the sandbox is held by less than the kernel could give:\n${lines.join('\n')}\n${ADVICE}\n`,
  )
}

/**
 * @param {TriedLayer} layer
 * @param {string} [reason] why it is left out of a run although it can be applied
 * @returns {import('../../index.js').IsolationLayer}
 */
function layerOf({ refused, reason: notApplied }, reason = notApplied ?? undefined) {
  const attempts = Object.entries(refused ?? {})
  /** @param {boolean} wanted */
  const named = (wanted) => attempts.filter(([, isRefused]) => isRefused === wanted).map(([name]) => name)
  const told = { applied: refused !== null, refused: named(true), allowed: named(false) }
  return reason === undefined ? told : { ...told, reason }
}

/**
 * @param {{ nodePath?: string }} [options]
 * @returns {Promise<import('../../index.js').IsolationProbe>}
 */
async function probeIsolation(options = {}) {
  const given = requireObject(options, 'options')
  refuseMisspelt(given, 'options', ['nodePath'])
  const nodePath = optional(given.nodePath, 'options.nodePath', requireAbsolutePath)
  const program = await nodeProgram(nodePath ?? process.execPath)
  const { reason } = await programFiles(program)
  /** @type {[Layer, string][]} */
  const missing = reason === undefined ? [] : [['landlock', reason]]
  const answer = await probe(program, true, { missing })
  const { landlock, seccomp, resourceLimits } = answer.layers
  return {
    ...reportOf(answer, program),
    // Limits have nothing to do with namespaces: what was refused under them alone is refused to this very process.
    userNamespaces: resourceLimits.refused === null ? null : !resourceLimits.refused.namespace,
    layers: {
      landlock: layerOf(landlock, reason),
      seccomp: layerOf(seccomp),
      'resource-limits': layerOf(resourceLimits),
    },
  }
}

module.exports = {
  forgetProgramFiles,
  isToldFirst,
  layersFor,
  probe,
  probeIsolation,
  reportOf,
  reportOfNothing,
  unavailable,
  unconfined,
  warnOfMissing,
}
