'use strict'

// Mirrors: the options of the caller checked in the contract's order, the handle, its lease and its cleanup. The work
// is the addon's. Fails with the classes of js/errors.js, with TypeErrors before anything has been created, and with
// whatever the caller's own signal, hooks and callbacks gave. Source of the rules: contract/mirror.md.

const fs = require('node:fs/promises')
const os = require('node:os')
const path = require('node:path')

const binding = require('./binding')
const {
  invalidType,
  invalidValue,
  optional,
  requireAbortSignal,
  requireAbsolutePath,
  requireArray,
  requireBoolean,
  requireFiniteNumber,
  requireFunction,
  requireObject,
  requireOneOf,
  requirePath,
  requirePaths,
  requireWholeNumber,
} = require('./arguments')
const { ContainedExecutionCleanupUnconfirmedError, ContainedExecutionFailureError, internalError } = require('./errors')
const { runJob } = require('./job')
const { fromJson } = require('./json')
const { refuseMisspelt } = require('./spelling')

/**
 * @typedef {import('../index.js').ContainedExecutionMirrorHandle} ContainedExecutionMirrorHandle
 * @typedef {import('../index.js').DisposableContainedExecutionMirrorHandle} DisposableContainedExecutionMirrorHandle
 * @typedef {import('../index.js').ContainedExecutionMirrorOptions} ContainedExecutionMirrorOptions
 * @typedef {import('../index.js').MirrorProgress} MirrorProgress
 * @typedef {import('../index.js').MirrorReport} MirrorReport
 * @typedef {import('../index.js').MirrorTestDependencies} MirrorTestDependencies
 * @typedef {import('./binding.js').NativeLease} NativeLease
 */

/** @typedef {Record<string, (...values: any[]) => Promise<unknown>>} Hooks */

/**
 * A mirror and the one way to remove it that no edit of the handle can reach.
 * @typedef {{ handle: DisposableContainedExecutionMirrorHandle, dispose: () => Promise<void> }} Mirror
 */

// The table is the addon's, so that a lease outlives a test runner's reset of this module. The methods are taken now,
// so that nothing which runs later in this process can stand between a handle and its lease.
const leases = binding.leaseTable()
const leaseOf = WeakMap.prototype.get.bind(leases)
const rememberLease = WeakMap.prototype.set.bind(leases)

// The cleanup of a handle stands on its lease, so that it is found wherever the lease is. Nobody but this module sees a
// lease.
const CLEANUP = Symbol.for('sallyport.mirror.cleanup')

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')

const BACKEND = 'file_copy'
const OPTIONS = Object.freeze([
  ...['sourceRoot', 'controlPlaneRoots', 'limits', 'hardlinks', 'preserveTimes', 'flush', 'tempDirectory'],
  ...['signal', 'onProgress'],
])
const LIMITS = /** @type {const} */ (['maxFiles', 'maxSourceBytes', 'maxWorkspaceBytes', 'prepareTimeoutMs'])

/** Old enough that no preparation can still be between making its root and locking it. */
const SWEEP_OLDER_THAN_MS = 60_000

/**
 * @param {unknown} value
 * @returns {unknown[]}
 */
function controlPlaneRootsOf(value) {
  if (Array.isArray(value)) return value
  // The code is the reference's; the cause says what a person has to change.
  const cause = invalidType('options.controlPlaneRoots', 'an instance of Array', value)
  throw new ContainedExecutionFailureError('contained_execution_control_plane_roots_required', { cause })
}

/**
 * @param {unknown} value
 * @returns {Record<string, number>}
 */
function limitsOf(value) {
  /** @param {TypeError} cause */
  const invalid = (cause) => new ContainedExecutionFailureError('contained_execution_mirror_limits_invalid', { cause })
  if (typeof value !== 'object' || value === null) throw invalid(invalidType('options.limits', 'of type object', value))
  const given = /** @type {Record<string, unknown>} */ (value)
  return Object.fromEntries(
    LIMITS.map((name) => {
      const limit = given[name]
      const option = `options.limits.${name}`
      if (typeof limit !== 'number') throw invalid(invalidType(option, 'of type number', limit))
      if (!Number.isSafeInteger(limit) || limit <= 0) {
        throw invalid(invalidValue(option, 'a whole number above zero', limit))
      }
      return [name, limit]
    }),
  )
}

/**
 * The options as a job's request, in the order of contract/mirror.md: the reference's own codes before any TypeError
 * but the one for options that are no object at all.
 * @param {unknown} options
 */
function readOptions(options) {
  const given = requireObject(options, 'options')
  const controlPlaneRoots = controlPlaneRootsOf(given.controlPlaneRoots)
  const limits = limitsOf(given.limits)
  refuseMisspelt(given, 'options', OPTIONS)
  const request = {
    sourceRoot: path.resolve(requirePath(given.sourceRoot, 'options.sourceRoot')),
    controlPlaneRoots: resolveAll(requirePaths(controlPlaneRoots, 'options.controlPlaneRoots')),
    limits,
    hardlinks:
      optional(given.hardlinks, 'options.hardlinks', (value, name) => requireOneOf(value, name, ['reject', 'copy'])) ??
      'reject',
    preserveTimes: optional(given.preserveTimes, 'options.preserveTimes', requireBoolean) ?? true,
    flush: optional(given.flush, 'options.flush', requireBoolean) ?? false,
    tempDirectory: readTempDirectory(given.tempDirectory),
  }
  const signal = optional(given.signal, 'options.signal', requireAbortSignal)
  const onProgress = optional(given.onProgress, 'options.onProgress', requireFunction)
  return { request, signal, onProgress }
}

/**
 * @param {unknown} value
 * @returns {string} absolute; what os.tmpdir() says at this moment where none was given
 */
function readTempDirectory(value) {
  return path.resolve(optional(value, 'options.tempDirectory', requirePath) ?? os.tmpdir())
}

/**
 * @param {string[]} paths
 * @returns {string[]}
 */
function resolveAll(paths) {
  return paths.map((item) => path.resolve(item))
}

/** What each hook may give back, checked before the addon uses it; a hook that is not here gives nothing back. */
const HOOK_RESULTS = new Map(
  /** @type {[keyof MirrorTestDependencies, ((value: unknown, name: string) => unknown) | undefined][]} */ ([
    ['makeTempRoot', requireAbsolutePath],
    ['removeRoot', undefined],
    ['now', requireFiniteNumber],
    ['afterSnapshotCaptured', undefined],
    ['beforeCopyOpen', undefined],
    ['afterCopyRead', undefined],
  ]),
)

/**
 * @param {unknown} overrides
 * @returns {Hooks}
 */
function readOverrides(overrides) {
  const given = requireObject(overrides, 'overrides')
  refuseMisspelt(given, 'overrides', [...HOOK_RESULTS.keys()])
  /** @type {Hooks} */
  const hooks = {}
  for (const [name, check] of HOOK_RESULTS) {
    const hook = optional(given[name], `overrides.${name}`, requireFunction)
    if (hook === undefined) continue
    hooks[name] = async (...values) => {
      // `now` is synchronous: a promise is a wrong result, not one to wait for.
      const returned = Reflect.apply(hook, given, values)
      const result = name === 'now' ? returned : await returned
      return check?.(result, `overrides.${name}()`)
    }
  }
  return hooks
}

/**
 * @param {NativeLease} lease
 * @param {Hooks} hooks
 * @param {((progress: MirrorProgress) => void) | undefined} onProgress
 * @returns {() => Promise<void>}
 */
function disposerOf(lease, hooks, onProgress) {
  /** @type {Promise<void> | undefined} */
  let running
  let removed = false

  const remove = async () => {
    /** @type {{ error: unknown } | undefined} */
    let progressFailure
    // A callback that throws must not stop a removal half way, so it is heard only when the root is gone.
    const report = (/** @type {MirrorProgress} */ progress) => {
      if (onProgress === undefined || progressFailure !== undefined) return
      try {
        onProgress(progress)
      } catch (error) {
        progressFailure = { error }
      }
    }
    const request = { lease: lease.id, hooks: Object.keys(hooks), wantsProgress: onProgress !== undefined }
    await runJob('dispose', request, { hooks, onProgress: report })
    removed = true
    if (progressFailure !== undefined) throw progressFailure.error
  }

  return async () => {
    // Before anything is awaited: from here on nobody may take the mirror for a live one.
    lease.end()
    if (removed) return
    running ??= remove().finally(() => {
      running = undefined
    })
    await running
  }
}

/**
 * @param {import('./job.js').JobResult} result
 * @returns {NativeLease}
 */
function takeLease({ job }) {
  const lease = job.takeLease()
  if (lease === null) throw internalError('the addon finished a mirror without a lease, please report it')
  return lease
}

/**
 * Removes a mirror that was finished at the moment at which it was called off.
 * @param {import('./job.js').JobResult} finished
 * @param {Hooks} hooks
 * @param {unknown} reason why it was called off
 * @returns {Promise<void>}
 */
async function discard(finished, hooks, reason) {
  try {
    await disposerOf(takeLease(finished), hooks, undefined)()
  } catch (error) {
    if (error instanceof ContainedExecutionCleanupUnconfirmedError) Object.assign(error, { preparationError: reason })
    throw error
  }
}

/**
 * Removes the root that `makeTempRoot` made after the work had been called off. The addon never held it, so nothing but
 * an empty folder is removed.
 * @param {string} root
 * @param {Hooks} hooks
 * @param {unknown} reason why it was called off
 * @returns {Promise<void>}
 */
async function discardLateRoot(root, hooks, reason) {
  /** @type {ErrorOptions | undefined} */
  let failure
  try {
    if (hooks.removeRoot === undefined) await fs.rmdir(root)
    else await hooks.removeRoot(root)
  } catch (cause) {
    failure = { cause }
  }
  if (failure === undefined && !(await isThere(root))) return
  throw Object.assign(new ContainedExecutionCleanupUnconfirmedError(root, failure), { preparationError: reason })
}

/**
 * @param {string} file
 * @returns {Promise<boolean>} what cannot be looked at counts as there
 */
async function isThere(file) {
  try {
    await fs.lstat(file)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT'
  }
}

/**
 * @param {ReturnType<typeof readOptions>} options
 * @param {Hooks} hooks
 * @returns {Promise<Mirror>}
 */
async function prepare({ request, signal, onProgress }, hooks) {
  const result = await runJob(
    'mirror',
    { ...request, hooks: Object.keys(hooks), wantsProgress: onProgress !== undefined },
    {
      signal,
      onProgress,
      hooks,
      discard: (finished, reason) => discard(finished, hooks, reason),
      late: {
        makeTempRoot: (root, reason) => discardLateRoot(String(root), hooks, reason),
        // The addon removes the root itself then; the hook must only be over before the promise settles.
        removeRoot: async () => undefined,
      },
    },
  )
  const lease = takeLease(result)
  const dispose = disposerOf(lease, hooks, onProgress)

  /** @type {ContainedExecutionMirrorHandle} */
  const fields = {
    hostMirrorRoot: result.value.hostMirrorRoot,
    guestWorkspacePath: result.value.guestWorkspacePath,
    backend: BACKEND,
    cleanup: dispose,
  }
  const disposal = { value: dispose, writable: true, configurable: true }
  const handle = /** @type {DisposableContainedExecutionMirrorHandle} */ (
    Object.defineProperty(fields, asyncDispose, disposal)
  )
  Object.defineProperty(lease, CLEANUP, { value: dispose })
  rememberLease(handle, lease)
  return { handle, dispose }
}

/**
 * @template T
 * @param {ReturnType<typeof readOptions>} options
 * @param {(mirror: ContainedExecutionMirrorHandle) => Promise<T> | T} operation
 * @param {Hooks} hooks
 * @returns {Promise<T>}
 */
async function withMirror(options, operation, hooks) {
  const { handle, dispose } = await prepare(options, hooks)
  /** @type {{ error: unknown } | undefined} */
  let operationFailure
  /** @type {T | undefined} */
  let value
  try {
    value = await operation(handle)
  } catch (error) {
    operationFailure = { error }
  }
  try {
    await dispose()
  } catch (error) {
    if (operationFailure === undefined) throw error
    // A root that may still be there matters more than why the operation failed; what `onProgress` threw does not.
    if (error instanceof ContainedExecutionCleanupUnconfirmedError) {
      throw Object.assign(error, { operationError: operationFailure.error })
    }
  }
  if (operationFailure !== undefined) throw operationFailure.error
  return /** @type {T} */ (value)
}

/**
 * @param {ContainedExecutionMirrorOptions} options
 * @returns {Promise<DisposableContainedExecutionMirrorHandle>}
 */
async function prepareContainedExecutionMirror(options) {
  const { handle } = await prepare(readOptions(options), {})
  return handle
}

/**
 * @param {ContainedExecutionMirrorOptions} options
 * @param {MirrorTestDependencies} overrides
 * @returns {Promise<DisposableContainedExecutionMirrorHandle>}
 */
async function prepareContainedExecutionMirrorForTests(options, overrides) {
  const read = readOptions(options)
  const { handle } = await prepare(read, readOverrides(overrides))
  return handle
}

/**
 * @template T
 * @param {ContainedExecutionMirrorOptions} options
 * @param {(mirror: ContainedExecutionMirrorHandle) => Promise<T>} operation
 * @returns {Promise<T>}
 */
async function withContainedExecutionMirror(options, operation) {
  const read = readOptions(options)
  requireFunction(operation, 'operation')
  return withMirror(read, operation, {})
}

/**
 * @template T
 * @param {ContainedExecutionMirrorOptions} options
 * @param {(mirror: ContainedExecutionMirrorHandle) => Promise<T>} operation
 * @param {MirrorTestDependencies} overrides
 * @returns {Promise<T>}
 */
async function withContainedExecutionMirrorForTests(options, operation, overrides) {
  const read = readOptions(options)
  requireFunction(operation, 'operation')
  return withMirror(read, operation, readOverrides(overrides))
}

const HANDLE_KEYS = ['hostMirrorRoot', 'guestWorkspacePath', 'backend', 'cleanup']

/**
 * The fields of a handle; nothing where they are not exactly those that a handle has. A field that is computed when it
 * is asked for counts as another field: it could have another value the next time.
 * @param {object} handle
 * @returns {Record<string, unknown> | undefined}
 */
function fieldsOf(handle) {
  if (Object.keys(handle).length !== HANDLE_KEYS.length) return undefined
  /** @type {Record<string, unknown>} */
  const fields = {}
  for (const key of HANDLE_KEYS) {
    const descriptor = Reflect.getOwnPropertyDescriptor(handle, key)
    if (descriptor === undefined || !descriptor.enumerable || !('value' in descriptor)) return undefined
    fields[key] = descriptor.value
  }
  return fields
}

/**
 * A handle of any other kind is no mirror of ours, which is an answer and not an error.
 * @param {ContainedExecutionMirrorHandle} handle
 * @param {{ sourceRoot: string, protectedRoots: readonly string[] }} expected
 * @returns {boolean}
 */
function validateContainedExecutionMirrorLease(handle, expected) {
  const given = requireObject(expected, 'expected')
  const sourceRoot = path.resolve(requirePath(given.sourceRoot, 'expected.sourceRoot'))
  const protectedRoots = resolveAll(
    requirePaths(requireArray(given.protectedRoots, 'expected.protectedRoots'), 'expected.protectedRoots'),
  )
  const lease = leaseOf(handle)
  if (lease === undefined) return false
  const fields = fieldsOf(handle)
  if (fields === undefined || fields.cleanup !== Reflect.get(lease, CLEANUP)) return false
  const { hostMirrorRoot, guestWorkspacePath, backend } = fields
  if (typeof hostMirrorRoot !== 'string' || typeof guestWorkspacePath !== 'string' || typeof backend !== 'string') {
    return false
  }
  return lease.matches(hostMirrorRoot, guestWorkspacePath, backend, sourceRoot, protectedRoots)
}

/**
 * @param {ContainedExecutionMirrorHandle} handle
 * @returns {MirrorReport}
 */
function describeContainedExecutionMirror(handle) {
  if (typeof handle !== 'object' || handle === null) throw invalidType('handle', 'of type object', handle)
  const lease = leaseOf(handle)
  if (lease === undefined) throw new ContainedExecutionFailureError('contained_execution_invalid_mirror_lease')
  return fromJson(lease.report())
}

/**
 * @param {{ tempDirectory?: string, olderThanMs?: number }} [options]
 * @returns {Promise<{ removed: string[], kept: number }>}
 */
async function sweepAbandonedMirrors(options) {
  const given = optional(options, 'options', requireObject) ?? {}
  refuseMisspelt(given, 'options', ['tempDirectory', 'olderThanMs'])
  const tempDirectory = readTempDirectory(given.tempDirectory)
  const olderThanMs = optional(given.olderThanMs, 'options.olderThanMs', requireWholeNumber) ?? SWEEP_OLDER_THAN_MS
  const { value } = await runJob('sweep', { tempDirectory, olderThanMs })
  return value
}

module.exports = {
  describeContainedExecutionMirror,
  prepareContainedExecutionMirror,
  prepareContainedExecutionMirrorForTests,
  sweepAbandonedMirrors,
  validateContainedExecutionMirrorLease,
  withContainedExecutionMirror,
  withContainedExecutionMirrorForTests,
}
