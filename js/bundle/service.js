'use strict'

// esbuild's program, which its JavaScript interface starts once for a process and keeps: starting it within bounds,
// building in it so that a build can be called off, and stopping it where there is no other way. Rejects with what
// esbuild throws, and with the signal's reason. Source: contract/sandbox.md, "Bundling".

const childProcess = require('node:child_process')

const binding = require('../binding')

/** @typedef {import('esbuild').Message} Message */

/**
 * A cancelled build ends within milliseconds, unless esbuild hangs on a FIFO that is called `package.json`. It is then
 * stopped as a whole, which is the only way; builds of others begin again (`buildOnce`).
 */
const STUCK_AFTER_MS = 2000

/**
 * The most memory of esbuild's program in bytes, where it was started for a bundle: it reads manifests and configurations
 * of any size by itself, and one that is a link to /dev/zero has no end.
 */
const SERVICE_BYTES = 2 * 1024 ** 3

/** esbuild's own words, which have no code. */
const STOPPED = /The service (?:was stopped|is no longer running)/

/**
 * @param {import('esbuild').BuildOptions} options
 * @returns {Promise<import('esbuild').BuildContext>}
 */
function startContext(options) {
  // Loaded here, so that whoever only mirrors does not pay for it.
  const esbuild = require('esbuild')
  const { spawn } = childProcess
  /** @type {number | undefined} */
  let service
  // esbuild starts its program within the call, or has it already, and does not tell which process that is.
  childProcess.spawn = /** @type {any} */ (
    (/** @type {any[]} */ ...spawned) => {
      const started = Reflect.apply(spawn, childProcess, spawned)
      service = started.pid
      return started
    }
  )
  let context
  try {
    context = esbuild.context(options)
  } finally {
    childProcess.spawn = spawn
  }
  if (service !== undefined) binding.limitProcessMemory(service, SERVICE_BYTES)
  return context
}

/**
 * An aborted build is waited for: it could still write, and esbuild 0.28 crashes where a context that is being cancelled
 * is disposed of.
 * @param {import('esbuild').BuildContext} context
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<import('esbuild').BuildResult>} rejects when it has ended, with whatever
 */
async function rebuild(context, signal) {
  if (signal === undefined) return context.rebuild()
  /** @type {() => void} */
  let cancel = () => undefined
  /** @type {NodeJS.Timeout | undefined} */
  let patience
  /** @type {Promise<void>} settles some time after the signal was aborted */
  const cancelled = new Promise((resolve) => {
    cancel = () => {
      patience = setTimeout(() => {
        stopService()
        resolve()
      }, STUCK_AFTER_MS)
      context.cancel().then(resolve, resolve)
    }
  })
  const rebuilding = context.rebuild()
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  try {
    // What is still under way when the cancellation is over was stopped, and never settles.
    return await Promise.race([rebuilding, cancelled.then(() => Promise.reject(signal.reason))])
  } finally {
    signal.removeEventListener('abort', cancel)
    if (signal.aborted) await cancelled
    clearTimeout(patience)
    rebuilding.catch(() => undefined)
  }
}

/**
 * @param {string} text of an error
 * @returns {boolean} whether it is because the program ended
 */
function isStopped(text) {
  return STOPPED.test(text)
}

/** @returns {Promise<void>} */
async function stopService() {
  await require('esbuild').stop()
}

/** @returns {Message} what is the error of each file that cannot be bundled even alone */
function serviceEnded() {
  const text =
    "esbuild's program ended again and again while it bundled this: a file, or a manifest that it reads, has no end or " +
    `takes more than ${SERVICE_BYTES / 1024 ** 3} GiB of memory`
  return { id: '', pluginName: '', text, location: null, notes: [], detail: undefined }
}

module.exports = { isStopped, rebuild, serviceEnded, startContext, stopService }
