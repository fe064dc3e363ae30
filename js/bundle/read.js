'use strict'

// Reads what enters a bundle: the real path of an open descriptor is checked, and that very file is read, so a link that
// is swapped in between brings in nothing else. On Linux the descriptor that is checked cannot read and opens nothing:
// devices and FIFOs are not touched before they are judged. Never blocks on a FIFO, never holds the event loop. Fails
// with a ReadFailure, whose message says what could not be read and why and quotes none of it.

const { constants, existsSync } = require('node:fs')
const fs = require('node:fs/promises')

/** @typedef {import('./containment').Containment} Containment */

/** What all files together may bring in, in bytes: sparse files of terabytes cost their author nothing. */
const BUNDLE_BYTES = 256 * 1024 ** 2

/** How many files are open at once, so that a big project does not take all of the caller's descriptors. */
const OPEN_FILES = 64

const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0)

/** open(2): a descriptor that stands for a file and does not open it. Node has no name for it. */
const O_PATH = 0o10000000

const READS_BY_DESCRIPTOR = process.platform === 'linux' && existsSync('/proc/self/fd')

class ReadFailure extends Error {}

/**
 * What the files of one bundle may still bring in.
 * @typedef {{ bytes: number }} ReadBudget
 */

/** @returns {ReadBudget} */
function createBudget() {
  return { bytes: BUNDLE_BYTES }
}

let open = 0
/** @type {(() => void)[]} */
const waiting = []

/**
 * @template T
 * @param {() => Promise<T>} operation
 * @returns {Promise<T>}
 */
async function limited(operation) {
  if (open >= OPEN_FILES) await new Promise((resolve) => waiting.push(() => resolve(undefined)))
  else open += 1
  try {
    return await operation()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else open -= 1
  }
}

/**
 * @param {import('node:fs/promises').FileHandle} handle
 * @param {string} file
 * @param {import('node:fs').Stats} status of the handle
 * @returns {Promise<string>} the real path of what the handle is open on
 */
async function realPathOfHandle(handle, file, status) {
  try {
    return await fs.readlink(`/proc/self/fd/${handle.fd}`)
  } catch {
    // No /proc: the path is resolved again, and counts only if it still leads to the same file.
    const real = await fs.realpath(file)
    const again = await fs.stat(real)
    if (again.dev !== status.dev || again.ino !== status.ino) {
      throw new ReadFailure(`${JSON.stringify(file)} was replaced while it was read`)
    }
    return real
  }
}

/**
 * @param {string} file absolute
 * @param {Containment | undefined} containment
 * @param {object} options
 * @param {ReadBudget} options.budget taken from
 * @param {boolean} [options.content] false where only whether it may be read is asked for
 * @returns {Promise<{ content: Buffer } | { refused: string }>} the bytes, or the real path of what may not be read
 * @throws {ReadFailure}
 */
function readContained(file, containment, { budget, content = true }) {
  return limited(async () => {
    let found
    let handle
    try {
      found = await fs.open(file, READS_BY_DESCRIPTOR ? O_PATH : OPEN_FLAGS)
      const status = await found.stat()
      if (containment) {
        const real = await realPathOfHandle(found, file, status)
        if (!(await containment.allows(real))) return { refused: real }
      }
      requireRegular(status, file)
      if (!content) return { content: Buffer.alloc(0) }
      if (status.size > budget.bytes) {
        throw new ReadFailure(
          `${JSON.stringify(file)} has ${status.size} bytes, and no more than ${BUNDLE_BYTES} are bundled in all`,
        )
      }
      budget.bytes -= status.size
      if (READS_BY_DESCRIPTOR) handle = await fs.open(`/proc/self/fd/${found.fd}`, OPEN_FLAGS)
      return { content: await readWhole(handle ?? found, status.size) }
    } catch (error) {
      if (error instanceof ReadFailure) throw error
      // A file that may not be opened may also be one that may not enter.
      if (containment) {
        const real = await fs.realpath(file).catch(() => undefined)
        if (real !== undefined && !(await containment.allows(real))) return { refused: real }
      }
      const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
      throw new ReadFailure(`${JSON.stringify(file)} cannot be read: ${code ?? message}`)
    } finally {
      await handle?.close()
      await found?.close()
    }
  })
}

/**
 * @param {string} file absolute
 * @param {number} most bytes
 * @returns {Promise<string>} its text
 * @throws {ReadFailure} where it is no regular file or larger; the system's errors
 */
function readBounded(file, most) {
  return limited(async () => {
    const handle = await fs.open(file, OPEN_FLAGS)
    try {
      const status = await handle.stat()
      requireRegular(status, file)
      if (status.size > most) throw new ReadFailure(`${JSON.stringify(file)} has more than ${most} bytes`)
      return (await readWhole(handle, status.size)).toString('utf8')
    } finally {
      await handle.close()
    }
  })
}

/**
 * @param {import('node:fs').Stats} status
 * @param {string} file
 */
function requireRegular(status, file) {
  if (!status.isFile()) throw new ReadFailure(`${JSON.stringify(file)} is not a regular file`)
}

/**
 * @param {import('node:fs/promises').FileHandle} handle
 * @param {number} size
 * @returns {Promise<Buffer>}
 */
async function readWhole(handle, size) {
  const content = Buffer.allocUnsafe(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await handle.read(content, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return content.subarray(0, length)
}

module.exports = { ReadFailure, createBudget, readBounded, readContained }
