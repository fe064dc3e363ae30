'use strict'

// The directory of a bundle: fresh for each call, private, canonical. Fails with the system's errors. Source:
// contract/sandbox.md, "Bundling".

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

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

module.exports = { createBundleDirectory }
