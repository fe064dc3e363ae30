'use strict'

// The build parameters of a run, bound before the first project file is imported. They are kept under a `Symbol.for` key
// of the global object, so that every copy of this module in a bundle answers alike. Fails with ERR_INVALID_ARG_TYPE
// where a value is no string, number or boolean. Source: contract/sandbox.md, "runFallbackFilesSandboxed".

const { TypeErrorConstructor, freeze, isArray, keys, put, putHidden } = require('./primordials')

/** @typedef {Record<string, string | number | boolean>} BuildParams */

const BUILD_PARAMS = Symbol.for('sallyport.buildParams')
const globalObject = /** @type {Record<symbol, BuildParams | undefined>} */ (/** @type {unknown} */ (globalThis))

/**
 * @param {string} name
 * @param {string} expected
 * @returns {TypeError}
 */
function invalidType(name, expected) {
  const error = new TypeErrorConstructor(`The build parameter "${name}" must be ${expected}.`)
  put(error, 'code', 'ERR_INVALID_ARG_TYPE')
  return error
}

/**
 * Replaces all parameters; later changes to the object that was given have no effect.
 * @param {BuildParams} params
 */
function setBuildParams(params) {
  if (typeof params !== 'object' || params === null || isArray(params)) {
    throw invalidType('params', 'a record of strings, numbers and booleans')
  }
  /** @type {BuildParams} */
  const copy = {}
  const names = keys(params)
  for (let index = 0; index < names.length; index += 1) {
    const value = params[names[index]]
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
      throw invalidType(names[index], 'a string, a number or a boolean')
    }
    put(copy, names[index], value)
  }
  putHidden(globalObject, BUILD_PARAMS, freeze(copy))
}

/**
 * @returns {Readonly<BuildParams>} empty where none were bound
 */
function getBuildParams() {
  return globalObject[BUILD_PARAMS] ?? freeze({})
}

module.exports = { getBuildParams, setBuildParams }
