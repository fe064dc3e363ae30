'use strict'

// Describes what a project file threw as plain, bounded data. The parent's one table (in Rust) decides from that
// description what kind of error it is; message and type here are what holds where the table knows nothing better.
// Project code made the value, so every look at it may throw: what cannot be read is left out, and nothing throws out of
// here. Source: contract/sandbox.md, "Errors".

const {
  ErrorConstructor,
  StringConstructor,
  append,
  hasInstance,
  isArray,
  put,
  stringSlice,
  stringToWellFormed,
  types,
} = require('./primordials')
const { DiscoveryError, isDiscoveryError } = require('./errors')

/** @typedef {import('./errors.js').DiscoveryErrorType} DiscoveryErrorType */

/**
 * @typedef {object} RawError
 * @property {boolean} isError
 * @property {string} message at most 64 KiB, then cut with a mark
 * @property {string} text the value as `String()` shows it, cut likewise
 * @property {string} [name]
 * @property {string | number} [code]
 * @property {string} [permission]
 * @property {string} [resource]
 * @property {string} [syscall]
 * @property {string} [path]
 * @property {string} [dest]
 * @property {string} [address]
 * @property {string | number} [port]
 * @property {string} [hostname]
 * @property {RawError[]} [errors] of an AggregateError, at most 8
 * @property {RawError} [cause] at most 8 deep
 */

const MAXIMUM_TEXT = 64 * 1024
const MAXIMUM_FIELD = 8 * 1024
const MAXIMUM_DEPTH = 8
const MAXIMUM_ERRORS = 8
/** Errors of errors would otherwise make a tree of 8 to the power of 8. */
const MAXIMUM_DESCRIPTIONS = 32
const CUT = '… [cut]'

const FIELDS = /** @type {const} */ ([
  'code',
  'permission',
  'resource',
  'syscall',
  'path',
  'dest',
  'address',
  'port',
  'hostname',
])

/**
 * @param {string} text
 * @param {number} maximum in UTF-16 units
 * @returns {string} text that is well-formed Unicode, so that every parser takes it
 */
function bounded(text, maximum) {
  return stringToWellFormed(text.length > maximum ? stringSlice(text, 0, maximum - CUT.length) + CUT : text)
}

/**
 * @param {unknown} value
 * @param {string} field
 * @returns {unknown} undefined where there is none, or reading it throws
 */
function read(value, field) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  try {
    return /** @type {Record<string, unknown>} */ (value)[field]
  } catch {
    // An accessor of the project's: what it threw says nothing about the error that is described.
    return undefined
  }
}

/**
 * @param {unknown} value
 * @returns {boolean}
 */
function isError(value) {
  try {
    return types.isNativeError(value) || hasInstance(ErrorConstructor, value)
  } catch {
    // A proxy that refuses to show its prototype is no error that anyone made on purpose.
    return false
  }
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function textOf(value) {
  try {
    return bounded(StringConstructor(value), MAXIMUM_TEXT)
  } catch {
    // Without a prototype, or with a toString() that throws.
    return 'a value that cannot be shown as text'
  }
}

/**
 * @param {unknown} value
 * @returns {RawError}
 */
function describeError(value) {
  /** @type {unknown[]} */
  const described = []

  /**
   * @param {unknown} part
   * @param {number} depth
   * @returns {RawError | undefined} undefined where it is already described, or there is no room
   */
  const describe = (part, depth) => {
    if (depth > MAXIMUM_DEPTH || described.length >= MAXIMUM_DESCRIPTIONS) return undefined
    if (typeof part === 'object' && part !== null) {
      for (let index = 0; index < described.length; index += 1) {
        if (described[index] === part) return undefined
      }
    }
    append(described, part)

    const message = read(part, 'message')
    const text = textOf(part)
    /** @type {RawError} */
    const raw = {
      isError: isError(part),
      message: typeof message === 'string' ? bounded(message, MAXIMUM_TEXT) : text,
      text,
    }
    const name = read(part, 'name')
    if (typeof name === 'string') put(raw, 'name', bounded(name, MAXIMUM_FIELD))
    for (let index = 0; index < FIELDS.length; index += 1) {
      const field = read(part, FIELDS[index])
      const kept = typeof field === 'string' ? bounded(field, MAXIMUM_FIELD) : field
      const numberToo = FIELDS[index] === 'code' || FIELDS[index] === 'port'
      if (typeof kept === 'string' || (numberToo && typeof kept === 'number' && kept === kept)) {
        put(raw, FIELDS[index], kept)
      }
    }
    const errors = describeErrors(read(part, 'errors'), depth)
    if (errors.length > 0) put(raw, 'errors', errors)
    const cause = read(part, 'cause')
    const describedCause = cause === undefined || cause === null ? undefined : describe(cause, depth + 1)
    if (describedCause !== undefined) put(raw, 'cause', describedCause)
    return raw
  }

  /**
   * @param {unknown} errors
   * @param {number} depth
   * @returns {RawError[]}
   */
  const describeErrors = (errors, depth) => {
    /** @type {RawError[]} */
    const list = []
    if (!isList(errors)) return list
    for (let index = 0; index < MAXIMUM_ERRORS; index += 1) {
      const part = read(errors, StringConstructor(index))
      const raw = part === undefined ? undefined : describe(part, depth + 1)
      if (raw !== undefined) append(list, raw)
    }
    return list
  }

  return /** @type {RawError} */ (describe(value, 0))
}

/**
 * @param {unknown} value
 * @returns {boolean}
 */
function isList(value) {
  try {
    return isArray(value)
  } catch {
    // A revoked proxy.
    return false
  }
}

/**
 * @param {unknown} error
 * @returns {DiscoveryErrorType | undefined}
 */
function ownType(error) {
  try {
    return isDiscoveryError(error) ? error.type : undefined
  } catch {
    // An accessor of the project's, as in `read`.
    return undefined
  }
}

/**
 * @param {string} file the project file; empty where it is about the whole run
 * @param {unknown} error
 * @param {DiscoveryErrorType} [fallbackType]
 * @returns {DiscoveryError & { raw: RawError }} `toJSON()` carries `raw` too
 */
function classifyChildError(file, error, fallbackType = 'import') {
  const raw = describeError(error)
  const message = raw.isError ? raw.message : raw.text
  return new ChildError(file, message, ownType(error) ?? fallbackType, raw)
}

class ChildError extends DiscoveryError {
  /** @type {RawError} */
  raw

  /**
   * @param {string} file
   * @param {string} message
   * @param {DiscoveryErrorType} type
   * @param {RawError} raw
   */
  constructor(file, message, type, raw) {
    super(file, message, type)
    this.raw = raw
  }

  /** @override */
  toJSON() {
    return {
      name: /** @type {const} */ ('DiscoveryError'),
      file: this.file,
      message: this.message,
      type: this.type,
      raw: this.raw,
    }
  }
}

module.exports = { classifyChildError, describeError }
