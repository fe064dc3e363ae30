'use strict'

// Text that the native side can always read. JSON.stringify writes half of a surrogate pair as an escape that is no
// character in any encoding, and the addon's parser rightly refuses it; a path or name with one becomes what Node's own
// file calls make of it, U+FFFD. Fails as JSON.stringify does: on cycles and BigInt, which no caller of it passes.
//
// Both directions go by the functions that were there when this was loaded: a program that replaces them later, as some
// test tools do, must not see or change what passes between the two halves of the package.

const { parse, stringify } = JSON

/**
 * @param {string} text
 * @returns {string} the text with U+FFFD for each half of a surrogate pair
 */
function wellFormed(text) {
  return Buffer.from(text, 'utf8').toString('utf8')
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function toJson(value) {
  const json = stringify(value)
  // Looking at the result is cheaper than a replacer on every value; a name that only looks like an escape costs time.
  if (!json.includes('\\ud')) return json
  return stringify(value, (_key, part) => (typeof part === 'string' ? wellFormed(part) : part))
}

/**
 * @param {string} text as the native side wrote it
 * @returns {any}
 */
function fromJson(text) {
  return parse(text)
}

module.exports = { fromJson, toJson }
