'use strict'

// What is data, and the words for what is not. Data is what JSON can carry and give back unchanged: null, booleans,
// strings, finite numbers, arrays and plain objects of such. Everything else is named by its path and refused, because
// turning it into `{}`, null or nothing would be a silent loss. Source of the words, the paths and the 64 levels:
// contract/sandbox.md, "Config". Fails only where an accessor of the value throws, with what it threw.

const {
  ErrorConstructor,
  SetConstructor,
  TypeErrorConstructor,
  append,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  hasInstance,
  hasOwn,
  isArray,
  isFinite,
  keys,
  ownKeys,
  put,
  regExpExec,
  setAdd,
  setDelete,
  setHas,
  stringSlice,
  stringToWellFormed,
  stringify,
  symbolDescription,
  types,
} = require('./primordials')

/** @typedef {{ path: string, found: string }} NonData */

/** How many steps a value may be away from the root. */
const MAXIMUM_LEVELS = 64

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u

// A class can be given a name of any length.
const MAXIMUM_CLASS_NAME = 100

/**
 * Where a value is. It is made for every value and read for the few that are refused, so it is text only then.
 * @typedef {string | { above: Path, key: string | number }} Path
 */

/**
 * @param {Path} above empty for the root
 * @param {string} key
 * @returns {Path}
 */
function fieldPath(above, key) {
  return { above, key }
}

/**
 * @param {Path} above
 * @param {number} index
 * @returns {Path}
 */
function elementPath(above, index) {
  return { above, key: index }
}

/**
 * @param {Path} path
 * @returns {string} such as `stacks[0].name`
 */
function pathText(path) {
  let text = ''
  let part = path
  for (; typeof part !== 'string'; part = part.above) text = stepText(part.key) + text
  const whole = part + text
  return whole[0] === '.' ? stringSlice(whole, 1) : whole
}

/**
 * @param {string | number} key
 * @returns {string}
 */
function stepText(key) {
  if (typeof key === 'number') return `[${key}]`
  return regExpExec(IDENTIFIER, key) === null ? `[${stringify(key)}]` : `.${key}`
}

/**
 * Whether an object is a record and nothing else: made by a literal (of any realm), without a prototype, or the
 * namespace of a module.
 * @param {object} value
 * @returns {boolean}
 */
function isPlainObject(value) {
  const prototype = getPrototypeOf(value)
  return prototype === null || (getPrototypeOf(prototype) === null && hasOwn(prototype, 'isPrototypeOf'))
}

/**
 * @param {object} value
 * @returns {string | undefined}
 */
function classNameOf(value) {
  for (let prototype = getPrototypeOf(value); prototype !== null; prototype = getPrototypeOf(prototype)) {
    const constructor = getOwnPropertyDescriptor(prototype, 'constructor')?.value
    if (typeof constructor !== 'function') continue
    const name = getOwnPropertyDescriptor(constructor, 'name')?.value
    if (typeof name !== 'string' || name === '' || name === 'Object') return undefined
    return stringToWellFormed(name.length > MAXIMUM_CLASS_NAME ? `${stringSlice(name, 0, MAXIMUM_CLASS_NAME)}…` : name)
  }
  return undefined
}

/**
 * @param {object} value neither an array nor plain
 * @returns {string}
 */
function wordForObject(value) {
  if (types.isDate(value)) return 'a Date'
  if (types.isRegExp(value)) return 'a RegExp'
  if (types.isMap(value)) return 'a Map'
  if (types.isSet(value)) return 'a Set'
  if (types.isPromise(value)) return 'a Promise'
  if (types.isNativeError(value) || hasInstance(ErrorConstructor, value)) return 'an Error'
  const name = classNameOf(value)
  return name === undefined ? 'a non-plain object' : `a ${name} instance`
}

/**
 * @param {unknown} value
 * @returns {string | undefined} the contract's word for it; undefined for a scalar that is data, an array and a plain
 *   object
 */
function wordFor(value) {
  switch (typeof value) {
    case 'function':
      return 'a function'
    case 'symbol':
      return 'a symbol'
    case 'bigint':
      return 'a bigint'
    case 'undefined':
      return 'undefined'
    case 'number':
      if (value !== value) return 'NaN'
      return isFinite(value) ? undefined : 'a non-finite number'
    case 'object':
      if (value === null || isArray(value) || isPlainObject(value)) return undefined
      return wordForObject(value)
    default:
      return undefined
  }
}

/**
 * Copies a value and lists what in it is not data, reading every field exactly once: an accessor cannot answer one
 * thing to the check and another to the copy.
 * @param {unknown} value
 * @returns {{ data: unknown, nonData: NonData[] }} `data` is whole only where nothing is listed; undefined where the
 *   value is
 */
function readData(value) {
  /** @type {NonData[]} */
  const nonData = []
  /** @type {Set<object>} */
  const ancestors = new SetConstructor()

  /**
   * @param {Path} path
   * @param {string} found
   */
  const refuse = (path, found) => {
    const text = pathText(path)
    append(nonData, { path: text === '' ? '<root>' : text, found })
  }

  /**
   * @param {unknown} part
   * @param {Path} path
   * @param {number} level
   * @returns {unknown}
   */
  const read = (part, path, level) => {
    if (level > MAXIMUM_LEVELS) return refuse(path, `nested more than ${MAXIMUM_LEVELS} levels deep`)
    const word = wordFor(part)
    if (word !== undefined) return refuse(path, word)
    if (typeof part !== 'object' || part === null) return part
    if (setHas(ancestors, part)) return refuse(path, 'a circular reference')
    setAdd(ancestors, part)
    const copy = isArray(part) ? readArray(part, path, level) : readObject(part, path, level)
    setDelete(ancestors, part)
    return copy
  }

  /**
   * @param {unknown[]} list
   * @param {Path} path
   * @param {number} level
   */
  const readArray = (list, path, level) => {
    /** @type {unknown[]} */
    const copy = []
    const { length } = list
    for (let index = 0; index < length; index += 1) {
      append(copy, read(list[index], elementPath(path, index), level + 1))
    }
    return copy
  }

  /**
   * @param {object} record
   * @param {Path} path
   * @param {number} level
   */
  const readObject = (record, path, level) => {
    const copy = {}
    const names = keys(record)
    for (let index = 0; index < names.length; index += 1) {
      const field = /** @type {Record<string, unknown>} */ (record)[names[index]]
      if (field !== undefined) put(copy, names[index], read(field, fieldPath(path, names[index]), level + 1))
    }
    refuseSymbolKeys(record, path)
    return copy
  }

  /**
   * @param {object} record
   * @param {Path} path
   */
  const refuseSymbolKeys = (record, path) => {
    const all = ownKeys(record)
    for (let index = 0; index < all.length; index += 1) {
      const key = all[index]
      if (typeof key !== 'symbol' || getOwnPropertyDescriptor(record, key)?.enumerable !== true) continue
      refuse(`${pathText(path)}[Symbol(${symbolDescription(key) ?? ''})]`, 'a symbol')
    }
  }

  // Nothing at all is what a function without a result gives: only inside an array would it turn into something else.
  return { data: value === undefined ? undefined : read(value, '', 0), nonData }
}

/**
 * @param {unknown} value
 * @returns {NonData[]} what in it is not data, in the order in which it is met; empty for data
 */
function describeNonData(value) {
  return readData(value).nonData
}

/**
 * @param {unknown} value
 * @returns {unknown} a copy without the properties that are undefined
 * @throws {TypeError} ERR_INVALID_ARG_VALUE that lists what is not data, a line each, also as `nonData`
 */
function toData(value) {
  const { data, nonData } = readData(value)
  if (nonData.length > 0) throw nonDataError('The value holds values that are not data:', nonData)
  return data
}

// A list that nobody reads to its end would only make the message unreadable; `nonData` has all of it.
const MAXIMUM_LINES = 100

/**
 * @param {string} heading
 * @param {NonData[]} nonData
 * @returns {TypeError & { code: string, nonData: NonData[] }}
 */
function nonDataError(heading, nonData) {
  let message = heading
  for (let index = 0; index < nonData.length && index < MAXIMUM_LINES; index += 1) {
    message += `\n  ${nonData[index].path}: ${nonData[index].found}`
  }
  if (nonData.length > MAXIMUM_LINES) message += `\n  … and ${nonData.length - MAXIMUM_LINES} more`
  const error = new TypeErrorConstructor(message)
  put(error, 'code', 'ERR_INVALID_ARG_VALUE')
  put(error, 'nonData', nonData)
  return /** @type {TypeError & { code: string, nonData: NonData[] }} */ (error)
}

module.exports = {
  describeNonData,
  elementPath,
  fieldPath,
  isPlainObject,
  nonDataError,
  pathText,
  readData,
  toData,
  wordFor,
}
