'use strict'

// The options of the sandboxed calls, checked before anything is created. Fails with TypeErrors that name the option.
// Source: `SandboxOptions` in contract/surface.md.

const fs = require('node:fs/promises')

const {
  invalidValue,
  optional,
  requireAbortSignal,
  requireAbsolutePath,
  requireArray,
  requireFunction,
  requireObject,
  requireOneOf,
  requireString,
  requireWholeNumber,
} = require('../arguments')
const { isWithin } = require('../bundle/containment')
const { requireModules, requireParameters } = require('./driver')

/** @typedef {import('../../index.js').SandboxOptions} SandboxOptions */

/** Below this a Node child cannot be expected to start. */
const LEAST_MEMORY_MB = 256

/** A pebibyte: more than any machine has, and still a whole number in bytes. */
const MOST_MEMORY_MB = 2 ** 30

/** About 68 years. */
const MOST_CPU_SECONDS = 2 ** 31 - 1

/** The largest delay that a timer of the system takes, about 24 days in milliseconds. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** A frame tells its length in four bytes. */
const LARGEST_RESULT = 2 ** 32 - 1

// Variables by which a loader or Node itself would run other code, or which the run itself uses.
const FORBIDDEN_VARIABLE =
  /^(NODE_(?!ENV$|DEBUG$|NO_WARNINGS$|DISABLE_COLORS$).*|LD_.*|OPENSSL_.*|GCONV_PATH|SSLKEYLOGFILE|SALLYPORT_.*)$/

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {Record<string, string>}
 */
function requireEnvironment(value, name) {
  // Copied before it is looked at, so that what was checked is what is used.
  const given = { ...requireObject(value, name) }
  for (const [key, text] of Object.entries(given)) {
    const option = `${name}.${key}`
    if (requireString(text, option).includes('\0')) throw invalidValue(option, 'a string without null bytes', text)
    if (key === '' || key.includes('=') || key.includes('\0'))
      throw invalidValue(name, 'an object of variable names', key)
    if (FORBIDDEN_VARIABLE.test(key)) {
      throw invalidValue(option, 'left out: it would change what the child is before it is held', text)
    }
  }
  return /** @type {Record<string, string>} */ (given)
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {number} least
 * @param {number} [most]
 * @returns {number}
 */
function requireAtLeast(value, name, least, most) {
  const number = requireWholeNumber(value, name, most)
  if (number < least) throw invalidValue(name, `at least ${least}`, value)
  return number
}

/**
 * @param {unknown} value
 */
function checkOptions(value) {
  const given = requireObject(value, 'options')
  refuseMisspelt(given, 'options', OPTIONS)
  /**
   * @template T
   * @param {string} key
   * @param {(value: unknown, name: string) => T} check
   */
  const take = (key, check) => optional(given[key], `options.${key}`, check)
  return {
    modules: take('modules', requireModules),
    decodeEntitySet: /** @type {SandboxOptions['decodeEntitySet']} */ (take('decodeEntitySet', requireFunction)),
    params: take('params', requireParameters),
    readRoots:
      take('readRoots', (roots, name) =>
        Array.from(requireArray(roots, name), (root, index) => requireAbsolutePath(root, `${name}[${index}]`)),
      ) ?? [],
    toolRoot: take('toolRoot', requireAbsolutePath),
    env: take('env', requireEnvironment) ?? {},
    timeoutMs: take('timeoutMs', (timeout, name) => requireAtLeast(timeout, name, 1, LONGEST_TIMEOUT_MS)),
    memoryLimitMb: take('memoryLimitMb', (limit, name) => requireAtLeast(limit, name, LEAST_MEMORY_MB, MOST_MEMORY_MB)),
    cpuSeconds: take('cpuSeconds', (seconds, name) => requireAtLeast(seconds, name, 1, MOST_CPU_SECONDS)),
    maxResultBytes: take('maxResultBytes', (bytes, name) => requireAtLeast(bytes, name, 1, LARGEST_RESULT)),
    isolation: take('isolation', (level, name) =>
      requireOneOf(level, name, /** @type {const} */ (['kernel', 'best-effort', 'node'])),
    ),
    nodePath: take('nodePath', requireAbsolutePath),
    outputPrefix: take('outputPrefix', requireString),
    onOutput: /** @type {SandboxOptions['onOutput']} */ (take('onOutput', requireFunction)),
    signal: take('signal', requireAbortSignal),
  }
}

const OPTIONS = Object.freeze(
  /** @type {const} */ ([
    ...['modules', 'decodeEntitySet', 'params', 'readRoots', 'toolRoot', 'env', 'timeoutMs', 'memoryLimitMb'],
    ...['cpuSeconds', 'maxResultBytes', 'isolation', 'nodePath', 'outputPrefix', 'onOutput', 'signal'],
  ]),
)

/**
 * An option that is misspelt asks for something, and would get nothing: less isolation than was meant, for instance. Names
 * that resemble none are left alone, as callers hand on options of their own.
 * @param {Record<string, unknown>} given
 * @param {string} name
 * @param {readonly string[]} known
 */
function refuseMisspelt(given, name, known) {
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue
    const meant = known.find((each) => resembles(key.toLowerCase(), each.toLowerCase()))
    if (meant !== undefined) throw invalidValue(`${name}.${key}`, `called ${name}.${meant}`, given[key])
  }
}

/** Names that are shorter resemble too much. */
const SHORTEST_RESEMBLED = 6

/**
 * @param {string} given
 * @param {string} known
 * @returns {boolean} whether it is longer by a word or two, or differs in two letters at most
 */
function resembles(given, known) {
  if (given === known) return true
  if (known.length < SHORTEST_RESEMBLED) return false
  return given.startsWith(known) || distance(given, known) <= 2
}

/**
 * @param {string} left
 * @param {string} right
 * @returns {number} how many letters have to be put in, taken out or changed
 */
function distance(left, right) {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...left].entries()) {
    const next = [index + 1]
    for (let place = 0; place < right.length; place += 1) {
      next.push(Math.min(next[place] + 1, row[place + 1] + 1, row[place] + (letter === right[place] ? 0 : 1)))
    }
    row = next
  }
  return row[right.length]
}

/**
 * @param {string} given
 * @param {string} name
 * @returns {Promise<string>} the canonical path of a directory that exists
 */
async function requireDirectory(given, name) {
  try {
    const canonical = await fs.realpath(given)
    if ((await fs.stat(canonical)).isDirectory()) return canonical
  } catch (cause) {
    throw Object.assign(invalidValue(name, 'a directory that exists and may be entered', given), { cause })
  }
  throw invalidValue(name, 'a directory', given)
}

/**
 * @param {string} given
 * @param {string} name
 * @param {string} [root] canonical; the file must be inside
 * @returns {Promise<string>} the canonical path of a file that exists
 */
async function requireFile(given, name, root) {
  let canonical
  try {
    canonical = await fs.realpath(given)
    if (!(await fs.stat(canonical)).isFile()) throw invalidValue(name, 'a file', given)
  } catch (cause) {
    if (/** @type {{ code?: unknown }} */ (cause).code === 'ERR_INVALID_ARG_VALUE') throw cause
    throw Object.assign(invalidValue(name, 'a file that exists', given), { cause })
  }
  if (root !== undefined && !isWithin(root, canonical))
    throw invalidValue(name, `a file inside the build root ${root}`, given)
  return canonical
}

module.exports = { checkOptions, refuseMisspelt, requireDirectory, requireFile }
