'use strict'

// esbuild's program: starting it within bounds, building in it so that a build can be called off, and ending it where
// there is no other way. It is never the one of the caller's own builds: esbuild's JavaScript interface keeps one program
// for each time it is loaded, so it is loaded anew here, and what is bounded or ended is ours alone. Rejects with what
// esbuild throws, and with the signal's reason. Source: contract/sandbox.md, "Bundling".

const childProcess = require('node:child_process')
const fs = require('node:fs')

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

/** How often a build goes on where somebody else ends its programs. */
const MOST_KILLED = 4

/** How many bytes tell the length of an answer, the lowest first. */
const LENGTH_BYTES = 4

/** esbuild's own words, which have no code, at the beginning: a project can have them anywhere else. */
const STOPPED = /^The service (?:was stopped|is no longer running)/

/** What a Go program ends with that has no memory left, or another fault of its own. */
const CRASHED = 2

/** How long the end of this process waits for the end of a program, in milliseconds. */
const END_PATIENCE_MS = 500

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
  /** Whether what it was asked to build ended it, not somebody else; known once it has ended. */
  #isOwnFault = false
  /** @type {Error | undefined} why it could not be started */
  #failure
  /** @type {Promise<void>} settles when it has ended, or was never there */
  #exited = Promise.resolve()

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
    running.add(program)
    this.#exited = new Promise((resolve) => {
      program.once('exit', (code) => {
        this.#ended = true
        this.#isOwnFault ||= code === CRASHED
        running.delete(program)
        resolve()
      })
      program.once('error', (error) => {
        this.#failure = error
        running.delete(program)
        resolve()
      })
    })
    // esbuild forgets who waits for what where it cannot write any more, and fails on an answer that still comes.
    program.stdin?.once('error', () => program.stdout?.destroy())
    // Where modules cannot be loaded anew (Jest keeps its own cache of them) the next service is of the same module, which
    // would keep this program. Not before all that it wrote has arrived: what waits for an answer would wait for ever.
    program.once('close', () => void this.#esbuild.stop())
    if (program.pid !== undefined) boundMemory(program.pid)
    const measure = longestAnswer()
    program.stdout?.on('data', (/** @type {Buffer} */ chunk) => {
      if (measure(chunk) <= ANSWER_BYTES) return
      this.#isOwnFault = true
      this.end()
    })
    return program
  }

  /**
   * @returns {Promise<boolean>} whether what it was asked to build has ended it
   * @throws the system's error where it could not be started
   */
  async isOwnFault() {
    await this.#exited
    if (this.#failure !== undefined) throw this.#failure
    return this.#isOwnFault
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

/**
 * The programs that run.
 * @type {Set<import('node:child_process').ChildProcess>}
 */
const running = new Set()

/** Ends them at once, so that none writes to a directory that is being removed: for the end of this process. */
function endPrograms() {
  for (const program of running) program.kill('SIGKILL')
  const deadline = Date.now() + END_PATIENCE_MS
  for (const { pid } of running) {
    while (pid !== undefined && isAlive(pid) && Date.now() < deadline) Atomics.wait(NEVER, 0, 0, 1)
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4))

/**
 * @param {number} pid of a child that nobody has waited for yet
 * @returns {boolean} whether it still does anything
 */
function isAlive(pid) {
  try {
    const status = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !/^[ZX]/.test(status.slice(status.lastIndexOf(')') + 2))
  } catch {
    // It is gone; or there is no /proc, and nothing to wait for.
    return false
  }
}

/** The programs that build one bundle: the one that all share, and ones of its own where that was ended. */
class Services {
  /** @type {Service | undefined} */
  #own
  #killed = 0

  /** @returns {Service} for the next build */
  current() {
    if (this.#own !== undefined) return this.#own
    if (shared === undefined || shared.ended) shared = new Service()
    return shared
  }

  /**
   * Has the next build begin in a program of its own.
   * @returns {Promise<boolean>} whether the one that ended was that already, so that no other build can have ended it
   * @throws an Error of code ERR_BUNDLER_KILLED where programs are ended from outside, again and again
   */
  async renew() {
    const own = this.#own
    this.end()
    this.#own = new Service()
    if (own === undefined) return false
    if (await own.isOwnFault()) return true
    this.#killed += 1
    if (this.#killed < MOST_KILLED) return false
    const message =
      "esbuild's program was killed again and again from outside of this process: by the system where memory is short, " +
      'or by another program'
    throw Object.assign(new Error(message), { code: 'ERR_BUNDLER_KILLED' })
  }

  end() {
    this.#own?.end()
  }
}

/**
 * Where nobody may be limited, which a filter around this process can bring, a build goes on all the same and it is told.
 * @param {number} pid
 */
function boundMemory(pid) {
  try {
    binding.limitProcessMemory(pid, PROGRAM_BYTES)
  } catch (error) {
    if (!binding.isToldFirst('bundler-memory')) return
    process.stderr.write(
      `sallyport: the memory of esbuild's program is not bounded here, so a project can make it take all there is ` +
        `(${/** @type {Error} */ (error).message}). Allow prlimit64 in the profile of the container.\n`,
    )
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
 * @param {string} text of an error that has no place in a file
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

module.exports = { Services, endPrograms, isStopped, rebuild, serviceEnded }
