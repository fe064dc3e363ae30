'use strict'

// The error classes, and how a failure that crossed as data becomes one of them. Codes, phases and dispositions are not
// known here: they come from the addon's one table. Source of the rules: contract/failures.md and contract/surface.md,
// "Errors, in general". A code that is not in the table is a TypeError (ERR_INVALID_ARG_VALUE), never a class of its own.

const binding = require('./binding')
const { fromJson } = require('./json')
const { invalidValue, optional, requireBoolean, requireObject, requireOneOf, requireString } = require('./arguments')

/**
 * @typedef {import('../index.js').ContainedExecutionFailureCode} ContainedExecutionFailureCode
 * @typedef {import('../index.js').ContainedExecutionFailurePhase} ContainedExecutionFailurePhase
 * @typedef {import('../index.js').ContainedExecutionFailureDisposition} ContainedExecutionFailureDisposition
 * @typedef {import('../index.js').ContainedExecutionFailureRemediation} ContainedExecutionFailureRemediation
 */

/**
 * @typedef {object} FailureTableRow
 * @property {ContainedExecutionFailureCode} code
 * @property {ContainedExecutionFailurePhase} phase
 * @property {ContainedExecutionFailureDisposition} disposition
 * @property {ContainedExecutionFailureRemediation} remediation
 */

/**
 * A failure as the addon hands it over; `FailureRecord` in src/failure.rs.
 * @typedef {object} FailureRecord
 * @property {'contained' | 'cleanup' | 'diagnostic' | 'checkpoint' | 'system' | 'aborted' | 'hook' | 'internal'} kind
 * @property {string} message
 * @property {string} [code]
 * @property {string} [diagnostic]
 * @property {string} [mirrorRoot]
 * @property {number} [errno]
 * @property {string} [syscall]
 * @property {string} [path]
 * @property {string} [relativePath]
 * @property {string} [rule]
 * @property {string} [nodeKind]
 * @property {number} [links]
 * @property {number} [limit]
 * @property {number} [value]
 * @property {number} [hook]
 * @property {FailureRecord} [cause]
 * @property {FailureRecord} [preparationError]
 */

/** @type {{ codes: FailureTableRow[], approvalFallbackReasons: string[], checkpointCodes: string[], sandboxCodes: string[] }} */
const failureTable = fromJson(binding.failureTable())

/** @type {ReadonlyMap<string, FailureTableRow>} */
const rows = new Map(failureTable.codes.map((row) => [row.code, row]))

const everyCode = new Set(
  /** @type {string[]} */ ([
    ...failureTable.codes.map(({ code }) => code),
    ...failureTable.checkpointCodes,
    ...failureTable.sandboxCodes,
  ]),
)

/**
 * A code that the addon's table has: one that is misspelt fails when the package is loaded.
 * @template {string} T
 * @param {T} code
 * @returns {T}
 */
function known(code) {
  if (!everyCode.has(code))
    throw internalError(`the addon's table of failures has no '${code}': is it of another version?`)
  return code
}

const phases = [...new Set(failureTable.codes.map((row) => row.phase))]

/** The phases whose every failure is mended by a new session. */
const sessionStartPhases = new Set(
  phases.filter((phase) =>
    failureTable.codes.every((row) => row.phase !== phase || row.remediation === 'session-start'),
  ),
)

/**
 * @param {unknown} code
 * @returns {FailureTableRow}
 */
function rowOf(code) {
  const row = rows.get(requireString(code, 'code'))
  if (row === undefined) throw invalidValue('code', 'one of CONTAINED_EXECUTION_FAILURE_CODES', code)
  return row
}

/**
 * A phase that was given in place of the code's own brings its own remediation with it; what the code says by itself,
 * whatever its phase, stays.
 * @param {FailureTableRow} row
 * @param {ContainedExecutionFailurePhase} phase
 * @returns {ContainedExecutionFailureRemediation}
 */
function remediationIn(row, phase) {
  const saidByCode = row.remediation === 'session-start' && !sessionStartPhases.has(row.phase)
  return saidByCode || sessionStartPhases.has(phase) ? 'session-start' : 'none'
}

/**
 * Names are on the prototypes, so that the stack, which is taken while the object is made, begins with them.
 * @param {Function} constructor
 */
function nameErrors(constructor) {
  Object.defineProperty(constructor.prototype, 'name', { value: constructor.name, writable: true, configurable: true })
}

class ContainedExecutionFailureError extends Error {
  /**
   * @param {ContainedExecutionFailureCode} code
   * @param {ErrorOptions & { phase?: ContainedExecutionFailurePhase, executionStarted?: boolean }} [options]
   */
  constructor(code, options) {
    const row = rowOf(code)
    const given = optional(options, 'options', requireObject) ?? {}
    const phase = optional(given.phase, 'options.phase', (value, name) => requireOneOf(value, name, phases))
    const executionStarted = optional(given.executionStarted, 'options.executionStarted', requireBoolean)
    super(row.code, 'cause' in given ? { cause: given.cause } : undefined)
    this.code = row.code
    this.phase = phase ?? row.phase
    this.executionStarted = executionStarted ?? false
    this.disposition = row.disposition
    this.remediation = remediationIn(row, this.phase)
  }
}
nameErrors(ContainedExecutionFailureError)

class ContainedExecutionCleanupUnconfirmedError extends ContainedExecutionFailureError {
  /**
   * @param {string} mirrorRoot
   * @param {ErrorOptions} [options]
   */
  constructor(mirrorRoot, options) {
    requireString(mirrorRoot, 'mirrorRoot')
    super('contained_execution_cleanup_unconfirmed', options)
    this.mirrorRoot = mirrorRoot
  }
}
nameErrors(ContainedExecutionCleanupUnconfirmedError)

class FileCheckpointDiagnosticError extends Error {
  /**
   * @param {string} message
   * @param {string} diagnostic
   */
  constructor(message, diagnostic) {
    super(requireString(message, 'message'))
    this.code = message
    this.diagnostic = requireString(diagnostic, 'diagnostic')
  }
}
nameErrors(FileCheckpointDiagnosticError)

/**
 * A fault of this package, which is reported and never hidden.
 * @param {string} message
 * @param {ErrorOptions} [options]
 * @returns {Error & { code: string }}
 */
function internalError(message, options) {
  return Object.assign(new Error(message, options), { code: 'ERR_INTERNAL' })
}

/** The facts that a failure carries where they apply, in the order in which an inspected error shows them. */
const FACTS = /** @type {const} */ (['relativePath', 'rule', 'nodeKind', 'links', 'limit', 'value'])

/**
 * What only the JavaScript half of a job knows about a failure.
 * @typedef {object} FailureContext
 * @property {readonly unknown[]} [thrown] what hooks threw, by number
 * @property {{ reason: unknown }} [calledOff] why the job was called off
 */

/**
 * @param {FailureRecord} record
 * @param {ErrorOptions | undefined} options
 * @returns {Error}
 */
function bareError(record, options) {
  switch (record.kind) {
    case 'contained':
      return new ContainedExecutionFailureError(/** @type {ContainedExecutionFailureCode} */ (record.code), options)
    case 'cleanup':
      return new ContainedExecutionCleanupUnconfirmedError(/** @type {string} */ (record.mirrorRoot), options)
    case 'diagnostic':
      return new FileCheckpointDiagnosticError(record.message, /** @type {string} */ (record.diagnostic))
    case 'checkpoint':
      return Object.assign(new Error(record.message, options), { code: record.code })
    case 'system': {
      const { errno, code, syscall, path } = record
      return Object.assign(new Error(record.message, options), { errno, code, syscall, path })
    }
    case 'internal':
      return internalError(record.message, options)
    default:
      return internalError(`sallyport met a failure of the unknown kind '${record.kind}', please report it`, options)
  }
}

/**
 * @param {FailureRecord} record
 * @param {FailureContext} [context]
 * @returns {unknown} an error; or, for a hook or an aborted signal, the very value that was thrown or given as reason
 */
function fromRecord(record, context = {}) {
  if (record.kind === 'hook' && context.thrown !== undefined && record.hook !== undefined) {
    return context.thrown[record.hook]
  }
  if (record.kind === 'aborted' && context.calledOff !== undefined) return context.calledOff.reason

  const error = bareError(record, record.cause === undefined ? undefined : { cause: fromRecord(record.cause, context) })
  /** @type {Record<string, unknown>} */
  const facts = {}
  for (const fact of FACTS) {
    if (record[fact] !== undefined) facts[fact] = record[fact]
  }
  if (record.preparationError !== undefined) facts.preparationError = fromRecord(record.preparationError, context)
  return Object.assign(error, facts)
}

module.exports = {
  ContainedExecutionCleanupUnconfirmedError,
  ContainedExecutionFailureError,
  FileCheckpointDiagnosticError,
  failureTable,
  fromRecord,
  internalError,
  known,
  rowOf,
}
