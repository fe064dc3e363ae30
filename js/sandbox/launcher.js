'use strict'

// Where the launcher is: beside the addon, in the platform package or, in a checkout, in the root. Fails with an Error
// of code ERR_SANDBOX_LAUNCHER that says what to do; only Linux has a launcher.

const fs = require('node:fs')
const path = require('node:path')

const NAME = 'sallyport-launch'

/** @type {string | undefined} */
let found

/** @returns {string} the launcher's absolute path */
function launcherPath() {
  found ??= find()
  return found
}

/** @returns {string} */
function find() {
  const tried = [path.join(__dirname, '..', '..', NAME)]
  try {
    const manifest = require.resolve(`sallyport-${process.platform}-${process.arch}-gnu/package.json`)
    tried.unshift(path.join(path.dirname(manifest), NAME))
  } catch {
    // A checkout has no platform package: the addon and the launcher are in its root.
  }
  const launcher = tried.find((candidate) => isExecutable(candidate))
  if (launcher !== undefined) return fs.realpathSync(launcher)
  const message =
    process.platform === 'linux'
      ? `The launcher of the sandboxed run is missing or may not be executed (looked for ${tried.join(', ')}). ` +
        'Install sallyport again without omitting optional dependencies, or, in a checkout, run `npm run build`.'
      : `The sandboxed run exists on Linux only; this is ${process.platform}.`
  throw Object.assign(new Error(message), { code: 'ERR_SANDBOX_LAUNCHER' })
}

/**
 * @param {string} candidate
 * @returns {boolean}
 */
function isExecutable(candidate) {
  try {
    fs.accessSync(candidate, fs.constants.X_OK)
    return true
  } catch {
    return false
  }
}

module.exports = { launcherPath }
