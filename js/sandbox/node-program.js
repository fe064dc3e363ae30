'use strict'

// The Node program of the child: which version it is, and with which flags that version is held to its permissions.
// Fails with a TypeError of code ERR_INVALID_ARG_VALUE that names `options.nodePath` for a program that is missing, may
// not be executed, is no Node, or is too old to have a Permission Model. Source: contract/sandbox.md, "Launch".

const { execFile } = require('node:child_process')
const fs = require('node:fs/promises')
const { promisify } = require('node:util')

const { invalidValue } = require('../arguments')

/** A program that does not tell its version in this time is no Node. */
const VERSION_TIMEOUT_MS = 10_000

/**
 * @typedef {object} NodeProgram
 * @property {string} path canonical
 * @property {string} version without the v
 * @property {string} permissionFlag
 * @property {string} warningFlag keeps it from warning that its Permission Model is experimental
 * @property {string} identity of the file, so that what is known of it is not taken for another
 */

/** @type {Map<string, Promise<NodeProgram>>} by canonical path and what identifies its content */
const known = new Map()

/**
 * @param {string} version such as `22.13.0`
 * @returns {string | undefined} the switch of its Permission Model; undefined where it has none
 */
function permissionFlagOf(version) {
  const [major, minor] = version.split('.').map(Number)
  if (!(major >= 20)) return undefined
  const stable = major >= 24 || (major === 22 && minor >= 13) || (major === 23 && minor >= 5)
  return stable ? '--permission' : '--experimental-permission'
}

/**
 * @param {string} version such as `22.13.0`
 * @returns {string} what keeps it quiet about what is experimental; Node 20 could not tell warnings apart at first
 */
function warningFlagOf(version) {
  const [major, minor] = version.split('.').map(Number)
  const tellsApart = major > 21 || (major === 21 && minor >= 3) || (major === 20 && minor >= 11)
  return tellsApart ? '--disable-warning=ExperimentalWarning' : '--no-warnings'
}

/**
 * Starts nothing.
 * @param {string} nodePath absolute
 * @returns {Promise<{ canonical: string, status: import('node:fs').Stats }>}
 */
async function requireProgram(nodePath) {
  try {
    const canonical = await fs.realpath(nodePath)
    const status = await fs.stat(canonical)
    await fs.access(canonical, fs.constants.X_OK)
    return { canonical, status }
  } catch (cause) {
    throw Object.assign(invalidValue('options.nodePath', 'a Node program that exists and may be executed', nodePath), {
      cause,
    })
  }
}

/**
 * @param {string} nodePath absolute
 * @returns {Promise<NodeProgram>}
 */
async function nodeProgram(nodePath) {
  const { canonical, status } = await requireProgram(nodePath)
  const key = JSON.stringify([canonical, status.dev, status.ino, status.size, status.mtimeMs])
  let program = known.get(key)
  if (program === undefined) {
    program = identify(canonical, nodePath, key)
    known.set(key, program)
    // Only what was found out is kept: a program that did not answer is asked again.
    program.catch(() => known.delete(key))
  }
  return program
}

/**
 * @param {string} canonical
 * @param {string} nodePath as the caller gave it
 * @param {string} identity
 * @returns {Promise<NodeProgram>}
 */
async function identify(canonical, nodePath, identity) {
  const version = nodePath === process.execPath ? process.versions.node : await askVersion(canonical, nodePath)
  const permissionFlag = permissionFlagOf(version)
  if (permissionFlag === undefined) {
    const message = `a Node of version 20 or later, which has a Permission Model (this is ${version})`
    throw invalidValue('options.nodePath', message, nodePath)
  }
  return { path: canonical, version, permissionFlag, warningFlag: warningFlagOf(version), identity }
}

/**
 * @param {string} canonical
 * @param {string} nodePath
 * @returns {Promise<string>}
 */
async function askVersion(canonical, nodePath) {
  const expected = 'a Node program'
  /** @type {string} */
  let answer
  try {
    const options = {
      timeout: VERSION_TIMEOUT_MS,
      env: {},
      maxBuffer: 64 * 1024,
      killSignal: /** @type {const} */ ('SIGKILL'),
    }
    answer = (await promisify(execFile)(canonical, ['--version'], options)).stdout
  } catch (cause) {
    throw Object.assign(invalidValue('options.nodePath', expected, nodePath), { cause })
  }
  const version = /^v(\d+\.\d+\.\d+)\S*\s*$/.exec(answer)?.[1]
  if (version === undefined)
    throw invalidValue('options.nodePath', `${expected} (it answers --version with something else)`, nodePath)
  return version
}

module.exports = { nodeProgram, permissionFlagOf, requireProgram, warningFlagOf }
