'use strict'

// Bundles a driver and everything it imports into one file, in a fresh private directory. Rejects with TypeErrors on
// arguments, with the signal's reason, with an Error that has esbuild's `errors` where the driver itself cannot be
// bundled, and with system errors of the directory; whatever it rejects with, the directory is gone. Source of the
// rules: contract/sandbox.md, "Bundling".

const fs = require('node:fs/promises')
const path = require('node:path')
const { performance } = require('node:perf_hooks')

const {
  invalidValue,
  optional,
  requireAbortSignal,
  requireArray,
  requireObject,
  requirePath,
  requireString,
} = require('./arguments')
const { build, bundlePathIn } = require('./bundle/build')
const { createContainment } = require('./bundle/containment')
const { holdBundleDirectory, releaseBundleDirectory, removeBundleDirectory } = require('./bundle/directory')
const { resolveExternalPackages } = require('./bundle/packages')
const { requireModules } = require('./sandbox/driver')
const { refuseMisspelt } = require('./spelling')

/**
 * @typedef {{ collect: string, resolve: string, entityWireCodec: string, provenance: string, params?: string,
 *   childErrors?: string }} TrustedModules
 */

/**
 * @typedef {object} BundleOptions
 * @property {string} [buildRoot] the project; what enters the bundle is checked against it, and not checked without it
 * @property {string[]} [readRoots] directories that the child may read besides
 * @property {TrustedModules} [modules] absolute paths
 * @property {string} [toolRoot] where `typescript` is resolved from
 * @property {string} [tempPrefix] what the name of the directory begins with
 * @property {AbortSignal} [signal]
 */

/**
 * @typedef {object} BundleResult
 * @property {string} bundlePath
 * @property {string} bundleDir for the caller to remove
 * @property {string[]} externalReadPaths directories that the child must be able to read besides
 * @property {number} durationMs
 * @property {number} bytes
 */

/**
 * A file that no import can report: a `tsconfig.json`. Every other bad file throws where it is imported.
 * @typedef {object} FileError
 * @property {string} file
 * @property {string} message
 * @property {'import' | 'permission'} type
 * @property {number} [line] from 1
 * @property {number} [column] from 1
 */

/**
 * @typedef {object} BuildRequest
 * @property {string} driverSource
 * @property {string} bundleDir canonical and private
 * @property {boolean} [runtimeBeside] whether the runtime lies there already, under the name that it has there
 * @property {string} [buildRoot]
 * @property {readonly string[]} [readRoots]
 * @property {TrustedModules} [modules]
 * @property {string} [toolRoot]
 * @property {AbortSignal} [signal]
 */

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string[]} absolute
 */
function requireRoots(value, name) {
  return Array.from(requireArray(value, name), (each, index) => path.resolve(requirePath(each, `${name}[${index}]`)))
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requirePrefix(value, name) {
  const prefix = requirePath(value, name)
  if (/[\\/]/.test(prefix)) throw invalidValue(name, 'the beginning of a name, without a separator', prefix)
  return prefix
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
function requireRoot(value, name) {
  return path.resolve(requirePath(value, name))
}

/**
 * @param {BundleOptions} options
 * @returns {BundleOptions} checked, with absolute paths
 */
function checkOptions(options) {
  const given = requireObject(options, 'options')
  refuseMisspelt(given, 'options', ['buildRoot', 'readRoots', 'modules', 'toolRoot', 'tempPrefix', 'signal'])
  return {
    buildRoot: optional(given.buildRoot, 'options.buildRoot', requireRoot),
    readRoots: optional(given.readRoots, 'options.readRoots', requireRoots),
    modules: optional(given.modules, 'options.modules', requireModules),
    toolRoot: optional(given.toolRoot, 'options.toolRoot', requireRoot),
    tempPrefix: optional(given.tempPrefix, 'options.tempPrefix', requirePrefix),
    signal: optional(given.signal, 'options.signal', requireAbortSignal),
  }
}

/**
 * Bundles into a directory that is there already, and leaves its removal to the caller.
 * @param {BuildRequest} request
 * @returns {Promise<{ bundlePath: string, bytes: number, durationMs: number, externalReadPaths: string[],
 *   fileErrors: FileError[] }>}
 */
async function buildBundle(request) {
  const {
    driverSource,
    bundleDir,
    runtimeBeside = false,
    buildRoot,
    readRoots = [],
    modules,
    toolRoot,
    signal,
  } = request
  const start = performance.now()
  signal?.throwIfAborted()
  const [externals, containment] = await Promise.all([
    resolveExternalPackages({ toolRoot, modules }),
    buildRoot === undefined ? undefined : createContainment({ buildRoot, readRoots, modules }),
  ])
  const { bytes, configuration } = await build({
    driverSource,
    bundleDir,
    runtimeBeside,
    containment,
    externals,
    signal,
  })
  // Whatever the umask took.
  await fs.chmod(bundlePathIn(bundleDir), 0o600)
  return {
    bundlePath: bundlePathIn(bundleDir),
    bytes,
    durationMs: performance.now() - start,
    externalReadPaths: externals.readPaths,
    fileErrors: configuration.map(({ file, message, type, line, column }) => ({ file, message, type, line, column })),
  }
}

/**
 * @param {string} driverSource
 * @param {BundleOptions} [options]
 * @returns {Promise<BundleResult>}
 */
async function bundleDriver(driverSource, options = {}) {
  requireString(driverSource, 'driverSource')
  const { tempPrefix, ...rest } = checkOptions(options)
  rest.signal?.throwIfAborted()
  const start = performance.now()
  const bundleDir = holdBundleDirectory(tempPrefix)
  try {
    const { bundlePath, externalReadPaths, bytes } = await buildBundle({ driverSource, bundleDir, ...rest })
    releaseBundleDirectory(bundleDir)
    return { bundlePath, bundleDir, externalReadPaths, durationMs: performance.now() - start, bytes }
  } catch (error) {
    await removeBundleDirectory(bundleDir)
    throw error
  }
}

module.exports = { buildBundle, bundleDriver, resolveExternalPackages }
