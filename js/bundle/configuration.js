'use strict'

// The `tsconfig.json` files that esbuild takes into account by itself: it follows their `extends` with the caller's
// rights, so a project could have compiler options taken, and lines of a broken file quoted, from anywhere. This walks
// the chains that begin in the build root, and gives the first one that leads to what may not be used. Where it cannot
// follow a chain, it says so instead of letting it pass. Fails with nothing else.
//
// esbuild's own search has many rules, and which one wins depends on its version. So this looks at every file that any of
// them could lead to: what is looked at in vain costs little, and what is passed over is a way out. What two readers can
// take for different things (a key that is there twice, text that is no Unicode, ends of lines that only some know) is
// taken for a fault, and not for what it looks like from here. Nothing here is left to Node's resolver, which reads
// manifests synchronously, and a FIFO in place of one would stop the caller for ever.

const fs = require('node:fs/promises')
const path = require('node:path')

const { isWithin } = require('./containment')
const { kindOf, withAncestors } = require('./packages')
const { readBounded } = require('./read')

/** @typedef {import('./containment').Containment} Containment */

/**
 * @typedef {object} ConfigurationFault
 * @property {string} file the configuration file that is at fault
 * @property {string} [target] the real path it leads to and may not use; without one it cannot be understood
 * @property {string} [specifier] as it is written in the file; without one the file itself is a link
 */

/** How many files one configuration may extend, directly or as a chain; nobody who means well comes near. */
const MOST_EXTENDED = 64

/** No configuration or manifest that a person wrote is larger, in bytes. */
const LARGEST = 1024 * 1024

/**
 * A string, closed or not, so that a text without an end is passed over once and not from each quote again.
 */
const STRING = '"(?:[^"\\\\]|\\\\[\\s\\S]?)*(?:"|$)'
const COMMENTS = new RegExp(`(${STRING})|//[^\\n\\r\\u2028\\u2029]*|/\\*[\\s\\S]*?(?:\\*/|$)`, 'g')
const TRAILING_COMMAS = new RegExp(`(${STRING})|,(?=\\s*[}\\]])`, 'g')
const STRUCTURE = new RegExp(`(${STRING})|[{}[\\]]`, 'g')
const COLON = /\s*:/y

/** Lines that end where only some readers see an end, and what was no Unicode before it was read. */
const AMBIGUOUS_TEXT = /[\u2028\u2029\ufffd]|\r(?!\n)/

/** What some readers take for a separator or an escape in a path, and what no path is meant to have. */
const AMBIGUOUS_PATH = /[\\%\ufffd\0-\x1f\x7f]/

/**
 * @param {string} text JSON that may have comments and trailing commas, as TypeScript allows
 * @returns {unknown}
 * @throws {SyntaxError} also where readers can differ in what it extends
 */
function parseConfiguration(text) {
  const plain = text.replace(/^\uFEFF/, '').replace(COMMENTS, (_, string) => string ?? ' ')
  const json = plain.replace(TRAILING_COMMAS, (_, string) => string ?? '')
  const configuration = JSON.parse(json)
  refuseAmbiguity(text, json, ({ depth, key }) => depth === 1 && key === 'extends')
  return configuration
}

/**
 * @param {string} text of a package's manifest
 * @returns {unknown}
 * @throws {SyntaxError} also where readers can differ in what it says
 */
function parseManifest(text) {
  const manifest = JSON.parse(text)
  refuseAmbiguity(text, text, () => true)
  return manifest
}

/**
 * @param {string} text as it was read
 * @param {string} json the same as valid JSON
 * @param {(place: { depth: number, key: string }) => boolean} matters whether a key may be there only once; the outermost
 *   object is at depth 1
 * @throws {SyntaxError}
 */
function refuseAmbiguity(text, json, matters) {
  if (AMBIGUOUS_TEXT.test(text)) throw new SyntaxError('it is no text that all readers read alike')
  /** @type {Set<string>[]} */
  const keys = []
  for (const { 0: token, index } of json.matchAll(STRUCTURE)) {
    if (token === '{' || token === '[') keys.push(new Set())
    else if (token === '}' || token === ']') keys.pop()
    else {
      COLON.lastIndex = index + token.length
      const seen = keys[keys.length - 1]
      if (seen === undefined || !COLON.test(json)) continue
      const key = JSON.parse(token)
      if (seen.has(key) && matters({ depth: keys.length, key })) throw new SyntaxError(`it has ${token} more than once`)
      seen.add(key)
    }
  }
}

/**
 * @param {string} text a specifier, or what a manifest says that one leads to
 * @returns {string} the same
 * @throws {SyntaxError} where readers can differ in the path that it means
 */
function requirePlain(text) {
  // Half of a surrogate pair becomes U+FFFD on the way.
  if (AMBIGUOUS_PATH.test(Buffer.from(text).toString())) {
    throw new SyntaxError(`${JSON.stringify(text)} is no path that all readers take alike`)
  }
  return text
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
 * @param {string} base
 * @returns {string[]} what may be meant by it
 */
function spellings(base) {
  return [base, `${base}.json`, path.join(base, 'tsconfig.json')]
}

/**
 * @param {string} specifier of a package
 * @returns {{ name: string, subpath: string }}
 */
function splitSpecifier(specifier) {
  const segments = specifier.split('/')
  const name = segments.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
  return { name, subpath: specifier.slice(name.length + 1) }
}

/**
 * @param {unknown} value of a manifest's `exports`
 * @returns {string[]} every text in it, whatever its conditions
 */
function textsIn(value) {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

/**
 * @param {unknown} exported a manifest's `exports`
 * @param {string} subpath
 * @returns {string[]} where they may lead, under any condition
 */
function targetsOf(exported, subpath) {
  const wanted = subpath === '' ? '.' : `./${subpath}`
  const isMap = typeof exported === 'object' && exported !== null && Object.keys(exported).some((key) => key[0] === '.')
  if (!isMap) return textsIn(exported)
  return Object.entries(exported).flatMap(([key, value]) => {
    const star = key.indexOf('*')
    if (star < 0 && key.endsWith('/') && wanted.startsWith(key)) {
      return textsIn(value).flatMap((target) => [target, target + wanted.slice(key.length)])
    }
    if (star < 0) return key === wanted ? textsIn(value) : []
    const [before, after] = [key.slice(0, star), key.slice(star + 1)]
    if (!wanted.startsWith(before) || !wanted.endsWith(after)) return []
    const matched = wanted.slice(before.length, wanted.length - after.length)
    return textsIn(value).map((target) => target.replaceAll('*', () => matched))
  })
}

/**
 * @param {string} root of a package
 * @param {string} subpath
 * @returns {Promise<string[]>} where its manifest may lead
 * @throws where there is a manifest that cannot be understood
 */
async function manifestTargets(root, subpath) {
  const manifest = path.join(root, 'package.json')
  if ((await kindOf(manifest)) !== 'file') return []
  const { tsconfig, exports: exported } = /** @type {{ tsconfig?: unknown, exports?: unknown }} */ (
    parseManifest(await readBounded(manifest, LARGEST)) ?? {}
  )
  const named = subpath === '' && typeof tsconfig === 'string' ? [tsconfig] : []
  return [...named, ...targetsOf(exported, subpath)].map((target) => path.join(root, requirePlain(target)))
}

/**
 * @param {string} specifier
 * @param {string} directory of the file that extends it
 * @returns {Promise<string[]>} the files that it may stand for: never less than esbuild would look at
 * @throws where a package that it may mean cannot be understood
 */
async function candidatesOf(specifier, directory) {
  const isPath = path.isAbsolute(specifier) || /^\.{1,2}(?:$|[\\/])/.test(specifier)
  /** @type {string[]} */
  const bases = []
  if (isPath) bases.push(path.resolve(directory, specifier))
  else {
    const { name, subpath } = splitSpecifier(specifier)
    for (const each of withAncestors(directory)) {
      const root = path.join(each, 'node_modules', name)
      bases.push(path.join(root, subpath), ...(await manifestTargets(root, subpath)))
    }
  }
  const paths = [...new Set(bases.flatMap(spellings))]
  const kinds = await Promise.all(paths.map(kindOf))
  return paths.filter((_, index) => kinds[index] === 'file')
}

/**
 * @param {Iterable<string>} directories of the files of a bundle
 * @param {Containment} containment
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<ConfigurationFault | undefined>}
 * @throws the signal's reason
 */
async function findConfigurationFault(directories, containment, signal) {
  /** @type {Set<string>} */
  const seen = new Set()

  /**
   * @param {string} file
   * @param {{ file: string, specifier?: string }} origin
   * @param {number} depth
   * @returns {Promise<ConfigurationFault | undefined>}
   */
  const follow = async (file, origin, depth) => {
    signal?.throwIfAborted()
    if (seen.has(file)) return undefined
    seen.add(file)
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === undefined) return undefined
    if (!(await containment.allowsConfiguration(real))) return { ...origin, target: real }
    // What it extends is looked for from where it is found and from where it really is.
    const places = new Set([path.dirname(file), path.dirname(real)])
    /** @type {{ candidate: string, specifier: string }[]} */
    const next = []
    try {
      const specifiers = new Set(extendsOf(parseConfiguration(await readBounded(real, LARGEST))).map(requirePlain))
      if (specifiers.size > MOST_EXTENDED || (specifiers.size > 0 && depth === MOST_EXTENDED)) return { file }
      for (const specifier of specifiers) {
        for (const place of places) {
          for (const candidate of await candidatesOf(specifier, place)) next.push({ candidate, specifier })
        }
      }
    } catch {
      return { file }
    }
    for (const { candidate, specifier } of next) {
      const fault = await follow(candidate, { file, specifier }, depth + 1)
      if (fault) return fault
    }
    return undefined
  }

  // Outside the build root such a file is found by its place, and is not of the project's making.
  const all = new Set([...directories].flatMap(withAncestors).filter((each) => isWithin(containment.root, each)))
  for (const directory of [...all].sort()) {
    signal?.throwIfAborted()
    if (directory.split(path.sep).includes('node_modules')) continue
    // Both, although one counts: which, depends on names that differ in case alone.
    for (const name of ['tsconfig.json', 'jsconfig.json']) {
      const file = path.join(directory, name)
      if ((await kindOf(file)) !== 'file') continue
      const fault = await follow(file, { file }, 0)
      if (fault) return fault
    }
  }
  return undefined
}

module.exports = { MOST_EXTENDED, findConfigurationFault }
