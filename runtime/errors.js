'use strict'

// The error of one project file, as it is thrown inside the child. It crosses as plain fields and is recognised by its
// name and fields, never by its class: the trusted modules of a caller bring a class of their own. Making one cannot
// fail. Source: contract/sandbox.md, "runFallbackFilesSandboxed".

const { ErrorConstructor, putHidden } = require('./primordials')

/** @typedef {'import' | 'resolution' | 'circular' | 'permission'} DiscoveryErrorType */

const DISCOVERY_ERROR_TYPES = /** @type {readonly DiscoveryErrorType[]} */ ([
  'import',
  'resolution',
  'circular',
  'permission',
])

class DiscoveryError extends ErrorConstructor {
  // Declared, so that they are defined and never assigned: a setter of Object.prototype has no say.
  /** @type {string} */
  file
  /** @type {DiscoveryErrorType} */
  type

  /**
   * @param {string} file the project file it is about; empty where it is about the whole run
   * @param {string} message
   * @param {DiscoveryErrorType} type
   */
  constructor(file, message, type) {
    super(message)
    this.file = file
    this.type = type
  }

  /** @returns {{ name: 'DiscoveryError', file: string, message: string, type: DiscoveryErrorType }} */
  toJSON() {
    return { name: 'DiscoveryError', file: this.file, message: this.message, type: this.type }
  }
}
// On the prototype, so that the stack, which is taken while the object is made, begins with it.
putHidden(DiscoveryError.prototype, 'name', 'DiscoveryError')

/**
 * @param {unknown} error
 * @returns {error is DiscoveryError}
 */
function isDiscoveryError(error) {
  if (typeof error !== 'object' || error === null) return false
  const { name, file, type } = /** @type {Record<string, unknown>} */ (error)
  return name === 'DiscoveryError' && typeof file === 'string' && isDiscoveryErrorType(type)
}

/**
 * @param {unknown} type
 * @returns {type is DiscoveryErrorType}
 */
function isDiscoveryErrorType(type) {
  for (let index = 0; index < DISCOVERY_ERROR_TYPES.length; index += 1) {
    if (DISCOVERY_ERROR_TYPES[index] === type) return true
  }
  return false
}

module.exports = { DISCOVERY_ERROR_TYPES, DiscoveryError, isDiscoveryError }
