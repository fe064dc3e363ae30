'use strict'

// Git boundaries: which repository a path belongs to, and what is Git's own data. Relative paths are taken from the
// working directory. Fails with TypeErrors on arguments and with nothing else: what cannot be told is an answer of the
// status `invalid`. Source of the rules: contract/mirror.md, "Git boundary"; they are written out in src/git/mod.rs.

const binding = require('./binding')
const { optional, resolvePath } = require('./arguments')
const { fromJson } = require('./json')

/**
 * @typedef {import('../index.js').GitResourceIdentity} GitResourceIdentity
 * @typedef {import('../index.js').GitResourceIdentityInspection} GitResourceIdentityInspection
 */

/**
 * @param {string} targetPath
 * @returns {GitResourceIdentityInspection}
 */
function inspectGitResourceIdentity(targetPath) {
  return fromJson(binding.inspectGitResourceIdentity(resolvePath(targetPath, 'targetPath')))
}

/**
 * @param {string} targetPath
 * @returns {GitResourceIdentity | null}
 */
function resolveGitResourceIdentity(targetPath) {
  const inspection = inspectGitResourceIdentity(targetPath)
  return inspection.status === 'resolved' ? inspection.identity : null
}

/**
 * @param {string} leftPath
 * @param {string} rightPath
 * @returns {boolean}
 */
function sameGitResourceIdentity(leftPath, rightPath) {
  return binding.sameGitResourceIdentity(resolvePath(leftPath, 'leftPath'), resolvePath(rightPath, 'rightPath'))
}

/**
 * @param {string} targetPath
 * @param {string} [repositoryPath] the path whose repository is meant, where it is not the target's own
 * @returns {boolean}
 */
function isGitMetadataPath(targetPath, repositoryPath) {
  return binding.isGitMetadataPath(
    resolvePath(targetPath, 'targetPath'),
    optional(repositoryPath, 'repositoryPath', resolvePath),
  )
}

/**
 * @param {string} targetPath
 * @returns {string | null}
 */
function containingGitRoot(targetPath) {
  return binding.containingGitRoot(resolvePath(targetPath, 'targetPath'))
}

module.exports = {
  containingGitRoot,
  inspectGitResourceIdentity,
  isGitMetadataPath,
  resolveGitResourceIdentity,
  sameGitResourceIdentity,
}
