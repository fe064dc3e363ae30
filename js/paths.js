'use strict'

// Paths and the roots they belong to. Relative paths are taken from the working directory. Fails with TypeErrors on
// arguments and with nothing else: a path need not exist. Source of the rules: contract/mirror.md, "Git boundary", and
// contract/surface.md; they are written out in src/fs/path.rs and src/git/identity.rs.

const path = require('node:path')

const binding = require('./binding')
const { optional, requirePaths, requireRelativePath, resolvePath } = require('./arguments')
const { fromJson } = require('./json')

/** @typedef {import('../index.js').WorkspaceRootMatch} WorkspaceRootMatch */

/**
 * @param {string} targetPath
 * @returns {string}
 */
function canonicalPath(targetPath) {
  return binding.canonicalPath(resolvePath(targetPath, 'targetPath'))
}

/**
 * @param {string} relativePath may be empty, which is what `path.relative` calls the root itself
 * @returns {boolean}
 */
function isPathOutsideRoot(relativePath) {
  return binding.isPathOutsideRoot(requireRelativePath(relativePath, 'relativePath'))
}

/**
 * @param {string} root
 * @param {string} targetPath
 * @returns {boolean}
 */
function pathWithinRoot(root, targetPath) {
  return binding.pathWithinRoot(resolvePath(root, 'root'), resolvePath(targetPath, 'targetPath'))
}

/**
 * @param {string} repoRoot
 * @param {string} targetPath
 * @returns {string | null} empty for the root itself, null outside it
 */
function relativeWithinRepo(repoRoot, targetPath) {
  return binding.relativeWithinRepo(resolvePath(repoRoot, 'repoRoot'), resolvePath(targetPath, 'targetPath'))
}

/**
 * @param {string} repoRoot
 * @param {string[] | undefined} trustedRoots
 * @param {string} targetPath
 * @returns {WorkspaceRootMatch | null}
 */
function resolveWorkspaceRootMatch(repoRoot, trustedRoots, targetPath) {
  const match = binding.resolveWorkspaceRootMatch(
    resolvePath(repoRoot, 'repoRoot'),
    optional(trustedRoots, 'trustedRoots', requirePaths)?.map((root) => path.resolve(root)),
    resolvePath(targetPath, 'targetPath'),
  )
  return match === null ? null : fromJson(match)
}

module.exports = {
  canonicalPath,
  isPathOutsideRoot,
  pathWithinRoot,
  relativeWithinRepo,
  resolveWorkspaceRootMatch,
}
