'use strict'

// Options that are misspelt: such a one asks for something and would get nothing, less isolation than was meant, for
// instance. Callers hand on options of their own: names that resemble none are left alone, and so are those whose like is
// given as well, but for capital letters. Fails with a TypeError that says what the option is called.

const { invalidValue } = require('./arguments')

/** A word that is shorter resembles too many others. */
const SHORTEST_RESEMBLED = 8

/** From here on two letters can be wrong. */
const LONG = 10

/** Nobody means an option by a name that is longer, and comparing takes its time. */
const LONGEST_COMPARED = 64

/**
 * @param {Record<string, unknown>} given
 * @param {string} name of the object, as the caller writes it
 * @param {readonly string[]} known
 */
function refuseMisspelt(given, name, known) {
  for (const key of Object.keys(given)) {
    if (known.includes(key) || given[key] === undefined || key.length > LONGEST_COMPARED) continue
    const meant = known.find((each) => {
      const [left, right] = [key.toLowerCase(), each.toLowerCase()]
      return left === right || (given[each] === undefined && (isSlip(left, right) || beginsAlike(left, right)))
    })
    if (meant !== undefined) throw invalidValue(`${name}.${key}`, `called ${name}.${meant}`, given[key])
  }
}

/**
 * @param {string} given
 * @param {string} known
 * @returns {boolean} whether it is the same but for a letter, or two of a long name
 */
function isSlip(given, known) {
  const shorter = Math.min(given.length, known.length)
  return shorter >= SHORTEST_RESEMBLED && distance(given, known) <= (shorter >= LONG ? 2 : 1)
}

/**
 * @param {string} given
 * @param {string} known
 * @returns {boolean} whether it is longer by a word or two, or more than the first half of it
 */
function beginsAlike(given, known) {
  if (known.length < SHORTEST_RESEMBLED) return false
  return given.startsWith(known) || (known.startsWith(given) && 2 * given.length > known.length)
}

/**
 * @param {string} left
 * @param {string} right
 * @returns {number} how many letters have to be put in, taken out or changed
 */
function distance(left, right) {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...left].entries()) {
    const next = [index + 1]
    for (let place = 0; place < right.length; place += 1) {
      next.push(Math.min(next[place] + 1, row[place + 1] + 1, row[place] + (letter === right[place] ? 0 : 1)))
    }
    row = next
  }
  return row[right.length]
}

module.exports = { refuseMisspelt }
