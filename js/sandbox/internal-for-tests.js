'use strict'

// What the attack corpus needs and nobody else may have: a run in which Node's Permission Model is off, to show what the
// layers of the kernel hold by themselves. It is no export of the package.

const { runFiles } = require('../sandbox')

/**
 * @param {readonly string[]} files
 * @param {string} buildRoot
 * @param {import('../../index.js').SandboxOptions} [options]
 */
function runWithoutPermissionModel(files, buildRoot, options = {}) {
  return runFiles(files, buildRoot, options, false)
}

module.exports = { runWithoutPermissionModel }
