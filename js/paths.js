'use strict'

// Paths and the roots they belong to. Relative paths are taken from the working directory. Fails with TypeErrors on
// arguments and with nothing else: a path need not exist. Source of the rules: contract/mirror.md, "Git boundary", and
// contract/surface.md; they are written out in src/fs/path.rs and src/git/identity.rs.

const path = require('node:path')

const binding = require('./binding')
const { optional, requirePath, requirePaths, requireRelativePath } = require('./arguments')

/** @typedef {import('../index.js').WorkspaceRootMatch} WorkspaceRootMatch */

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
 * @returns {string}
 */
function canonicalPath(targetPath) {
  return binding.canonicalPath(toAbsolute(targetPath, 'targetPath'))
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
  return binding.pathWithinRoot(toAbsolute(root, 'root'), toAbsolute(targetPath, 'targetPath'))
}

/**
 * @param {string} repoRoot
 * @param {string} targetPath
 * @returns {string | null} empty for the root itself, null outside it
 */
function relativeWithinRepo(repoRoot, targetPath) {
  return binding.relativeWithinRepo(toAbsolute(repoRoot, 'repoRoot'), toAbsolute(targetPath, 'targetPath'))
}

/**
 * @param {string} repoRoot
 * @param {string[] | undefined} trustedRoots
 * @param {string} targetPath
 * @returns {WorkspaceRootMatch | null}
 */
function resolveWorkspaceRootMatch(repoRoot, trustedRoots, targetPath) {
  const match = binding.resolveWorkspaceRootMatch(
    toAbsolute(repoRoot, 'repoRoot'),
    optional(trustedRoots, 'trustedRoots', requirePaths)?.map((root) => path.resolve(root)),
    toAbsolute(targetPath, 'targetPath'),
  )
  return match === null ? null : JSON.parse(match)
}

module.exports = {
  canonicalPath,
  isPathOutsideRoot,
  pathWithinRoot,
  relativeWithinRepo,
  resolveWorkspaceRootMatch,
}
