'use strict'

// esbuild's program: starting it within bounds, building in it so that a build can be called off, and ending it where
// there is no other way. It is never the one of the caller's own builds: esbuild's JavaScript interface keeps one program
// for each time it is loaded, so it is loaded anew here, and what is bounded or ended is ours alone. Rejects with what
// esbuild throws, and with the signal's reason. Source: contract/sandbox.md, "Bundling".

const childProcess = require('node:child_process')

const binding = require('../binding')

/** @typedef {import('esbuild').Message} Message */

/**
 * A cancelled build ends within milliseconds, unless esbuild hangs on a FIFO that is called `package.json`. Its program
 * is then ended, which is the only way; builds of others begin again (`buildOnce`).
 */
const STUCK_AFTER_MS = 2000

/**
 * The most memory of a program in bytes: it reads manifests and configurations of any size by itself, and one that is a
 * link to /dev/zero has no end.
 */
const PROGRAM_BYTES = 2 * 1024 ** 3

/**
 * The longest answer of a program in bytes. Each of its messages quotes a whole line, so a long line with very many
 * errors makes answers that grow with the square of it, and taking one in holds the caller's event loop.
 */
const ANSWER_BYTES = 32 * 1024 ** 2

/** How many bytes tell the length of an answer, the lowest first. */
const LENGTH_BYTES = 4

/** esbuild's own words, which have no code. */
const STOPPED = /The service (?:was stopped|is no longer running)/

/**
 * @returns {typeof import('esbuild')} with a program of its own
 */
function loadAnew() {
  const file = require.resolve('esbuild')
  const shared = require.cache[file]
  delete require.cache[file]
  try {
    return require('esbuild')
  } finally {
    const loaded = require.cache[file]
    // Otherwise each that was ever loaded would be kept.
    const { children } = /** @type {NodeJS.Module} */ (/** @type {unknown} */ (module))
    if (loaded !== undefined) children.splice(children.indexOf(loaded), 1)
    delete require.cache[file]
    if (shared !== undefined) require.cache[file] = shared
  }
}

/** One program, started by its first build. */
class Service {
  // Loaded here, so that whoever only mirrors does not pay for it.
  #esbuild = loadAnew()
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #program
  #ended = false

  /** Whether it cannot build any more. */
  get ended() {
    return this.#ended
  }

  /**
   * @param {import('esbuild').BuildOptions} options
   * @returns {Promise<import('esbuild').BuildContext>}
   */
  startContext(options) {
    const { spawn } = childProcess
    // esbuild starts its program within the call, or has it already, and does not tell which process that is. What it
    // writes to stderr is how it ended, thousands of lines for a file that was made to end it.
    childProcess.spawn = /** @type {any} */ (
      /** @type {(...spawned: [string, string[], object]) => import('node:child_process').ChildProcess} */
      (command, args, options) =>
        this.#hold(spawn.call(childProcess, command, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] }))
    )
    try {
      return this.#esbuild.context(options)
    } finally {
      childProcess.spawn = spawn
    }
  }

  /**
   * @param {import('node:child_process').ChildProcess} program
   * @returns {import('node:child_process').ChildProcess}
   */
  #hold(program) {
    this.#program = program
    program.once('exit', () => {
      this.#ended = true
    })
    // Where modules cannot be loaded anew (Jest keeps its own cache of them) the next service is of the same module, which
    // would keep this program. Not before all that it wrote has arrived: what waits for an answer would wait for ever.
    program.once('close', () => void this.#esbuild.stop())
    if (program.pid !== undefined) binding.limitProcessMemory(program.pid, PROGRAM_BYTES)
    const measure = longestAnswer()
    program.stdout?.on('data', (/** @type {Buffer} */ chunk) => {
      if (measure(chunk) > ANSWER_BYTES) this.end()
    })
    return program
  }

  /** Ends it. Every build that it has under way rejects with words that `isStopped` knows. */
  end() {
    this.#ended = true
    this.#program?.kill('SIGKILL')
  }
}

/**
 * @returns {(chunk: Buffer) => number} takes what a program writes, piece by piece, and gives the length of the longest
 *   answer that has begun
 */
function longestAnswer() {
  let longest = 0
  let left = 0
  let length = 0
  let told = 0
  return (chunk) => {
    for (let at = 0; at < chunk.length;) {
      if (left > 0) {
        const taken = Math.min(left, chunk.length - at)
        left -= taken
        at += taken
        continue
      }
      length += chunk[at] * 2 ** (8 * told)
      at += 1
      told += 1
      if (told < LENGTH_BYTES) continue
      longest = Math.max(longest, length)
      left = length
      length = 0
      told = 0
    }
    return longest
  }
}

/** @type {Service | undefined} */
let shared

/** The programs that build one bundle: the one that all share, and one of its own where that was ended. */
class Services {
  /** @type {Service | undefined} */
  #own

  /** @returns {Service} for the next build */
  current() {
    if (this.#own !== undefined) return this.#own
    if (shared === undefined || shared.ended) shared = new Service()
    return shared
  }

  /**
   * Has the next build begin in a program of its own.
   * @returns {boolean} whether the one that ended was that already, so that no other build can have ended it
   */
  renew() {
    const wasOwn = this.#own !== undefined
    this.end()
    this.#own = new Service()
    return wasOwn
  }

  end() {
    this.#own?.end()
  }
}

/**
 * An aborted build is waited for: it could still write, and esbuild 0.28 crashes where a context that is being cancelled
 * is disposed of.
 * @param {Service} service
 * @param {import('esbuild').BuildContext} context
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<import('esbuild').BuildResult>} rejects when it has ended, with whatever
 */
async function rebuild(service, context, signal) {
  if (signal === undefined) return context.rebuild()
  /** @type {() => void} */
  let cancel = () => undefined
  /** @type {NodeJS.Timeout | undefined} */
  let patience
  /** @type {Promise<void>} settles some time after the signal was aborted */
  const cancelled = new Promise((resolve) => {
    cancel = () => {
      patience = setTimeout(() => {
        service.end()
        resolve()
      }, STUCK_AFTER_MS)
      context.cancel().then(resolve, resolve)
    }
  })
  const rebuilding = context.rebuild()
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  try {
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

/** @returns {Message} what is the error of each file that cannot be bundled even alone */
function serviceEnded() {
  const text =
    "esbuild's program was ended while it bundled this: a file, or a manifest that it reads, has no end, takes more than " +
    `${PROGRAM_BYTES / 1024 ** 3} GiB of memory, or gives more than ${ANSWER_BYTES / 1024 ** 2} MiB of messages, each of ` +
    'which quotes a whole line'
  return { id: '', pluginName: '', text, location: null, notes: [], detail: undefined }
}

module.exports = { Services, isStopped, rebuild, serviceEnded }
