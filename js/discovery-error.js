'use strict'

// The DiscoveryError of the surface: the error of one project file of a sandboxed run. It is the runtime's class with its
// arguments checked. Making one fails with ERR_INVALID_ARG_TYPE or ERR_INVALID_ARG_VALUE, naming the argument. Source:
// contract/surface.md, "sandbox", and contract/sandbox.md, "runFallbackFilesSandboxed".

const runtime = require('../runtime/errors')
const { requireOneOf, requireString } = require('./arguments')

/** @typedef {import('../runtime/errors.js').DiscoveryErrorType} DiscoveryErrorType */

class DiscoveryError extends runtime.DiscoveryError {
  /**
   * @param {string} file the project file; empty where it is about the whole run
   * @param {string} message
   * @param {DiscoveryErrorType} type
   */
  constructor(file, message, type) {
    super(
      requireString(file, 'file'),
      requireString(message, 'message'),
      requireOneOf(type, 'type', runtime.DISCOVERY_ERROR_TYPES),
    )
  }
}

module.exports = {
  // The name is on the prototype, where no declaration of a class can say that it is always the same.
  DiscoveryError: /** @type {typeof import('../index.js').DiscoveryError} */ (/** @type {unknown} */ (DiscoveryError)),
}
