'use strict'

// The one implementation of the package; index.mjs hands on the same objects, so no class exists twice. Loading fails
// with ERR_NATIVE_BINDING where the addon cannot be loaded. Source of the list: contract/surface.md.

const errors = require('./js/errors')
const driver = require('./js/sandbox/driver')
const sandbox = require('./js/sandbox')

module.exports = {
  ...require('./js/mirror'),
  ...require('./js/tree'),
  ...require('./js/git'),
  ...require('./js/paths'),
  ...require('./js/failures'),
  callSandboxed: sandbox.callSandboxed,
  evaluateConfigSandboxed: sandbox.evaluateConfigSandboxed,
  probeIsolation: require('./js/sandbox/isolation').probeIsolation,
  runFallbackFilesSandboxed: sandbox.runFallbackFilesSandboxed,
  ...require('./js/entities'),
  bundleDriver: require('./js/bundle').bundleDriver,
  classifyChildError: require('./js/sandbox/classify').classifyChildError,
  DiscoveryError: require('./js/discovery-error').DiscoveryError,
  generateConfigDriverSource: driver.generateConfigDriverSource,
  generateDriverSource: driver.generateDriverSource,
  ContainedExecutionCleanupUnconfirmedError: errors.ContainedExecutionCleanupUnconfirmedError,
  ContainedExecutionFailureError: errors.ContainedExecutionFailureError,
  FileCheckpointDiagnosticError: errors.FileCheckpointDiagnosticError,
}
