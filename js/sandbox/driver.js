'use strict'

// The driver's text for callers: their arguments checked, the trusted modules filled in with sallyport's own, the text
// made by the addon. Fails with TypeErrors that name the argument. Source: contract/sandbox.md, "The driver".

const binding = require('../binding')
const {
  invalidType,
  invalidValue,
  optional,
  requireAbsolutePath,
  requireArray,
  requireObject,
} = require('../arguments')
const { toJson } = require('../json')
const { OWN_MODULES } = require('./runtime-modules')

/**
 * @typedef {import('../../index.js').TrustedModules} TrustedModules
 * @typedef {import('../../index.js').GenerateDriverOptions} GenerateDriverOptions
 * @typedef {Record<string, string | number | boolean>} Parameters
 */

const REQUIRED_MODULES = /** @type {const} */ (['collect', 'resolve', 'entityWireCodec', 'provenance'])
const OPTIONAL_MODULES = /** @type {const} */ (['params', 'childErrors'])

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {TrustedModules}
 */
function requireModules(value, name) {
  const given = requireObject(value, name)
  /** @type {Record<string, string>} */
  const modules = {}
  for (const key of REQUIRED_MODULES) modules[key] = requireAbsolutePath(given[key], `${name}.${key}`)
  for (const key of OPTIONAL_MODULES) {
    const module = optional(given[key], `${name}.${key}`, requireAbsolutePath)
    if (module !== undefined) modules[key] = module
  }
  return /** @type {TrustedModules} */ (/** @type {unknown} */ (modules))
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {Parameters}
 */
function requireParameters(value, name) {
  const given = requireObject(value, name)
  for (const [key, parameter] of Object.entries(given)) {
    const kind = typeof parameter
    if (kind !== 'string' && kind !== 'number' && kind !== 'boolean') {
      throw invalidType(`${name}.${key}`, 'of type string, number or boolean', parameter)
    }
    if (kind === 'number' && !Number.isFinite(parameter))
      throw invalidValue(`${name}.${key}`, 'a finite number', parameter)
  }
  return /** @type {Parameters} */ ({ ...given })
}

/**
 * @param {TrustedModules | undefined} modules
 * @returns {Record<string, string>}
 */
function allModules(modules) {
  return { ...OWN_MODULES, ...modules }
}

/**
 * @param {Record<string, unknown>} task
 * @param {TrustedModules | undefined} modules
 * @returns {string}
 */
function driverSource(task, modules) {
  return binding.generateDriverSource(toJson(task), toJson(allModules(modules)))
}

/**
 * @param {GenerateDriverOptions} options
 * @returns {string}
 */
function generateDriverSource(options) {
  const given = requireObject(options, 'options')
  const files = Array.from(requireArray(given.files, 'options.files'), (file, index) =>
    requireAbsolutePath(file, `options.files[${index}]`),
  )
  const buildRoot = requireAbsolutePath(given.buildRoot, 'options.buildRoot')
  const params = optional(given.params, 'options.params', requireParameters)
  const modules = optional(given.modules, 'options.modules', requireModules)
  return driverSource({ kind: 'run', files, buildRoot, params: params ?? {} }, modules)
}

/**
 * @param {string} configPath
 * @param {{ modules?: TrustedModules }} [options]
 * @returns {string}
 */
function generateConfigDriverSource(configPath, options = {}) {
  const file = requireAbsolutePath(configPath, 'configPath')
  const modules = optional(requireObject(options, 'options').modules, 'options.modules', requireModules)
  return driverSource({ kind: 'config', file }, modules)
}

module.exports = {
  driverSource,
  generateConfigDriverSource,
  generateDriverSource,
  requireModules,
  requireParameters,
}
