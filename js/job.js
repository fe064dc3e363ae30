'use strict'

// Runs one job of the addon and makes a promise of it: progress, hooks and the caller's signal included. Every way out
// waits for the addon's last event, and for the hooks that make or remove something, so a promise that has settled has
// nothing left behind it. Fails with the error the
// failure record stands for; with the very value that a hook or `onProgress` threw; with `signal.reason`. A cleanup
// that could not be confirmed wins over all of these, because something may still be on the disk.

const { AsyncResource } = require('node:async_hooks')

const binding = require('./binding')
const { fromRecord, internalError } = require('./errors')
const { fromJson, toJson } = require('./json')

/**
 * @typedef {import('../index.js').MirrorProgress} MirrorProgress
 * @typedef {import('./binding.js').NativeJob} NativeJob
 * @typedef {import('./errors.js').FailureRecord} FailureRecord
 */

/**
 * @typedef {{ type: 'progress', progress: MirrorProgress }
 *   | { type: 'hook', id: number, name: string, arguments: unknown[] }
 *   | { type: 'output', lines: [isError: boolean, line: string][] }
 *   | { type: 'done', value?: any, failure?: FailureRecord }} JobEvent
 */

/**
 * @typedef {object} JobResult
 * @property {any} value of the last event
 * @property {NativeJob} job
 */

/**
 * @typedef {object} JobOptions
 * @property {AbortSignal} [signal]
 * @property {(progress: MirrorProgress) => void} [onProgress] what it throws calls the job off
 * @property {Record<string, (...values: any[]) => Promise<unknown>>} [hooks] what they reject with fails the job
 * @property {(line: string, stream: 'stdout' | 'stderr') => void} [onOutput] what it throws calls the job off
 * @property {(job: NativeJob) => void} [onStart] is given the job as soon as it runs
 * @property {Record<string, (value: any, reason: unknown) => Promise<void>>} [late] the hooks that are waited for even
 *   when the job was called off, and what undoes what they then give
 * @property {(result: JobResult, reason: unknown) => Promise<void>} [discard] undoes a job that was finished before it
 *   could be stopped
 */

// process.exit() runs no cleanup hook of the main thread: without this a mirror in the making would be left behind. The
// listener is there only while a job runs.
let running = 0

function begin() {
  if (running++ === 0) process.on('exit', binding.endJobs)
}

function finish() {
  if (--running === 0) process.off('exit', binding.endJobs)
}

/**
 * @param {'mirror' | 'dispose' | 'index' | 'observed' | 'snapshotNode' | 'hashFile' | 'sweep' | 'sandbox' | 'probe' | 'programFiles'} kind
 * @param {Record<string, unknown>} request
 * @param {JobOptions} [options]
 * @returns {Promise<JobResult>}
 */
function runJob(kind, request, { signal, onProgress, onOutput, onStart, hooks = {}, late = {}, discard } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }

    /** @type {NativeJob | undefined} */
    let job
    /** @type {{ reason: unknown } | undefined} */
    let calledOff
    let ended = false
    /** @type {unknown[]} */
    const thrown = []
    /** @type {{ name: string, over: Promise<{ value?: unknown }> }[]} */
    const unanswered = []

    /** @param {unknown} reason */
    const callOff = (reason) => {
      if (calledOff !== undefined || ended) return
      calledOff = { reason }
      job?.cancel()
    }
    const onAbort = () => callOff(signal?.reason)

    /** @param {MirrorProgress} progress */
    const report = (progress) => {
      if (onProgress === undefined || calledOff !== undefined) return
      try {
        onProgress(progress)
      } catch (error) {
        callOff(error)
      }
    }

    /** @param {Extract<JobEvent, { type: 'output' }>} event */
    const forward = (event) => {
      for (const [isError, line] of event.lines) {
        // What was written before the job was called off has been read before; nothing is owed after that.
        if (onOutput === undefined || calledOff !== undefined) return
        try {
          onOutput(line, isError ? 'stderr' : 'stdout')
        } catch (error) {
          callOff(error)
        }
      }
    }

    /** @param {Extract<JobEvent, { type: 'hook' }>} event */
    const runHook = async (event) => {
      let response
      try {
        const value = await hooks[event.name](...event.arguments)
        response = { value: value ?? null }
      } catch (error) {
        response = { failed: thrown.push(error) - 1 }
      }
      // A job that was called off waits for no answer: whether it still took one could not be told.
      if (calledOff !== undefined || ended) return response
      job?.answer(event.id, toJson(response))
      return {}
    }

    /** @param {Extract<JobEvent, { type: 'hook' }>} event */
    const startHook = (event) => {
      const over = runHook(event)
      over.catch(callOff)
      if (Object.hasOwn(late, event.name)) unanswered.push({ name: event.name, over })
    }

    /**
     * Waits for the hooks that are not over, and undoes what they gave too late.
     * @param {unknown} reason
     */
    const undoLate = async (reason) => {
      for (const { name, over } of unanswered) {
        const { value } = await over
        if (value !== undefined) await late[name](value, reason)
      }
    }

    /** @param {Extract<JobEvent, { type: 'done' }>} event */
    const end = async (event) => {
      ended = true
      finish()
      signal?.removeEventListener('abort', onAbort)
      const result = { value: event.value, job: /** @type {NativeJob} */ (job) }
      if (event.failure !== undefined) {
        if (calledOff !== undefined) await undoLate(calledOff.reason)
        const failure = fromRecord(event.failure, { thrown, calledOff })
        if (calledOff === undefined || event.failure.kind === 'cleanup') throw failure
        throw calledOff.reason
      }
      if (calledOff === undefined) return result
      await discard?.(result, calledOff.reason)
      throw calledOff.reason
    }

    /** @param {string} text */
    const notify = (text) => {
      /** @type {JobEvent} */
      const event = fromJson(text)
      switch (event.type) {
        case 'progress':
          report(event.progress)
          break
        case 'output':
          forward(event)
          break
        case 'hook':
          startHook(event)
          break
        case 'done':
          end(event).then(resolve, reject)
          break
        default:
          callOff(internalError(`the addon sent an event that is not known here, please report it: ${text}`))
      }
    }

    signal?.addEventListener('abort', onAbort, { once: true })
    begin()
    try {
      // Events arrive from a thread of the addon, where the caller's AsyncLocalStorage context is not known.
      job = binding.startJob(kind, toJson(request), AsyncResource.bind(notify))
    } catch (error) {
      finish()
      signal?.removeEventListener('abort', onAbort)
      reject(error)
      return
    }
    onStart?.(job)
  })
}

module.exports = { runJob }
