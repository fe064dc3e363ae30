'use strict'

// The modules of `runtime/`, by what the driver calls them, and the one file that `npm run build` makes of them. Nothing
// here fails.

const path = require('node:path')

const RUNTIME_DIRECTORY = path.join(__dirname, '..', '..', 'runtime')

const OWN_MODULES = Object.freeze({
  collect: path.join(RUNTIME_DIRECTORY, 'collect.js'),
  resolve: path.join(RUNTIME_DIRECTORY, 'resolve.js'),
  entityWireCodec: path.join(RUNTIME_DIRECTORY, 'entity-wire-codec.js'),
  provenance: path.join(RUNTIME_DIRECTORY, 'provenance.js'),
  params: path.join(RUNTIME_DIRECTORY, 'params.js'),
  childErrors: path.join(RUNTIME_DIRECTORY, 'child-errors.js'),
  // These two are never the caller's: they are the child's end of the result channel.
  channel: path.join(RUNTIME_DIRECTORY, 'channel.js'),
  data: path.join(RUNTIME_DIRECTORY, 'data.js'),
})

/** Exports what all of them export. */
const PREBUILT_RUNTIME = path.join(RUNTIME_DIRECTORY, 'prebuilt.mjs')

/** What it is called beside the bundle of a run, where the child loads it while the bundle is still being made. */
const RUNTIME_NAME = 'runtime.mjs'

module.exports = { OWN_MODULES, PREBUILT_RUNTIME, RUNTIME_DIRECTORY, RUNTIME_NAME }
