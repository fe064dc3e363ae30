'use strict'

// sallyport's plugin for esbuild: where the driver comes from, what a file's bytes are, what stands in for a file that
// failed, for Node's own modules, for addons and for packages that stay outside. It records what one build has read and
// what it was refused. What cannot be read is an error of the file that imports it.

const fs = require('node:fs/promises')
const { builtinModules } = require('node:module')
const path = require('node:path')
const { fileURLToPath } = require('node:url')

const { deniedMessage } = require('../sandbox/classify')
const { OWN_MODULES, PREBUILT_RUNTIME, RUNTIME_NAME } = require('../sandbox/runtime-modules')
const { failureModule } = require('./failures')
const { withLocation } = require('./location')
const { kindOf } = require('./packages')
const { ReadFailure, createBudget, readContained } = require('./read')

/**
 * @typedef {import('esbuild').OnLoadResult} OnLoadResult
 * @typedef {import('esbuild').OnResolveArgs} OnResolveArgs
 * @typedef {import('esbuild').OnResolveResult} OnResolveResult
 * @typedef {import('./containment').Containment} Containment
 * @typedef {import('./failures').FileFailure} FileFailure
 * @typedef {import('./packages').ExternalPackages} ExternalPackages
 */

/**
 * What one build does otherwise than the one before it.
 * @typedef {object} Substitutions
 * @property {Map<string, FileFailure>} files by path
 * @property {Map<string, FileFailure>} entries by the specifier in the driver
 */

/**
 * @typedef {object} BuildRecord
 * @property {Map<string, { content: Buffer, line: number, shift: number }>} files what was read, by path
 * @property {Map<string, string>} refused the real path of what may not be read, by path
 * @property {Map<string, OnResolveArgs['kind']>} entries what the driver imports, by specifier
 */

const DRIVER_NAMESPACE = 'sallyport-driver'
/** The name of the entry point, which is no path. */
const ENTRY_POINT = /^sallyport-driver$/

const FAILURE_NAMESPACE = 'sallyport-failure'
const ADDON_NAMESPACE = 'sallyport-addon'
const OUTSIDE_NAMESPACE = 'sallyport-outside'

/** How a bundle imports the runtime that lies beside it. */
const RUNTIME_BESIDE = `./${RUNTIME_NAME}`

const OWN_MODULE_PATHS = new Set(Object.values(OWN_MODULES))

/** A specifier that only a stand-in may use, for the failure with this number. */
const FAILURE_SPECIFIER = /^sallyport-failure:(\d+)$/

/** What a specifier may leave out, in the order in which it is tried: esbuild's own. */
const RESOLVE_EXTENSIONS = Object.freeze(['.tsx', '.ts', '.jsx', '.js', '.css', '.json'])

const SCRIPT = /\.(?:[cm]?[jt]s|[jt]sx)$/i

/**
 * Static imports of Node's own modules are loaded when the file that asks for them runs: a module that this version of
 * Node does not have would otherwise end the whole bundle before it begins.
 */
const BUILTIN = new RegExp(
  `^(?:node:.+|${builtinModules
    .filter((name) => !name.startsWith('_'))
    .map((name) => name.replaceAll('/', '\\/'))
    .join('|')})$`,
)

/**
 * @param {object} options
 * @param {string} options.driverPath where the driver is said to be
 * @param {string} options.driverSource
 * @param {boolean} options.runtimeBeside whether the runtime lies beside the bundle and is not to be a part of it
 * @param {Containment | undefined} options.containment
 * @param {ExternalPackages} options.externals
 * @param {Substitutions} options.substitutions
 * @param {BuildRecord} options.record filled
 * @returns {import('esbuild').Plugin}
 */
function createPlugin({ driverPath, driverSource, runtimeBeside, containment, externals, substitutions, record }) {
  /** @type {FileFailure[]} */
  const failures = []
  const budget = createBudget()

  /** @param {FileFailure} failure */
  const specifierFor = (failure) => `sallyport-failure:${failures.push(failure) - 1}`

  /**
   * @param {string} file
   * @param {FileFailure} failure
   * @returns {OnLoadResult}
   */
  const standIn = (file, failure) => {
    const specifier = JSON.stringify(specifierFor(failure))
    const isCommonJs = /\.c[jt]s$/i.test(file)
    return {
      contents: isCommonJs
        ? `module.exports = require(${specifier})`
        : `export * from ${specifier}; export { default } from ${specifier}`,
      loader: 'js',
      resolveDir: path.dirname(file),
    }
  }

  return {
    name: 'sallyport',
    setup(build) {
      // Callbacks are asked in this order. Filters are narrow where they can be: each call crosses to esbuild and back.
      build.onResolve({ filter: ENTRY_POINT }, ({ kind }) =>
        kind === 'entry-point' ? { path: driverPath, namespace: DRIVER_NAMESPACE } : undefined,
      )

      build.onResolve({ filter: /.*/, namespace: OUTSIDE_NAMESPACE }, (argument) => ({
        path: argument.path,
        external: true,
      }))

      build.onLoad({ filter: /.*/, namespace: DRIVER_NAMESPACE }, () => ({
        contents: withLocation(Buffer.from(driverSource), driverPath).content,
        loader: 'ts',
        // Its imports are absolute. Manifests and configurations above the temp directory, where anyone may put some,
        // have no say in where they lead.
        resolveDir: path.parse(driverPath).root,
      }))

      build.onResolve({ filter: /.*/, namespace: DRIVER_NAMESPACE }, (argument) => {
        if (OWN_MODULE_PATHS.has(argument.path)) {
          return runtimeBeside ? { path: RUNTIME_BESIDE, external: true } : { path: PREBUILT_RUNTIME }
        }
        const failure = substitutions.entries.get(argument.path)
        record.entries.set(argument.path, argument.kind)
        return failure === undefined
          ? undefined
          : { path: specifierFor(failure).slice('sallyport-failure:'.length), namespace: FAILURE_NAMESPACE }
      })

      build.onResolve({ filter: FAILURE_SPECIFIER }, (argument) => {
        const number = FAILURE_SPECIFIER.exec(argument.path)?.[1] ?? ''
        // Only a stand-in has such an import; in a file of the project it means nothing.
        if (!substitutions.files.has(argument.importer)) return undefined
        return { path: number, namespace: FAILURE_NAMESPACE }
      })

      build.onLoad({ filter: /.*/, namespace: FAILURE_NAMESPACE }, (argument) => ({
        contents: failureModule(/** @type {FileFailure} */ (failures[Number(argument.path)])),
        loader: 'js',
      }))

      build.onResolve({ filter: BUILTIN }, ({ path: specifier, kind }) =>
        kind === 'import-statement' ? { path: specifier, namespace: OUTSIDE_NAMESPACE } : undefined,
      )

      build.onLoad({ filter: /.*/, namespace: OUTSIDE_NAMESPACE }, (argument) => ({
        contents: `module.exports = require(${JSON.stringify(argument.path)})`,
        loader: 'js',
      }))

      build.onResolve({ filter: /^typescript(?:\/|$)/ }, (argument) => resolveExternal(argument, externals))

      build.onResolve({ filter: /^(?:\/|\.{1,2}\/|[A-Za-z]:).*\*/s }, async ({ path: specifier, resolveDir }) => {
        const file = await findFile(path.resolve(resolveDir, specifier))
        return file === undefined ? undefined : { path: file }
      })

      build.onResolve({ filter: /\.node$/i }, async ({ path: specifier, ...argument }) => {
        // `resolve` asks this again, and must not be answered from here.
        if (argument.pluginData === ADDON_NAMESPACE) return undefined
        const { errors, path: addon } = await build.resolve(specifier, { ...argument, pluginData: ADDON_NAMESPACE })
        if (errors.length > 0) return undefined
        return {
          path: addon,
          namespace: ADDON_NAMESPACE,
          suffix: `#${argument.importer}`,
          pluginData: argument.importer,
        }
      })

      build.onLoad({ filter: /.*/, namespace: ADDON_NAMESPACE }, ({ path: addon, pluginData }) => ({
        contents: addonModule(addon, pluginData),
        loader: 'js',
      }))

      build.onResolve({ filter: /^file:/i }, async ({ path: url, pluginData: _, ...argument }) => {
        let file
        try {
          file = fileURLToPath(url)
        } catch (error) {
          return {
            errors: [{ text: `Could not resolve ${JSON.stringify(url)}: ${/** @type {Error} */ (error).message}` }],
          }
        }
        const { errors, path: resolved, namespace } = await build.resolve(file, argument)
        return errors.length > 0 ? { errors } : { path: resolved, namespace }
      })

      build.onLoad({ filter: /.*/, namespace: 'file' }, async ({ path: file, with: attributes }) => {
        // Ours, and nothing in it depends on where it lies: esbuild reads it for itself.
        if (file === PREBUILT_RUNTIME) return undefined
        const failure = substitutions.files.get(file)
        if (failure !== undefined) return standIn(file, failure)
        const loader = loaderOf(file, attributes)
        let read
        try {
          read = await readContained(file, containment, { budget, content: loader !== 'empty' })
        } catch (error) {
          if (error instanceof ReadFailure) return { errors: [{ text: error.message }] }
          throw error
        }
        if ('refused' in read) {
          record.refused.set(file, read.refused)
          // Nothing of it, under any name: the build goes on, to find out who asked for it.
          return { contents: '', loader: 'empty' }
        }
        if (loader === undefined) {
          return { errors: [{ text: `Importing ${JSON.stringify(file)} with these attributes is not supported` }] }
        }
        const isScript = SCRIPT.test(file) && loader === 'default'
        const located = isScript ? withLocation(read.content, file) : { content: read.content, line: 1, shift: 0 }
        record.files.set(file, { ...located, content: read.content })
        return { contents: located.content, loader, resolveDir: path.dirname(file) }
      })
    },
  }
}

/**
 * esbuild takes a star in a path for a pattern of its own and finds no file by it, so those are looked for here.
 * @param {string} base absolute
 * @returns {Promise<string | undefined>} a real path
 */
async function findFile(base) {
  const suffixes = ['', ...RESOLVE_EXTENSIONS, ...RESOLVE_EXTENSIONS.map((extension) => `${path.sep}index${extension}`)]
  for (const suffix of suffixes) {
    if ((await kindOf(base + suffix)) === 'file') return fs.realpath(base + suffix)
  }
  return undefined
}

/** What an import attribute makes of a file, whatever its name is. */
const ATTRIBUTE_LOADERS = /** @type {const} */ ({ json: 'json', text: 'text', bytes: 'binary' })

/**
 * @param {string} file
 * @param {Record<string, string>} attributes
 * @returns {import('esbuild').Loader | undefined} undefined for an attribute that means nothing
 */
function loaderOf(file, attributes) {
  const unknown = Object.keys(attributes).some((name) => name !== 'type')
  if (unknown) return undefined
  const { type } = attributes
  if (type !== undefined) {
    return Object.hasOwn(ATTRIBUTE_LOADERS, type)
      ? ATTRIBUTE_LOADERS[/** @type {keyof typeof ATTRIBUTE_LOADERS} */ (type)]
      : undefined
  }
  // Style sheets mean nothing to Node; bundlers take them for nothing.
  return /\.css$/i.test(file) ? 'empty' : 'default'
}

/**
 * A module that fails as a sandboxed Node does for an addon, so that a fall-back is used; without one, the error names
 * both files.
 * @param {string} addon
 * @param {string} importer
 * @returns {string}
 */
function addonModule(addon, importer) {
  const resource = `${addon}, required by ${JSON.stringify(importer)}`
  const message = deniedMessage('Addons', resource, importer)
  const fields = { code: 'ERR_DLOPEN_DISABLED', permission: 'Addons', resource, path: addon }
  return `throw Object.assign(new Error(${JSON.stringify(message)}), ${JSON.stringify(fields)}); module.exports = {}`
}

/**
 * @param {OnResolveArgs} argument
 * @param {ExternalPackages} externals
 * @returns {OnResolveResult | undefined}
 */
function resolveExternal({ path: specifier, kind }, { packages, origin, unusable }) {
  const found = packages.find(({ name }) => name === 'typescript')
  if (found === undefined) {
    // A call can be tried and caught; a statement cannot.
    if (kind !== 'import-statement') return { path: specifier, external: true }
    const why =
      unusable.length > 0
        ? `what is installed for the tool has no file that can be required, as TypeScript 7 has none (${unusable.join(', ')}): install typescript@5 there`
        : `not installed for the tool (looked for from ${JSON.stringify(origin)})`
    const text = `Could not resolve "${specifier}": it is never taken from the project, and ${why}`
    return { errors: [{ text }] }
  }
  const file = specifier === found.name ? found.path : path.join(found.root, specifier.slice(found.name.length + 1))
  const isCall = kind === 'require-call' || kind === 'require-resolve'
  return isCall ? { path: file, external: true } : { path: file, namespace: OUTSIDE_NAMESPACE }
}

module.exports = { DRIVER_NAMESPACE, RESOLVE_EXTENSIONS, RUNTIME_BESIDE, createPlugin }
