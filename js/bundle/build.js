'use strict'

// Builds a bundle, as often as it takes: a build that fails tells which files are at fault, those are replaced by modules
// that throw what is wrong with them, and the rest is built again. Each round takes at least one more thing out, so it
// ends. Rejects where the driver itself cannot be bundled (an Error with esbuild's `errors`), with the signal's reason,
// or with what esbuild throws when it cannot be started.

const path = require('node:path')

const { MOST_EXTENDED, findConfigurationFault } = require('./configuration')
const { realPathOf } = require('./containment')
const { buildError, buildFailure, messageOf, outsideFailure, positionOfSpecifier, refusal } = require('./failures')
const { BANNER, LOCATION_DEFINES } = require('./location')
const { DRIVER_NAMESPACE, RESOLVE_EXTENSIONS, RUNTIME_BESIDE, createPlugin } = require('./plugin')
const { Services, isStopped, rebuild, serviceEnded } = require('./service')

/**
 * @typedef {import('esbuild').Message} Message
 * @typedef {import('esbuild').Metafile} Metafile
 * @typedef {import('./containment').Containment} Containment
 * @typedef {import('./failures').FileFailure} FileFailure
 * @typedef {import('./packages').ExternalPackages} ExternalPackages
 * @typedef {import('./plugin').BuildRecord} BuildRecord
 */

/**
 * @typedef {object} BundleRequest
 * @property {string} driverSource
 * @property {string} bundleDir canonical
 * @property {boolean} runtimeBeside whether the runtime lies there already
 * @property {Containment | undefined} containment
 * @property {ExternalPackages} externals
 * @property {AbortSignal | undefined} signal
 */

/**
 * What is known so far of a bundle in the making.
 * @typedef {object} Progress
 * @property {Map<string, FileFailure>} files what is wrong with a file, by its path
 * @property {Map<string, FileFailure>} entries the same of what the driver imports, by the specifier in the driver
 * @property {FileFailure[]} configuration of configuration files: nothing imports those, so no import can throw it
 * @property {Services} services what builds it
 */

/**
 * @typedef {object} Attempt
 * @property {Message[]} errors
 * @property {Metafile | undefined} metafile of a build that went through
 * @property {BuildRecord} record
 */

/** What every child understands: decorators and `using` are no part of Node 20, and are compiled away. */
const TARGET = 'node20'

/**
 * What esbuild would warn of in code that is correct and nobody here is told of. A minified file is one long line, which
 * each warning would quote.
 * @type {Record<string, 'silent'>}
 */
const NO_WARNINGS = Object.fromEntries(
  [
    ...[
      'bigint',
      'call-import-namespace',
      'class-name-will-throw',
      'commonjs-variable-in-esm',
      'delete-super-property',
    ],
    ...['different-path-case', 'direct-eval', 'duplicate-case', 'duplicate-class-member', 'duplicate-object-key'],
    ...['empty-glob', 'empty-import-meta', 'equals-nan', 'equals-negative-zero', 'equals-new-object'],
    ...['html-comment-in-js', 'ignored-bare-import', 'ignored-dynamic-import', 'import-is-undefined'],
    ...['impossible-typeof', 'indirect-require', 'package.json', 'private-name-will-throw'],
    ...['require-resolve-not-external', 'semicolon-after-return', 'suspicious-boolean-not', 'suspicious-define'],
    ...['suspicious-logical-operator', 'suspicious-nullish-coalescing', 'this-is-undefined-in-esm'],
    ...['unsupported-dynamic-import', 'unsupported-jsx-comment', 'unsupported-regexp', 'unsupported-require-call'],
  ].map((name) => [name, 'silent']),
)

/** @param {string} bundleDir */
const driverPathIn = (bundleDir) => path.join(bundleDir, 'driver.mts')

/** @param {string} bundleDir */
const bundlePathIn = (bundleDir) => path.join(bundleDir, 'child.mjs')

/**
 * The driver imports by name from the trusted modules alone: one that lacks an export is no bad file of the project, even
 * where it is a file of the project.
 * @param {Message} message
 * @returns {boolean}
 */
function isMissingExport({ text, location }) {
  return location?.file.startsWith(`${DRIVER_NAMESPACE}:`) === true && text.startsWith('No matching export')
}

/**
 * @param {BundleRequest} request
 * @returns {Promise<{ bytes: number, configuration: FileFailure[] }>}
 */
async function build(request) {
  /** @type {Progress} */
  const progress = { files: new Map(), entries: new Map(), configuration: [], services: new Services() }
  try {
    return await buildWith(request, progress)
  } finally {
    progress.services.end()
  }
}

/**
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @returns {Promise<{ bytes: number, configuration: FileFailure[] }>}
 */
async function buildWith(request, progress) {
  for (;;) {
    const attempt = await buildOnce(request, progress)
    if (await checkConfiguration(request, progress, attempt)) continue
    if (attempt.metafile === undefined) {
      if (attempt.errors.some(isMissingExport)) throw buildError(attempt.errors)
      if (await blameFiles(request, progress, attempt)) continue
      if (await blameEntries(request, progress, attempt)) continue
      throw buildError(attempt.errors)
    }
    if (refuseImports(progress, attempt.record, attempt.metafile)) continue
    if (refuseOutsideImports(request, progress, attempt.record, attempt.metafile)) continue
    checkDriver(progress, attempt.metafile)
    const output = attempt.metafile.outputs[bundlePathIn(request.bundleDir)]
    return { bytes: output?.bytes ?? 0, configuration: progress.configuration }
  }
}

/**
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @returns {Promise<Attempt>}
 */
async function buildOnce(request, progress) {
  for (;;) {
    /** @type {BuildRecord} */
    const record = { files: new Map(), refused: new Map(), entries: new Map() }
    try {
      const attempt = await buildInContext(request, progress, record)
      if (!attempt.errors.some(({ text, location }) => location === null && isStopped(text))) return attempt
    } catch (error) {
      if (request.signal?.aborted || !isStopped(/** @type {Error} */ (error).message)) throw error
    }
    // Another build may have ended the program that all share; its own can only have been ended by itself.
    if (await progress.services.renew()) return { errors: [serviceEnded()], metafile: undefined, record }
  }
}

/**
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @param {BuildRecord} record filled
 * @returns {Promise<Attempt>}
 */
async function buildInContext(request, { files, entries, configuration, services }, record) {
  const { driverSource, bundleDir, runtimeBeside, containment, externals, signal } = request
  signal?.throwIfAborted()
  const service = services.current()
  const context = await service.startContext({
    absPaths: ['code', 'log', 'metafile'],
    // Keeps esbuild from a Plug'n'Play manifest of the project, since the child has no Plug'n'Play either, and from those
    // that others put into a temp directory that they share.
    absWorkingDir: path.parse(bundleDir).root,
    banner: { js: BANNER },
    bundle: true,
    define: LOCATION_DEFINES,
    entryPoints: ['sallyport-driver'],
    format: 'esm',
    ignoreAnnotations: true,
    keepNames: true,
    logLevel: 'silent',
    logLimit: 0,
    logOverride: NO_WARNINGS,
    metafile: true,
    outfile: bundlePathIn(bundleDir),
    platform: 'node',
    plugins: [
      createPlugin({
        driverPath: driverPathIn(bundleDir),
        driverSource,
        runtimeBeside,
        containment,
        externals,
        substitutions: { files, entries },
        record,
      }),
    ],
    resolveExtensions: [...RESOLVE_EXTENSIONS],
    target: TARGET,
    write: true,
    ...(configuration.length > 0 ? { tsconfigRaw: '{}' } : {}),
  })
  try {
    const { metafile } = await rebuild(service, context, signal)
    return { errors: [], metafile, record }
  } catch (error) {
    signal?.throwIfAborted()
    const { errors } = /** @type {{ errors?: Message[] }} */ (error)
    if (!Array.isArray(errors)) throw error
    return { errors, metafile: undefined, record }
  } finally {
    context.dispose().catch(() => undefined)
  }
}

/**
 * Does without all `tsconfig.json` files from here on where one is not to be used.
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @param {Attempt} attempt
 * @returns {Promise<boolean>} whether another round is needed; so it is with all below
 */
async function checkConfiguration({ containment, signal }, { configuration }, { record, metafile }) {
  if (!containment || configuration.length > 0) return false
  const directories = new Set([...record.files.keys()].map((file) => path.dirname(file)))
  const fault = await findConfigurationFault(directories, containment, signal)
  if (fault === undefined) return false
  if (fault.target !== undefined) {
    configuration.push(refusal(fault.file, fault.target, fault.specifier ?? fault.file))
    return true
  }
  // esbuild's own message is the better one, as long as it has one.
  if (metafile === undefined) return false
  const message = `${fault.file}: it cannot be followed to what it extends: it, or the manifest of a package that it extends, is no regular file, larger than 1 MiB, no JSON, has a key twice, extends more than ${MOST_EXTENDED} files, or has paths or ends of lines that not all readers take alike`
  configuration.push({ type: 'import', file: fault.file, message, messages: [] })
  return true
}

/**
 * Takes out the files that a failed build names.
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @param {Attempt} attempt
 * @returns {Promise<boolean>}
 */
async function blameFiles(request, progress, { errors, record }) {
  const before = progress.files.size + progress.entries.size + progress.configuration.length
  /** @type {Message[]} */
  const ofDriver = []
  for (const message of errors) {
    const { location } = message
    if (location === null) continue
    const file = location.file
    if (location.namespace === DRIVER_NAMESPACE) {
      const entry = entryAt(message, record)
      if (entry === undefined) ofDriver.push(message)
      else addOnce(progress.entries, entry, buildFailure({ ...message, location: null }, entry))
    } else if (record.files.has(file)) {
      addOnce(progress.files, file, buildFailure(message, file, record.files.get(file)))
    } else if (isConfiguration(message) && progress.configuration.length === 0) {
      progress.configuration.push(await failureOfConfiguration(request, message))
    }
  }
  if (ofDriver.length > 0) throw buildError(ofDriver.map((message) => inDriver(message, request)))
  return progress.files.size + progress.entries.size + progress.configuration.length > before
}

/**
 * What could not be assigned to a file (a `package.json` that is no JSON, say, stops every build that looks at it):
 * each file of the project is built alone to see which ones meet it.
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @param {Attempt} attempt
 * @returns {Promise<boolean>}
 */
async function blameEntries(request, progress, { errors, record }) {
  const open = [...record.entries]
    .filter(([entry, kind]) => kind === 'dynamic-import' && !progress.entries.has(entry))
    .map(([entry]) => entry)
  const [first] = errors
  if (first === undefined) return false
  let found = false
  for (const entry of open) {
    const entries = new Map(progress.entries)
    for (const other of open) {
      if (other !== entry) entries.set(other, buildFailure({ ...first, location: null }, other))
    }
    const alone = await buildOnce(request, { ...progress, entries })
    const [message] = alone.errors
    if (message === undefined) continue
    progress.entries.set(entry, await failureOfConfiguration(request, message, entry))
    found = true
  }
  return found
}

/**
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 * @param {V} value
 */
function addOnce(map, key, value) {
  if (!map.has(key)) map.set(key, value)
}

/**
 * @param {Message} message
 * @returns {boolean} whether it is about a file that esbuild reads for itself and can do without
 */
function isConfiguration({ location }) {
  if (location === null || (location.namespace !== '' && location.namespace !== 'file')) return false
  return path.isAbsolute(location.file) && path.basename(location.file) !== 'package.json'
}

/**
 * esbuild quotes what it stumbles over, also from a file that may not be read.
 * @param {BundleRequest} request
 * @param {Message} message
 * @param {string} [entry] the file it is reported for
 * @returns {Promise<FileFailure>}
 */
async function failureOfConfiguration({ containment }, message, entry) {
  const file = message.location?.file ?? entry ?? ''
  const real = path.isAbsolute(file) ? await realPathOf(file) : undefined
  if (containment && real !== undefined && !(await containment.allowsConfiguration(real))) {
    return refusal(entry ?? file, real, file)
  }
  return buildFailure(message, file)
}

/**
 * @param {Message} message in the driver
 * @param {BuildRecord} record
 * @returns {string | undefined} the specifier of the dynamic import that it is about
 */
function entryAt({ location }, record) {
  if (location === null) return undefined
  const { lineText, column, length } = location
  const literal = Buffer.from(lineText)
    .subarray(column, column + length)
    .toString('utf8')
  return [...record.entries].find(
    ([entry, kind]) => kind === 'dynamic-import' && literal === JSON.stringify(entry),
  )?.[0]
}

/**
 * @param {Message} message
 * @param {BundleRequest} request
 * @returns {Message} with the path of the driver as people know it
 */
function inDriver(message, { bundleDir }) {
  const { location } = message
  return location === null ? message : { ...message, location: { ...location, file: driverPathIn(bundleDir) } }
}

/**
 * @param {string} input a key of the metafile
 * @returns {boolean}
 */
function isDriver(input) {
  return input.startsWith(`${DRIVER_NAMESPACE}:`)
}

/**
 * Takes out the files that import what may not be read.
 * @param {Progress} progress
 * @param {BuildRecord} record
 * @param {Metafile} metafile
 * @returns {boolean}
 */
function refuseImports(progress, record, { inputs }) {
  for (const [refused, target] of record.refused) {
    let asked = false
    for (const [importer, { imports }] of Object.entries(inputs)) {
      const found = imports.find((each) => each.path === refused && !each.external)
      if (found === undefined) continue
      asked = true
      const specifier = found.original ?? refused
      if (isDriver(importer)) refuseEntry(progress, record, specifier, target)
      else refuseImport(progress, record, importer, target, specifier)
    }
    if (asked) continue
    // Only a pattern can have brought it in. The pattern goes too: its names are those of what may not be listed.
    for (const [importer, { imports }] of Object.entries(inputs)) {
      const pattern = imports.find((each) => each.external && mayMatch(each.path, importer, refused))
      if (pattern === undefined) continue
      asked = true
      // Its target is not told: that it is there is what may not be known.
      refuseImport(progress, record, importer, pattern.path, pattern.path)
    }
    if (!asked) addOnce(progress.files, refused, refusal(refused, target, refused))
  }
  return record.refused.size > 0
}

/**
 * @param {string} pattern
 * @param {string} importer
 * @param {string} file
 * @returns {boolean} whether it is a pattern whose fixed part leads to the file
 */
function mayMatch(pattern, importer, file) {
  const star = pattern.indexOf('*')
  if (star < 0 || !/^\.{1,2}\//.test(pattern)) return false
  const fixed = pattern.slice(0, star)
  const base = path.resolve(path.dirname(importer), fixed)
  return file.startsWith(fixed.endsWith('/') && !base.endsWith(path.sep) ? base + path.sep : base)
}

/**
 * @param {Progress} progress
 * @param {BuildRecord} record
 * @param {string} specifier
 * @param {string} target
 */
function refuseEntry(progress, record, specifier, target) {
  const failure = refusal(specifier, target, specifier)
  if (record.entries.get(specifier) !== 'dynamic-import') throw buildError([messageOf(failure)])
  addOnce(progress.entries, specifier, failure)
}

/**
 * @param {Progress} progress
 * @param {BuildRecord} record
 * @param {string} importer
 * @param {string} target
 * @param {string} specifier
 */
function refuseImport(progress, record, importer, target, specifier) {
  const content = record.files.get(importer)?.content
  const position = content === undefined ? {} : positionOfSpecifier(content, specifier)
  addOnce(progress.files, importer, refusal(importer, target, specifier, position))
}

/**
 * Takes out the files with a static import that is left to Node: if Node cannot resolve it, the whole bundle would fail
 * before any of it runs.
 * @param {BundleRequest} request
 * @param {Progress} progress
 * @param {BuildRecord} record
 * @param {Metafile} metafile
 * @returns {boolean}
 */
function refuseOutsideImports({ bundleDir }, progress, record, { inputs, outputs }) {
  const left = new Set(
    (outputs[bundlePathIn(bundleDir)]?.imports ?? [])
      .filter(({ external, kind, path: left }) => external && kind === 'import-statement' && left !== RUNTIME_BESIDE)
      .map((each) => each.path),
  )
  let found = false
  for (const [importer, { imports }] of left.size === 0 ? [] : Object.entries(inputs)) {
    const outside = imports.find((each) => each.external && each.kind === 'import-statement' && left.has(each.path))
    if (outside === undefined) continue
    const content = record.files.get(importer)?.content
    const position = content === undefined ? {} : positionOfSpecifier(content, outside.path)
    const failure = outsideFailure(isDriver(importer) ? driverPathIn(bundleDir) : importer, outside.path, position)
    if (isDriver(importer)) throw buildError([messageOf(failure)])
    addOnce(progress.files, importer, failure)
    found = true
  }
  return found
}

/**
 * A file that the driver needs for itself must not be one that was taken out.
 * @param {Progress} progress
 * @param {Metafile} metafile
 */
function checkDriver({ files }, { inputs }) {
  if (files.size === 0) return
  const reached = new Set(Object.keys(inputs).filter(isDriver))
  for (const input of reached) {
    const failure = files.get(input)
    if (failure) throw buildError(failure.messages.length > 0 ? failure.messages : [messageOf(failure)])
    for (const each of inputs[input]?.imports ?? []) {
      if (!each.external && each.kind !== 'dynamic-import') reached.add(each.path)
    }
  }
}

module.exports = { build, bundlePathIn }
