#!/usr/bin/env node
'use strict'

// The command line. Ends with 0 where what was asked for is so, 1 where it is not or failed, and 2 where the command
// itself was wrong; what went wrong is on stderr.

const path = require('node:path')
const { parseArgs } = require('node:util')

const { version } = require('../package.json')

const HELP = `sallyport ${version}: verified private mirrors, tree hashes and sandboxed evaluation

  sallyport doctor [--node <program>] [--json]
      Tries what holds sandboxed code on this machine and says what to do about what does not.
      Ends with 0 where the kernel holds everything, else with 1.

  sallyport evaluate <file>... [--root <folder>] [--isolation <level>] [--node <program>]
      Evaluates files of the project in <folder> (default: this one) in the sandbox and prints what they declare and
      what went wrong as JSON. <level> is kernel, best-effort (the default) or node. Ends with 1 where anything went
      wrong.

  sallyport --help, sallyport --version
`

const WRONG_USE = 2

/** What is told where everything went well and came to nothing. */
const NOTHING_DECLARED =
  'sallyport: the files ran and declare no entities. What counts as one is told in docs/entities.md; for what a file ' +
  'exports otherwise there are callSandboxed() and evaluateConfigSandboxed().\n'

/** A command that was given wrongly. */
class UsageError extends Error {}

/** @typedef {import('node:util').ParseArgsConfig} ParseArgsConfig */

/**
 * @template {NonNullable<ParseArgsConfig['options']>} Options
 * @param {string[]} given
 * @param {Options} options
 */
function parse(given, options) {
  try {
    return parseArgs({ args: given, options, allowPositionals: true })
  } catch (cause) {
    throw new UsageError(/** @type {Error} */ (cause).message, { cause })
  }
}

/**
 * @param {string | undefined} given
 * @returns {string | undefined} absolute
 */
function absolute(given) {
  return given === undefined ? undefined : path.resolve(given)
}

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function doctor(given) {
  const { values, positionals } = parse(given, { node: { type: 'string' }, json: { type: 'boolean' } })
  if (positionals.length > 0) throw new UsageError(`doctor takes no "${positionals[0]}"`)
  const { examine, describe } = require('./doctor')
  const findings = await examine(absolute(values.node) ?? process.execPath)
  process.stdout.write(values.json ? `${JSON.stringify(findings, null, 2)}\n` : describe(findings))
  return findings.healthy ? 0 : 1
}

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function evaluate(given) {
  const { values, positionals } = parse(given, {
    root: { type: 'string' },
    isolation: { type: 'string' },
    node: { type: 'string' },
  })
  if (positionals.length === 0) throw new UsageError('evaluate needs at least one file')
  const { runFallbackFilesSandboxed } = require('../index.js')
  const { entitySet, errors, isolation } = await runFallbackFilesSandboxed(
    positionals.map((file) => path.resolve(file)),
    path.resolve(values.root ?? '.'),
    {
      // Checked there, with the words for a level that is none.
      isolation: /** @type {import('../index.js').SandboxOptions['isolation']} */ (values.isolation),
      nodePath: absolute(values.node),
    },
  )
  process.stdout.write(`${JSON.stringify({ ...entitySet, errors, isolation: isolation.level }, null, 2)}\n`)
  if (entitySet.entities.length === 0 && errors.length === 0) process.stderr.write(NOTHING_DECLARED)
  return errors.length === 0 ? 0 : 1
}

/**
 * @param {string[]} given
 * @returns {Promise<number>} the exit code
 */
async function run([command, ...rest]) {
  if (command === '--version' || command === '-v') {
    process.stdout.write(`${version}\n`)
    return 0
  }
  if (command === '--help' || command === '-h' || command === 'help' || rest.includes('--help')) {
    process.stdout.write(HELP)
    return 0
  }
  if (command === 'doctor') return doctor(rest)
  if (command === 'evaluate') return evaluate(rest)
  throw new UsageError(command === undefined ? 'a command is missing' : `there is no command "${command}"`)
}

run(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error) => {
    const wrongUse = error instanceof UsageError
    process.stderr.write(`sallyport: ${error.message}\n`)
    if (wrongUse) process.stderr.write('`sallyport --help` lists the commands.\n')
    process.exitCode = wrongUse ? WRONG_USE : 1
  },
)
