'use strict'

// What went wrong with one file of a bundle, as data; how esbuild's messages become that; and the module that stands in
// for the file and throws it, so that one bad file is one bad file. Pure. Source of the rules: contract/sandbox.md,
// "Bundling" and "Errors".

const { deniedMessage } = require('../sandbox/classify')

/** @typedef {import('esbuild').Message} Message */

/**
 * @typedef {object} FileFailure
 * @property {'import' | 'permission'} type
 * @property {string} file the file that is at fault, or that asked for what it may not have
 * @property {string} message begins with the place where one is known: `file:line:column: `
 * @property {number} [line] from 1
 * @property {number} [column] from 1, in UTF-16 code units
 * @property {string} [target] the real path that was refused
 * @property {string} [specifier] how the file asked for it
 * @property {Message[]} messages esbuild's own, where there are any
 */

/**
 * @param {string} file
 * @param {{ line?: number, column?: number }} place
 * @returns {string}
 */
function placeOf(file, { line, column }) {
  return [file, line, column].filter((each) => each !== undefined).join(':')
}

/**
 * @param {Message} message located
 * @param {{ line: number, shift: number } | undefined} added what was put into the file in front of a line
 * @returns {{ line: number, column: number } | {}}
 */
function positionOf(message, added) {
  const { location } = message
  if (!location || location.line < 1) return {}
  const text = Buffer.from(location.lineText)
  const shift = added !== undefined && added.line === location.line ? Math.min(added.shift, location.column) : 0
  return { line: location.line, column: text.subarray(shift, location.column).toString('utf8').length + 1 }
}

/**
 * @param {Message} message
 * @param {string} file
 * @param {{ line: number, shift: number } | undefined} [added]
 * @returns {FileFailure}
 */
function buildFailure(message, file, added) {
  const position = positionOf(message, added)
  return {
    type: 'import',
    file,
    message: `${placeOf(file, position)}: ${message.text}`,
    ...position,
    messages: [message],
  }
}

/**
 * @param {string} file
 * @param {string} target a real path
 * @param {string} specifier
 * @param {{ line?: number, column?: number }} [position]
 * @returns {FileFailure}
 */
function refusal(file, target, specifier, position = {}) {
  const resource = resourceOf(target, specifier)
  return {
    type: 'permission',
    file,
    message: deniedMessage('FileSystemRead', resource, placeOf(file, position)),
    ...position,
    target,
    specifier,
    messages: [],
  }
}

/**
 * @param {string} file
 * @param {string} specifier what neither esbuild nor Node can bring in
 * @param {{ line?: number, column?: number }} position
 * @returns {FileFailure}
 */
function outsideFailure(file, specifier, position) {
  const message = `${placeOf(file, position)}: ${JSON.stringify(specifier)} cannot be imported: it is no file, no package and no module of Node`
  return { type: 'import', file, message, ...position, messages: [] }
}

/**
 * The specifier is part of the resource, because the resource is what the words of every denial name.
 * @param {string} target
 * @param {string} specifier
 * @returns {string}
 */
function resourceOf(target, specifier) {
  return specifier === target ? target : `${target}, imported as ${JSON.stringify(specifier)}`
}

/**
 * @param {Buffer} content of a file
 * @param {string} specifier
 * @returns {{ line?: number, column?: number }} where the specifier is first written as a literal
 */
function positionOfSpecifier(content, specifier) {
  const text = content.toString('utf8')
  const places = ['"', "'", '`'].map((quote) => text.indexOf(quote + specifier + quote)).filter((place) => place >= 0)
  if (places.length === 0) return {}
  const before = text.slice(0, Math.min(...places)).split('\n')
  return { line: before.length, column: /** @type {string} */ (before[before.length - 1]).length + 1 }
}

/**
 * A CommonJS module, whose exports can have any name: nothing that imports it fails for the wrong reason.
 * @param {FileFailure} failure
 * @returns {string}
 */
function failureModule(failure) {
  const { type, file, message, line, column, target, specifier } = failure
  const fields =
    type === 'permission'
      ? {
          code: 'ERR_ACCESS_DENIED',
          permission: 'FileSystemRead',
          resource: resourceOf(/** @type {string} */ (target), /** @type {string} */ (specifier)),
        }
      : { code: 'ERR_BUNDLE_FAILED' }
  return [
    `const failure = Object.assign(new Error(${JSON.stringify(message)}), ${JSON.stringify({ ...fields, file, line, column })});`,
    `failure.stack = ${JSON.stringify(`Error: ${message}\n    at ${placeOf(file, { line, column })}`)};`,
    'throw failure;',
    'module.exports = {};',
  ].join('\n')
}

/**
 * @param {Message[]} messages
 * @returns {Error & { errors: Message[], warnings: Message[] }} in the form of esbuild's own
 */
function buildError(messages) {
  const lines = messages.map(({ text, location }) =>
    location ? `${location.file}:${location.line}:${location.column}: ERROR: ${text}` : `ERROR: ${text}`,
  )
  const count = `${messages.length} error${messages.length === 1 ? '' : 's'}`
  return Object.assign(new Error(`the driver cannot be bundled, with ${count}:\n${lines.join('\n')}`), {
    errors: messages,
    warnings: [],
  })
}

/**
 * @param {FileFailure} failure
 * @returns {Message} for a failure that esbuild did not report itself
 */
function messageOf({ message, file, line, column }) {
  return {
    id: '',
    pluginName: 'sallyport',
    text: message,
    location:
      line === undefined
        ? null
        : { file, namespace: 'file', line, column: (column ?? 1) - 1, length: 0, lineText: '', suggestion: '' },
    notes: [],
    detail: undefined,
  }
}

module.exports = { buildError, buildFailure, failureModule, messageOf, outsideFailure, positionOfSpecifier, refusal }
