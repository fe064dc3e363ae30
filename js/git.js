'use strict'

// Git boundaries: which repository a path belongs to, and what is Git's own data. Relative paths are taken from the
// working directory. Fails with TypeErrors on arguments and with nothing else: what cannot be told is an answer of the
// status `invalid`. Source of the rules: contract/mirror.md, "Git boundary"; they are written out in src/git/mod.rs.

const path = require('node:path')

const binding = require('./binding')
const { optional, requirePath } = require('./arguments')

/**
 * @typedef {import('../index.js').GitResourceIdentity} GitResourceIdentity
 * @typedef {import('../index.js').GitResourceIdentityInspection} GitResourceIdentityInspection
 */

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function toAbsolute(value, name) {
  return path.resolve(requirePath(value, name))
}

/**
 * @param {string} targetPath
 * @returns {GitResourceIdentityInspection}
 */
function inspectGitResourceIdentity(targetPath) {
  return JSON.parse(binding.inspectGitResourceIdentity(toAbsolute(targetPath, 'targetPath')))
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
  return binding.sameGitResourceIdentity(toAbsolute(leftPath, 'leftPath'), toAbsolute(rightPath, 'rightPath'))
}

/**
 * @param {string} targetPath
 * @param {string} [repositoryPath] the path whose repository is meant, where it is not the target's own
 * @returns {boolean}
 */
function isGitMetadataPath(targetPath, repositoryPath) {
  return binding.isGitMetadataPath(
    toAbsolute(targetPath, 'targetPath'),
    optional(repositoryPath, 'repositoryPath', toAbsolute),
  )
}

/**
 * @param {string} targetPath
 * @returns {string | null}
 */
function containingGitRoot(targetPath) {
  return binding.containingGitRoot(toAbsolute(targetPath, 'targetPath'))
}

module.exports = {
  containingGitRoot,
  inspectGitResourceIdentity,
  isGitMetadataPath,
  resolveGitResourceIdentity,
  sameGitResourceIdentity,
}
