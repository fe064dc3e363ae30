'use strict'

// The constants and predicates of failures. All of them are read off the addon's one table of codes, so that a code
// exists once; a constant whose code the table lacks fails when the package is loaded. Source of the rules:
// contract/failures.md.

const { failureTable, known, rowOf } = require('./errors')

/**
 * @typedef {import('../index.js').ContainedExecutionFailureCode} ContainedExecutionFailureCode
 * @typedef {import('../index.js').ContainedExecutionFailurePhase} ContainedExecutionFailurePhase
 * @typedef {import('../index.js').ContainedExecutionApprovalFallbackReason} ContainedExecutionApprovalFallbackReason
 */

/** @type {readonly ContainedExecutionFailureCode[]} */
const CONTAINED_EXECUTION_FAILURE_CODES = Object.freeze(failureTable.codes.map((row) => row.code))

/** @type {readonly string[]} */
const CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS = Object.freeze([...failureTable.approvalFallbackReasons])

// What a contained guest writes crosses a boundary, so no setting of a caller may switch any of these off.
const CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS = Object.freeze({
  maskApprovalIds: true,
  maskBearerTokens: true,
  maskAuthHeaders: true,
  maskKeyValueSecrets: true,
  maskHighEntropyStrings: true,
})

const codes = new Set(/** @type {readonly unknown[]} */ (CONTAINED_EXECUTION_FAILURE_CODES))
const approvalFallbackReasons = new Set(
  /** @type {readonly unknown[]} */ (CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS),
)

/**
 * @param {unknown} value
 * @returns {value is ContainedExecutionFailureCode}
 */
function isContainedExecutionFailureCode(value) {
  return codes.has(value)
}

/**
 * @param {ContainedExecutionFailureCode} code
 * @returns {ContainedExecutionFailurePhase}
 */
function containedExecutionFailurePhase(code) {
  return rowOf(code).phase
}

/**
 * @param {unknown} reason
 * @returns {reason is ContainedExecutionApprovalFallbackReason}
 */
function isContainedExecutionApprovalFallbackReason(reason) {
  return approvalFallbackReasons.has(reason)
}

module.exports = {
  CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS,
  CONTAINED_EXECUTION_CLEANUP_UNCONFIRMED: known('contained_execution_cleanup_unconfirmed'),
  CONTAINED_EXECUTION_FAILURE_CODES,
  CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS,
  CONTAINED_EXECUTION_SOURCE_CHANGED: known('contained_execution_source_changed'),
  CONTAINED_EXECUTION_UNSAFE_SYMLINK: known('contained_execution_unsafe_symlink'),
  FILE_CHECKPOINT_COPY_FAILED: known('file_checkpoint_copy_failed'),
  FILE_CHECKPOINT_HARDLINK_UNSUPPORTED: known('file_checkpoint_hardlink_unsupported'),
  FILE_CHECKPOINT_NESTED_REPOSITORY: known('file_checkpoint_nested_repository'),
  FILE_CHECKPOINT_PATH_ESCAPE: known('file_checkpoint_path_escape'),
  FILE_CHECKPOINT_PREPARE_TIMEOUT: known('file_checkpoint_prepare_timeout'),
  FILE_CHECKPOINT_QUOTA_EXCEEDED: known('file_checkpoint_quota_exceeded'),
  FILE_CHECKPOINT_UNSUPPORTED_NODE: known('file_checkpoint_unsupported_node'),
  containedExecutionFailurePhase,
  isContainedExecutionApprovalFallbackReason,
  isContainedExecutionFailureCode,
}
