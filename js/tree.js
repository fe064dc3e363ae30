'use strict'

// Tree indices and node hashes: what callers pass in is checked entry by entry, and names that are not UTF-8 travel as
// hexadecimal and arrive as Buffers. Fails with the errors of js/errors.js and with TypeErrors before a file is touched.
// Source of the rules: contract/mirror.md, "Node and tree hashes" and "Tree index".

const path = require('node:path')
const { types } = require('node:util')

const binding = require('./binding')
const {
  invalidType,
  invalidValue,
  optional,
  requireAbortSignal,
  requireAbsolutePath,
  requireArray,
  requireFunction,
  requireObject,
  requireOneOf,
  requirePath,
  requirePaths,
  requireRelativePath,
  requireString,
  requireStrings,
  requireWholeNumber,
  resolvePath,
} = require('./arguments')
const { fromRecord } = require('./errors')
const { runJob } = require('./job')
const { fromJson, toJson } = require('./json')
const { refuseMisspelt } = require('./spelling')

/**
 * @typedef {import('../index.js').FileTreeBuildOptions} FileTreeBuildOptions
 * @typedef {import('../index.js').FileTreeEntry} FileTreeEntry
 * @typedef {import('../index.js').FileTreeIndex} FileTreeIndex
 * @typedef {import('../index.js').ObservedFileChange} ObservedFileChange
 * @typedef {import('../index.js').PresentSnapshotNode} PresentSnapshotNode
 * @typedef {import('../index.js').SnapshotNode} SnapshotNode
 */

const PRESENT_KINDS = /** @type {const} */ (['file', 'symlink', 'directory'])
const SNAPSHOT_KINDS = /** @type {const} */ (['absent', ...PRESENT_KINDS])

/** `st_mode` has 32 bits on every system that Node runs on. */
const LARGEST_MODE = 0xffff_ffff

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {number}
 */
function requireMode(value, name) {
  return requireWholeNumber(value, name, LARGEST_MODE)
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {PresentSnapshotNode} a copy with the fields of its kind and no others
 */
function requirePresentNode(value, name) {
  const node = requireObject(value, name)
  const kind = requireOneOf(node.kind, `${name}.kind`, PRESENT_KINDS)
  const hash = requireString(node.hash, `${name}.hash`)
  if (kind === 'symlink') return { kind, target: requirePath(node.target, `${name}.target`), hash }
  const mode = requireMode(node.mode, `${name}.mode`)
  if (kind === 'directory') return { kind, mode, hash }
  return { kind, mode, size: requireWholeNumber(node.size, `${name}.size`), hash }
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {SnapshotNode}
 */
function requireNode(value, name) {
  const node = requireObject(value, name)
  const kind = requireOneOf(node.kind, `${name}.kind`, SNAPSHOT_KINDS)
  return kind === 'absent' ? { kind } : requirePresentNode(node, name)
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string} hexadecimal
 */
function requireRawPath(value, name) {
  if (!types.isUint8Array(value)) throw invalidType(name, 'an instance of Buffer', value)
  if (value.length === 0) throw invalidValue(name, 'a non-empty path', value)
  if (value.includes(0)) throw invalidValue(name, 'a path without null bytes', value)
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string} JSON, with raw paths in hexadecimal
 */
function entriesToJson(value, name) {
  const entries = Array.from(requireArray(value, name), (element, index) => {
    const entryName = `${name}[${index}]`
    const entry = requireObject(element, entryName)
    return {
      // Neither can be: the root is no entry, and a NUL would let one entry be hashed as two.
      relativePath: requirePath(entry.relativePath, `${entryName}.relativePath`),
      node: requirePresentNode(entry.node, `${entryName}.node`),
      rawPath: optional(entry.rawPath, `${entryName}.rawPath`, requireRawPath),
    }
  })
  return toJson(entries)
}

/**
 * @template {{ rawPath?: Buffer }} T
 * @param {(Omit<T, 'rawPath'> & { rawPath?: string })[]} items as the addon hands them over
 * @returns {T[]} the same objects
 */
function decodeRawPaths(items) {
  for (const item of items) {
    if (item.rawPath !== undefined) Object.assign(item, { rawPath: Buffer.from(item.rawPath, 'hex') })
  }
  return /** @type {T[]} */ (/** @type {unknown} */ (items))
}

/**
 * Only prefixed, never normalised: what `..` means behind a link is for the system to say.
 * @param {string} filePath
 * @returns {string}
 */
function fromWorkingDirectory(filePath) {
  return path.isAbsolute(filePath) ? filePath : `${process.cwd()}${path.sep}${filePath}`
}

/**
 * @param {unknown} value
 * @returns {number | null} nothing for a deadline that never comes
 */
function readDeadline(value) {
  if (value === undefined || value === Infinity) return null
  if (typeof value !== 'number') throw invalidType('options.deadlineMs', 'of type number', value)
  if (!Number.isFinite(value)) throw invalidValue('options.deadlineMs', 'a time in epoch milliseconds', value)
  return value
}

/**
 * @param {unknown} value
 * @param {string} name
 */
function readQuotas(value, name) {
  const quotas = requireObject(value, name)
  return {
    maxFiles: requireWholeNumber(quotas.maxFiles, `${name}.maxFiles`),
    maxSourceBytes: requireWholeNumber(quotas.maxSourceBytes, `${name}.maxSourceBytes`),
    prepareTimeoutMs: requireWholeNumber(quotas.prepareTimeoutMs, `${name}.prepareTimeoutMs`),
  }
}

const INDEX_OPTIONS = Object.freeze(
  /** @type {const} */ (['resourceRoot', 'excludedRoots', 'quotas', 'deadlineMs', 'signal', 'onProgress']),
)

/**
 * @param {FileTreeBuildOptions} options
 * @returns {Promise<FileTreeIndex>}
 */
async function buildFileTreeIndex(options) {
  const given = requireObject(options, 'options')
  refuseMisspelt(given, 'options', INDEX_OPTIONS)
  const signal = optional(given.signal, 'options.signal', requireAbortSignal)
  const onProgress = optional(given.onProgress, 'options.onProgress', requireFunction)
  const excludedRoots = optional(given.excludedRoots, 'options.excludedRoots', requirePaths) ?? []
  const request = {
    resourceRoot: resolvePath(given.resourceRoot, 'options.resourceRoot'),
    excludedRoots: excludedRoots.map((root) => path.resolve(root)),
    quotas: optional(given.quotas, 'options.quotas', readQuotas) ?? null,
    deadlineMs: readDeadline(given.deadlineMs),
    wantsProgress: onProgress !== undefined,
  }
  const { value } = await runJob('index', request, { signal, onProgress })
  decodeRawPaths(value.entries)
  return value
}

/**
 * @param {FileTreeIndex} baseline
 * @param {FileTreeIndex} observed
 * @returns {ObservedFileChange[]}
 */
function diffFileTreeIndices(baseline, observed) {
  const left = entriesToJson(requireObject(baseline, 'baseline').entries, 'baseline.entries')
  const right = entriesToJson(requireObject(observed, 'observed').entries, 'observed.entries')
  return decodeRawPaths(fromJson(binding.diffFileTreeIndices(left, right)))
}

/**
 * @param {string} baselineRoot
 * @param {string} executionRoot
 * @param {string[]} relativePaths
 * @returns {Promise<ObservedFileChange[]>}
 */
async function readObservedChanges(baselineRoot, executionRoot, relativePaths) {
  const { value } = await runJob('observed', {
    baselineRoot: resolvePath(baselineRoot, 'baselineRoot'),
    executionRoot: resolvePath(executionRoot, 'executionRoot'),
    relativePaths: requireStrings(relativePaths, 'relativePaths'),
  })
  return decodeRawPaths(value)
}

/**
 * @param {string} absolutePath
 * @returns {Promise<SnapshotNode>}
 */
async function readSnapshotNode(absolutePath) {
  const { value } = await runJob('snapshotNode', { path: requireAbsolutePath(absolutePath, 'absolutePath') })
  return value
}

/**
 * @param {string} filePath
 * @returns {Promise<string>}
 */
async function hashFileContent(filePath) {
  const { value } = await runJob('hashFile', { path: fromWorkingDirectory(requirePath(filePath, 'filePath')) })
  return value
}

/**
 * @param {FileTreeEntry[]} entries
 * @returns {string}
 */
function computeTreeHash(entries) {
  return binding.computeTreeHash(entriesToJson(entries, 'entries'))
}

/**
 * @param {number} mode
 * @param {string} contentHash
 * @returns {string}
 */
function hashFileNode(mode, contentHash) {
  return binding.hashFileNode(requireMode(mode, 'mode'), requireString(contentHash, 'contentHash'))
}

/**
 * @param {number} mode
 * @returns {string}
 */
function hashDirectoryNode(mode) {
  return binding.hashDirectoryNode(requireMode(mode, 'mode'))
}

/**
 * @param {string} target
 * @returns {string}
 */
function hashSymlinkTarget(target) {
  return binding.hashSymlinkTarget(requirePath(target, 'target'))
}

/**
 * @param {SnapshotNode} left
 * @param {SnapshotNode} right
 * @returns {boolean}
 */
function snapshotNodesEqual(left, right) {
  return binding.snapshotNodesEqual(toJson(requireNode(left, 'left')), toJson(requireNode(right, 'right')))
}

/**
 * @param {PresentSnapshotNode} node
 * @returns {'file' | 'symlink' | 'directory'}
 */
function presentNodeKind(node) {
  return requireOneOf(requireObject(node, 'node').kind, 'node.kind', PRESENT_KINDS)
}

/**
 * @param {string} left
 * @param {string} right
 * @returns {number}
 */
function compareRelativePathsBytewise(left, right) {
  return binding.compareRelativePathsBytewise(requireRelativePath(left, 'left'), requireRelativePath(right, 'right'))
}

/**
 * @param {string} relativePath
 * @returns {void}
 */
function validateRelativePath(relativePath) {
  const failure = binding.validateRelativePath(requireString(relativePath, 'relativePath'))
  if (failure !== null) throw fromRecord(fromJson(failure))
}

/**
 * @param {string} root
 * @param {string} relativePath
 * @returns {string}
 */
function joinRelativePath(root, relativePath) {
  const absoluteRoot = resolvePath(root, 'root')
  const outcome = fromJson(binding.joinRelativePath(absoluteRoot, requireString(relativePath, 'relativePath')))
  if (outcome.failure !== undefined) throw fromRecord(outcome.failure)
  return outcome.value
}

/**
 * @param {string} relativePath
 * @returns {boolean}
 */
function isRootGitMetadataPath(relativePath) {
  return binding.isRootGitMetadataPath(requireRelativePath(relativePath, 'relativePath'))
}

/**
 * @param {string} relativePath
 * @returns {boolean}
 */
function isNestedGitPath(relativePath) {
  return binding.isNestedGitPath(requireRelativePath(relativePath, 'relativePath'))
}

/**
 * @param {string} relativePath
 * @param {string[]} excludedRoots
 * @param {string} resourceRoot
 * @returns {boolean}
 */
function isExcludedTreePath(relativePath, excludedRoots, resourceRoot) {
  return binding.isExcludedTreePath(
    requireRelativePath(relativePath, 'relativePath'),
    requirePaths(excludedRoots, 'excludedRoots').map((root) => path.resolve(root)),
    resolvePath(resourceRoot, 'resourceRoot'),
  )
}

module.exports = {
  buildFileTreeIndex,
  compareRelativePathsBytewise,
  computeTreeHash,
  diffFileTreeIndices,
  hashDirectoryNode,
  hashFileContent,
  hashFileNode,
  hashSymlinkTarget,
  isExcludedTreePath,
  isNestedGitPath,
  isRootGitMetadataPath,
  joinRelativePath,
  presentNodeKind,
  readObservedChanges,
  readSnapshotNode,
  snapshotNodesEqual,
  validateRelativePath,
}
