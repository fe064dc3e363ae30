'use strict'

// Where a package begins, and the packages that stay outside a bundle: so far only `typescript`, which is too big to be
// bundled for every run and must be the tool's own copy, never the project's. What was found, and what was not found,
// is kept for the life of the process. Fails with nothing: a package that cannot be read is a package that is not
// there. Source of the rule: contract/sandbox.md, "Bundling".

const fs = require('node:fs/promises')
const { createRequire } = require('node:module')
const path = require('node:path')

const binding = require('../binding')

/**
 * @typedef {object} ExternalPackage
 * @property {string} name such as `typescript`
 * @property {string} path the real path of the file that the bare name stands for
 * @property {string} root the real path of the package's own directory
 */

/**
 * @typedef {object} ExternalPackages
 * @property {ExternalPackage[]} packages
 * @property {string[]} readPaths the directories that a child must be able to read to load them
 * @property {string} origin the directory they were looked for from
 * @property {string[]} unusable the directories of packages of such a name that have no file to be required
 */

/** The names that are never bundled. */
const EXTERNAL_NAMES = Object.freeze(['typescript'])

/**
 * @param {string} absolute
 * @returns {Promise<'file' | 'directory' | undefined>} what is there after links were followed; undefined for anything
 *   else and for what cannot be looked at
 */
async function kindOf(absolute) {
  try {
    const status = await fs.stat(absolute)
    return status.isFile() ? 'file' : status.isDirectory() ? 'directory' : undefined
  } catch {
    return undefined
  }
}

/**
 * @param {string} directory absolute
 * @returns {string[]} the directory and all above it, nearest first
 */
function withAncestors(directory) {
  const all = [directory]
  for (let parent = path.dirname(directory); parent !== all[all.length - 1]; parent = path.dirname(parent)) {
    all.push(parent)
  }
  return all
}

/**
 * @param {string} absolute a file or directory
 * @returns {Promise<string | undefined>} the nearest directory above it with a `package.json`
 */
async function nearestPackage(absolute) {
  for (const directory of withAncestors(path.dirname(absolute))) {
    if ((await kindOf(path.join(directory, 'package.json'))) === 'file') return directory
  }
  return undefined
}

/**
 * The package of a module that the caller trusts; the module's own directory where no package holds it.
 * @param {string} modulePath absolute
 * @returns {Promise<string>} a real path
 */
async function packageOfModule(modulePath) {
  const real = await fs.realpath(modulePath).catch(() => modulePath)
  return (await nearestPackage(real)) ?? path.dirname(real)
}

/**
 * Node's own resolution is not used: it would look into NODE_PATH and the global folders too.
 * @param {string} name
 * @param {string} origin
 * @param {string[]} unusable filled
 * @returns {Promise<ExternalPackage | undefined>}
 */
async function findPackage(name, origin, unusable) {
  for (const directory of withAncestors(origin)) {
    if (path.basename(directory) === 'node_modules') continue
    const candidate = path.join(directory, 'node_modules', name)
    if ((await kindOf(candidate)) !== 'directory') continue
    try {
      const root = await fs.realpath(candidate)
      // An absolute directory is resolved by its own `main` alone.
      const main = createRequire(path.join(root, 'package.json')).resolve(root)
      return { name, path: await fs.realpath(main), root }
    } catch {
      unusable.push(candidate)
    }
  }
  return undefined
}

/**
 * @param {{ toolRoot?: string, modules?: { collect: string } }} options
 * @returns {Promise<ExternalPackages>}
 */
async function resolveExternalPackages({ toolRoot, modules }) {
  const origin = toolRoot ?? (modules ? await packageOfModule(modules.collect) : __dirname)
  const cached = binding.externalPackageCacheGet(origin)
  if (cached !== null) return JSON.parse(cached)
  const real = await fs.realpath(origin).catch(() => path.resolve(origin))
  /** @type {string[]} */
  const unusable = []
  const found = await Promise.all(EXTERNAL_NAMES.map((name) => findPackage(name, real, unusable)))
  const packages = found.filter((each) => each !== undefined)
  const readPaths = [...new Set(packages.map((each) => path.dirname(each.path)))]
  /** @type {ExternalPackages} */
  const result = { packages, readPaths, origin: real, unusable }
  binding.externalPackageCacheSet(origin, JSON.stringify(result))
  return result
}

module.exports = { EXTERNAL_NAMES, kindOf, nearestPackage, packageOfModule, resolveExternalPackages, withAncestors }
