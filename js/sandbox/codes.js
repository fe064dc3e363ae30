'use strict'

// The codes of sandboxed runs that are given here, looked up in the addon's one table. Fails when the package is loaded
// where the table lacks one.

const { known } = require('../errors')

module.exports = {
  SANDBOX_ISOLATION_UNAVAILABLE: known('sandbox_isolation_unavailable'),
  SANDBOX_LAUNCH_FAILED: known('sandbox_launch_failed'),
  SANDBOX_RESULT_INVALID: known('sandbox_result_invalid'),
}
