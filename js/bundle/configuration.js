'use strict'

// The `tsconfig.json` files that esbuild takes into account by itself: it follows their `extends` with the caller's
// rights, so a project could have compiler options taken, and lines of a broken file quoted, from anywhere. This walks
// the chains that begin in the build root, and gives the first one that leads to what may not be used. Where it cannot
// follow a chain, it says so instead of letting it pass. Fails with nothing else.

const fs = require('node:fs/promises')
const { createRequire } = require('node:module')
const path = require('node:path')

const { isWithin } = require('./containment')
const { kindOf, withAncestors } = require('./packages')

/** @typedef {import('./containment').Containment} Containment */

/**
 * @typedef {object} ConfigurationFault
 * @property {string} file the configuration file that is at fault
 * @property {string} [target] the real path it leads to and may not use; without one it cannot be understood
 * @property {string} [specifier] as it is written in the file; without one the file itself is a link
 */

/** A chain longer than this is a circle; esbuild stops at those by itself. */
const CHAIN_LENGTH = 64

/**
 * @param {string} text JSON that may have comments and trailing commas, as TypeScript allows
 * @returns {unknown}
 */
function parseConfiguration(text) {
  const strings = /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
  const plain = text.replace(/^\uFEFF/, '').replace(strings, (_, string) => string ?? ' ')
  return JSON.parse(plain.replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string) => string ?? ''))
}

/**
 * @param {unknown} configuration
 * @returns {string[]}
 */
function extendsOf(configuration) {
  if (typeof configuration !== 'object' || configuration === null) return []
  const value = /** @type {{ extends?: unknown }} */ (configuration).extends
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string')
}

/**
 * @param {string} specifier
 * @param {string} directory of the file that extends it
 * @returns {Promise<string[]>} the files that it may stand for: never less than esbuild would look at
 */
async function candidatesOf(specifier, directory) {
  const isPath = path.isAbsolute(specifier) || /^\.{1,2}(?:$|[\\/])/.test(specifier)
  const bases = isPath
    ? [path.resolve(directory, specifier)]
    : withAncestors(directory).map((each) => path.join(each, 'node_modules', specifier))
  const paths = bases.flatMap((base) => [base, `${base}.json`, path.join(base, 'tsconfig.json')])
  const kinds = await Promise.all(paths.map(kindOf))
  const files = paths.filter((_, index) => kinds[index] === 'file')
  if (files.length > 0 || isPath) return files
  try {
    return [createRequire(path.join(directory, 'tsconfig.json')).resolve(specifier)]
  } catch {
    return []
  }
}

/**
 * @param {Iterable<string>} directories of the files of a bundle
 * @param {Containment} containment
 * @returns {Promise<ConfigurationFault | undefined>}
 */
async function findConfigurationFault(directories, containment) {
  /** @type {Set<string>} */
  const seen = new Set()

  /**
   * @param {string} file
   * @param {{ file: string, specifier?: string }} origin
   * @param {number} depth
   * @returns {Promise<ConfigurationFault | undefined>}
   */
  const follow = async (file, origin, depth) => {
    if (seen.has(file) || depth > CHAIN_LENGTH) return undefined
    seen.add(file)
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === undefined) return undefined
    if (!(await containment.allowsConfiguration(real))) return { ...origin, target: real }
    let specifiers
    try {
      specifiers = extendsOf(parseConfiguration(await fs.readFile(real, 'utf8')))
    } catch {
      return { file }
    }
    for (const specifier of specifiers) {
      for (const candidate of await candidatesOf(specifier, path.dirname(file))) {
        const fault = await follow(candidate, { file, specifier }, depth + 1)
        if (fault) return fault
      }
    }
    return undefined
  }

  // Outside the build root such a file is found by its place, and is not of the project's making.
  const all = new Set([...directories].flatMap(withAncestors).filter((each) => isWithin(containment.root, each)))
  for (const directory of [...all].sort()) {
    if (directory.split(path.sep).includes('node_modules')) continue
    for (const name of ['tsconfig.json', 'jsconfig.json']) {
      const file = path.join(directory, name)
      if ((await kindOf(file)) !== 'file') continue
      const fault = await follow(file, { file }, 0)
      if (fault) return fault
      break
    }
  }
  return undefined
}

module.exports = { findConfigurationFault }
