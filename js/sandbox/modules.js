'use strict'

// The trusted modules that a caller gives in place of sallyport's own: that they are there, and the TypeError (code
// ERR_INVALID_ARG_VALUE) for one that lacks what the driver imports from it. Source: contract/sandbox.md, "The driver".

const { invalidValue } = require('../arguments')
const { requireFile } = require('./options')

/**
 * @typedef {ReturnType<typeof import('./options').checkOptions>} CheckedOptions
 * @typedef {{ kind: 'unusable', module: string, name: string }} Unusable what the child says of such a module
 */

/** @param {CheckedOptions} options */
async function requireModuleFiles(options) {
  for (const [key, module] of Object.entries(options.modules ?? {})) await requireFile(module, `options.modules.${key}`)
}

/** What the driver imports from which of the caller's modules. */
const MODULE_OF_EXPORT = Object.freeze({
  collectEntities: 'collect',
  resolveAttrRefs: 'resolve',
  encodeEntitySet: 'entityWireCodec',
  getProvenance: 'provenance',
  setBuildParams: 'params',
  classifyChildError: 'childErrors',
})

/**
 * @param {unknown} error why the driver cannot be bundled, or why the run ended
 * @param {CheckedOptions} options
 * @returns {unknown} the same, or a TypeError where a module of the caller's lacks an export
 */
function unusableDriver(error, options) {
  const { errors } = /** @type {{ errors?: { text: string }[] }} */ (error ?? {})
  for (const { text } of Array.isArray(errors) ? errors : []) {
    const name = /^No matching export in .* for import "(\w+)"$/s.exec(text)?.[1]
    const key = MODULE_OF_EXPORT[/** @type {keyof typeof MODULE_OF_EXPORT} */ (name)]
    const module = options.modules?.[/** @type {keyof import('../../index.js').TrustedModules} */ (key)]
    if (module !== undefined) {
      const cause = error
      return Object.assign(
        invalidValue(`options.modules.${key}`, `a module that exports the function ${name}`, module),
        {
          cause,
        },
      )
    }
  }
  return error
}

// Only a trusted module of the caller's can be unusable; sallyport's own are not.
const FORGED = 'the result says that a module is unusable which was not given: something besides the driver wrote it'

/**
 * @param {CheckedOptions} options
 * @param {Unusable} report
 * @returns {boolean}
 */
function isGivenModule(options, report) {
  return Object.values(options.modules ?? {}).includes(report.module)
}

/**
 * @param {CheckedOptions} options
 * @param {Unusable} report
 * @returns {TypeError}
 */
function unusableModule(options, report) {
  const key = Object.entries(options.modules ?? {}).find(([, module]) => module === report.module)?.[0]
  const name = key === undefined ? 'options.modules' : `options.modules.${key}`
  return invalidValue(name, `a module that exports the function ${report.name}`, report.module)
}

module.exports = { FORGED, isGivenModule, requireModuleFiles, unusableDriver, unusableModule }
