'use strict'

// Reads what enters a bundle: a file is opened, the real path of the open descriptor is checked, and that descriptor is
// read, so a link that is swapped in between brings in nothing else. Never blocks on a FIFO, never holds the event
// loop. Fails with a ReadFailure, whose message says what could not be read and why and quotes none of it.

const { constants } = require('node:fs')
const fs = require('node:fs/promises')

/** @typedef {import('./containment').Containment} Containment */

/** What one file may bring in, in bytes: a sparse file of terabytes costs its author nothing. */
const FILE_BYTES = 256 * 1024 ** 2

/** How many files are open at once, so that a big project does not take all of the caller's descriptors. */
const OPEN_FILES = 64

const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0)

class ReadFailure extends Error {}

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
 * @returns {Promise<{ content: Buffer } | { refused: string }>} the bytes, or the real path of what may not be read
 * @throws {ReadFailure}
 */
function readContained(file, containment) {
  return limited(async () => {
    let handle
    try {
      handle = await fs.open(file, OPEN_FLAGS)
      const status = await handle.stat()
      if (containment) {
        const real = await realPathOfHandle(handle, file, status)
        if (!(await containment.allows(real))) return { refused: real }
      }
      if (!status.isFile()) throw new ReadFailure(`${JSON.stringify(file)} is not a regular file`)
      if (status.size > FILE_BYTES) {
        throw new ReadFailure(
          `${JSON.stringify(file)} has ${status.size} bytes, and no file of more than ${FILE_BYTES} is bundled`,
        )
      }
      return { content: await readWhole(handle, status.size) }
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
    }
  })
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

module.exports = { ReadFailure, readContained }
