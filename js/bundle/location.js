'use strict'

// Gives every file of a bundle its own `import.meta`, `__dirname` and `__filename` instead of the bundle's: esbuild puts
// a variable in place of each, and a file that mentions one gets a declaration of it in front of its first line. Plain
// text work, which cannot fail.

const path = require('node:path')
const { pathToFileURL } = require('node:url')

const META = '__sallyportImportMeta'
const DIRECTORY = '__sallyportDirname'
const FILE = '__sallyportFilename'
const LOCATE = '__sallyportLocate'

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** What esbuild puts in place of what; names that the file itself declares are left alone by it. */
const LOCATION_DEFINES = Object.freeze({ 'import.meta': META, __dirname: DIRECTORY, __filename: FILE })

/**
 * Stands in front of the bundle. `require` is for CommonJS packages that need Node's own modules; esbuild never gives
 * that name to anything of a project. `resolve` answers as far as that is possible without Node's own loader.
 */
const BANNER = [
  "import { createRequire as __sallyportCreateRequire, isBuiltin as __sallyportIsBuiltin } from 'node:module'",
  "import { pathToFileURL as __sallyportPathToUrl } from 'node:url'",
  'var require = __sallyportCreateRequire(import.meta.url)',
  `function ${LOCATE}(url, dirname, filename) {`,
  '  const resolve = (specifier) => {',
  '    const text = `${specifier}`',
  '    if (/^\\.{0,2}\\//.test(text)) return new URL(text, url).href',
  "    if (__sallyportIsBuiltin(text)) return text.startsWith('node:') ? text : `node:${text}`",
  '    if (URL.canParse(text)) return new URL(text).href',
  '    return __sallyportPathToUrl(__sallyportCreateRequire(url).resolve(text)).href',
  '  }',
  '  return { __proto__: null, dirname, filename, main: false, resolve, url }',
  '}',
].join('\n')

/**
 * @param {Buffer} content
 * @param {string} file
 * @returns {string} declarations of what the file mentions; empty where it mentions nothing
 */
function headerFor(content, file) {
  const mentionsMeta = content.includes('import') && content.includes('meta')
  const declarations = []
  if (mentionsMeta) {
    const values = [pathToFileURL(file).href, path.dirname(file), file].map((each) => JSON.stringify(each))
    declarations.push(`${META}=${LOCATE}(${values.join(',')})`)
  }
  if (content.includes('__dirname')) declarations.push(`${DIRECTORY}=${JSON.stringify(path.dirname(file))}`)
  if (content.includes('__filename')) declarations.push(`${FILE}=${JSON.stringify(file)}`)
  return declarations.length === 0 ? '' : `var ${declarations.join(',')};`
}

/**
 * @typedef {object} LocatedContent
 * @property {Buffer} content
 * @property {number} line of the content (from 1) that was made longer
 * @property {number} shift by how many bytes; 0 where nothing was added
 */

/**
 * @param {Buffer} content
 * @param {string} file
 * @returns {LocatedContent}
 */
function withLocation(content, file) {
  const header = headerFor(content, file)
  if (header === '') return { content, line: 1, shift: 0 }
  const mark = content.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0
  // A hashbang is one only at the very beginning.
  const hashbang = content.subarray(mark, mark + 2).toString('latin1') === '#!'
  const end = hashbang ? content.indexOf('\n') : mark
  if (end < 0) return { content, line: 1, shift: 0 }
  const at = hashbang ? end + 1 : mark
  const bytes = Buffer.from(header)
  return {
    content: Buffer.concat([content.subarray(0, at), bytes, content.subarray(at)]),
    line: hashbang ? 2 : 1,
    shift: bytes.length,
  }
}

module.exports = { BANNER, LOCATION_DEFINES, withLocation }
