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
const { refuseMisspelt } = require('../spelling')
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

/** It crosses over as one string, of which V8 takes 512 MiB, beside up to 33 MiB of errors. */
const LARGEST_RESULT = 448 * 2 ** 20

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

/** The names of all of them. */
const OPTIONS = Object.freeze(
  /** @type {const} */ ([
    ...['modules', 'decodeEntitySet', 'params', 'readRoots', 'toolRoot', 'env', 'timeoutMs', 'memoryLimitMb'],
    ...['cpuSeconds', 'maxResultBytes', 'isolation', 'nodePath', 'outputPrefix', 'onOutput', 'signal'],
  ]),
)

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

module.exports = { OPTIONS, checkOptions, requireDirectory, requireFile }
