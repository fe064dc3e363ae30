'use strict'

// The directory of a bundle: fresh for each call, private, canonical, and gone after it, whatever happens. Fails with the
// system's errors. Source: contract/sandbox.md, "Bundling".

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const { endPrograms } = require('./service')

const BUNDLE_PREFIX = 'chant-sandbox-'

/**
 * @param {string} [prefix]
 * @returns {string} a directory of mode 0700
 */
function createBundleDirectory(prefix = BUNDLE_PREFIX) {
  const directory = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), prefix))
  // Whatever the umask took.
  fs.chmodSync(directory, 0o700)
  return directory
}

/**
 * The directories of runs and bundles that are being made. Where the process exits in the middle, what follows an `await`
 * never comes; the listener is there only as long as there are any.
 * @type {Set<string>}
 */
const bundleDirectories = new Set()

/** How often the end of the process tries to remove a directory, and how long it waits in between, in milliseconds. */
const MOST_ATTEMPTS = 20
const BETWEEN_ATTEMPTS_MS = 10

/**
 * A copy into the directory that had begun goes on in a thread of Node while the process ends, for a moment.
 * @param {string} directory
 */
function removeAtExit(directory) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return fs.rmSync(directory, { recursive: true, force: true })
    } catch (error) {
      if (attempt === MOST_ATTEMPTS) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BETWEEN_ATTEMPTS_MS)
    }
  }
}

function removeBundleDirectories() {
  endPrograms()
  for (const directory of bundleDirectories) {
    try {
      removeAtExit(directory)
    } catch (error) {
      // The process ends: the others are removed all the same, and a sweep finds this one.
      process.stderr.write(`sallyport: ${directory} could not be removed: ${/** @type {Error} */ (error).message}\n`)
    }
  }
}

/**
 * @param {string} [prefix]
 * @returns {string} a directory that the end of the process removes too
 */
function holdBundleDirectory(prefix) {
  const directory = createBundleDirectory(prefix)
  if (bundleDirectories.size === 0) process.on('exit', removeBundleDirectories)
  bundleDirectories.add(directory)
  return directory
}

/**
 * @param {string} source
 * @param {string} target readable to its owner, whatever the umask took
 */
async function copyReadable(source, target) {
  await fs.promises.copyFile(source, target)
  await fs.promises.chmod(target, 0o600)
}

/**
 * Leaves a directory to the caller, whose it is from now on.
 * @param {string} directory
 */
function releaseBundleDirectory(directory) {
  bundleDirectories.delete(directory)
  if (bundleDirectories.size === 0) process.off('exit', removeBundleDirectories)
}

/** @param {string} directory */
async function removeBundleDirectory(directory) {
  await fs.promises.rm(directory, { recursive: true, force: true })
  releaseBundleDirectory(directory)
}

module.exports = { copyReadable, holdBundleDirectory, releaseBundleDirectory, removeBundleDirectory }
