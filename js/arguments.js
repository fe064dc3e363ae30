'use strict'

// Checks of what callers pass in, before anything native is called. Each check gives back the value it was given, or
// throws a TypeError in the form of Node's own: ERR_INVALID_ARG_TYPE for a wrong or missing type, ERR_INVALID_ARG_VALUE
// for a value that cannot be, both naming the option (`options.limits.maxFiles`), what was expected and what was
// received. Source of the rule: contract/surface.md, "Errors, in general".

const path = require('node:path')
const { inspect } = require('node:util')

// Node cuts what it quotes at the same length, so that a huge value does not become a huge message.
const QUOTED_LENGTH = 128

/**
 * @param {unknown} value
 * @returns {string} the value as Node's messages describe what they received
 */
function describe(value) {
  if (value === undefined || value === null) return String(value)
  if (typeof value === 'function') return value.name === '' ? 'function' : `function ${value.name}`
  if (typeof value === 'object') {
    const name = value.constructor?.name
    return typeof name === 'string' && name !== '' ? `an instance of ${name}` : inspect(value, { depth: -1 })
  }
  return `type ${typeof value} (${quote(value)})`
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function quote(value) {
  const text = inspect(value)
  return text.length > QUOTED_LENGTH ? `${text.slice(0, QUOTED_LENGTH)}...` : text
}

/**
 * @param {string} name
 * @returns {'property' | 'argument'} the word Node uses for a name of this form
 */
function kindOf(name) {
  return /[.[]/.test(name) ? 'property' : 'argument'
}

/**
 * @param {string} name the argument or option, as the caller writes it
 * @param {string} expected such as `of type string`
 * @param {unknown} received
 * @returns {TypeError & { code: string }}
 */
function invalidType(name, expected, received) {
  const message = `The "${name}" ${kindOf(name)} must be ${expected}. Received ${describe(received)}`
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })
}

/**
 * @param {string} name the argument or option, as the caller writes it
 * @param {string} expected such as `a non-empty path`
 * @param {unknown} received
 * @returns {TypeError & { code: string }}
 */
function invalidValue(name, expected, received) {
  const message = `The ${kindOf(name)} '${name}' must be ${expected}. Received ${quote(received)}`
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_VALUE' })
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requireString(value, name) {
  if (typeof value !== 'string') throw invalidType(name, 'of type string', value)
  return value
}

/**
 * A path that can name something: not empty (which would silently mean the working directory) and without a NUL (at
 * which the system would cut it off).
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requirePath(value, name) {
  const text = requireRelativePath(value, name)
  if (text === '') throw invalidValue(name, 'a non-empty path', text)
  return text
}

/**
 * A path made absolute, a relative one from the working directory.
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function resolvePath(value, name) {
  return path.resolve(requirePath(value, name))
}

/**
 * Text that can stand for a path relative to some root; it may be empty, which is what `path.relative` calls the root.
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requireRelativePath(value, name) {
  const text = requireString(value, name)
  if (text.includes('\0')) throw invalidValue(name, 'a path without null bytes', text)
  return text
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requireAbsolutePath(value, name) {
  const text = requirePath(value, name)
  if (!path.isAbsolute(text)) throw invalidValue(name, 'an absolute path', text)
  return text
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown[]}
 */
function requireArray(value, name) {
  if (!Array.isArray(value)) throw invalidType(name, 'an instance of Array', value)
  return value
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string[]}
 */
function requireStrings(value, name) {
  // Array.from visits holes too, which `map` would let through.
  return Array.from(requireArray(value, name), (element, index) => requireString(element, `${name}[${index}]`))
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string[]}
 */
function requirePaths(value, name) {
  return Array.from(requireArray(value, name), (element, index) => requirePath(element, `${name}[${index}]`))
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {Record<string, unknown>}
 */
function requireObject(value, name) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidType(name, 'of type object', value)
  return /** @type {Record<string, unknown>} */ (value)
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {(...values: any[]) => unknown}
 */
function requireFunction(value, name) {
  if (typeof value !== 'function') throw invalidType(name, 'of type function', value)
  return /** @type {(...values: any[]) => unknown} */ (value)
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {boolean}
 */
function requireBoolean(value, name) {
  if (typeof value !== 'boolean') throw invalidType(name, 'of type boolean', value)
  return value
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {number}
 */
function requireFiniteNumber(value, name) {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!Number.isFinite(value)) throw invalidValue(name, 'a finite number', value)
  return value
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {number} [maximum]
 * @returns {number} a whole number from 0 to the maximum
 */
function requireWholeNumber(value, name, maximum = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!Number.isSafeInteger(value) || value < 0 || value > maximum) {
    throw invalidValue(name, `a whole number from 0 to ${maximum}`, value)
  }
  return value
}

/**
 * @template {string} T
 * @param {unknown} value
 * @param {string} name
 * @param {readonly T[]} choices
 * @returns {T}
 */
function requireOneOf(value, name, choices) {
  const text = requireString(value, name)
  const choice = choices.find((candidate) => candidate === text)
  if (choice === undefined) throw invalidValue(name, `one of: ${choices.map(quote).join(', ')}`, text)
  return choice
}

/**
 * By what it can do, not by its class: a test runner's context has an AbortSignal class of its own.
 * @param {unknown} value
 * @param {string} name
 * @returns {AbortSignal}
 */
function requireAbortSignal(value, name) {
  const signal = /** @type {Partial<AbortSignal> | null} */ (value)
  if (
    typeof signal !== 'object' ||
    signal === null ||
    typeof signal.aborted !== 'boolean' ||
    typeof signal.addEventListener !== 'function' ||
    typeof signal.removeEventListener !== 'function' ||
    typeof signal.throwIfAborted !== 'function'
  ) {
    throw invalidType(name, 'an instance of AbortSignal', value)
  }
  return /** @type {AbortSignal} */ (signal)
}

/**
 * @template T
 * @param {unknown} value
 * @param {string} name
 * @param {(value: unknown, name: string) => T} check
 * @returns {T | undefined} undefined where the option was not given
 */
function optional(value, name, check) {
  return value === undefined ? undefined : check(value, name)
}

module.exports = {
  invalidType,
  invalidValue,
  optional,
  requireAbortSignal,
  requireAbsolutePath,
  requireArray,
  requireBoolean,
  requireFiniteNumber,
  requireFunction,
  requireObject,
  requireOneOf,
  requirePath,
  requirePaths,
  requireRelativePath,
  requireString,
  requireStrings,
  requireWholeNumber,
  resolvePath,
}
