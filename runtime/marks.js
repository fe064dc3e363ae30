'use strict'

// What chant's objects look like: the marks they carry and how each kind is told from the others. Everything goes by
// `Symbol.for` and by shape, never by class, because a project and its tool have copies of the same package. Source:
// contract/sandbox.md, "Entity protocol". Fails only where looking at a project's object does (a proxy that throws).

const { has, weakRefDeref } = require('./primordials')

const DECLARABLE = Symbol.for('chant.declarable')
const INTRINSIC = Symbol.for('chant.intrinsic')
const COMPOSITE = Symbol.for('chant.composite')
const COMPOSITE_SHARED = Symbol.for('chant.composite.shared')
const COMPOSITE_ORIGINAL_PROPS = Symbol.for('chant.composite.origProps')
const LEXICON_OUTPUT = Symbol.for('chant.lexiconOutput')
const CHILD_PROJECT = Symbol.for('chant.childProject')
const PROVENANCE = Symbol.for('chant.provenance')
const LOGICAL_NAME = Symbol.for('chant.logicalName')

/**
 * @param {unknown} value
 * @returns {value is object}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null
}

/**
 * @param {symbol} mark
 * @returns {(value: unknown) => value is Record<PropertyKey, any>}
 */
function markedWith(mark) {
  return /** @type {(value: unknown) => value is Record<PropertyKey, any>} */ (
    (value) => isObject(value) && /** @type {any} */ (value)[mark] === true
  )
}

/**
 * Looked for before intrinsics, whose mark it carries too.
 * @param {unknown} value
 * @returns {value is Record<PropertyKey, any>}
 */
function isAttributeReference(value) {
  if (!isObject(value)) return false
  const { parent, attribute } = /** @type {any} */ (value)
  return isObject(parent) && typeof attribute === 'string' && has(value, '_setLogicalName')
}

/**
 * @param {unknown} reference a WeakRef, or the object itself where a copy of the protocol keeps it strongly
 * @returns {object | undefined} undefined where there is none, or it has been collected
 */
function targetOf(reference) {
  if (!isObject(reference)) return undefined
  return isWeakRef(reference) ? weakRefDeref(reference) : reference
}

/**
 * @param {object} value
 * @returns {value is WeakRef<object>}
 */
function isWeakRef(value) {
  try {
    weakRefDeref(/** @type {WeakRef<object>} */ (value))
    return true
  } catch {
    // The one way to tell: the function refuses everything that is not a WeakRef.
    return false
  }
}

module.exports = {
  CHILD_PROJECT,
  COMPOSITE,
  COMPOSITE_ORIGINAL_PROPS,
  COMPOSITE_SHARED,
  DECLARABLE,
  INTRINSIC,
  LEXICON_OUTPUT,
  LOGICAL_NAME,
  PROVENANCE,
  isAttributeReference,
  isChildProject: markedWith(CHILD_PROJECT),
  isComposite: markedWith(COMPOSITE),
  isDeclarable: markedWith(DECLARABLE),
  isIntrinsic: markedWith(INTRINSIC),
  isLexiconOutput: markedWith(LEXICON_OUTPUT),
  isObject,
  isWeakRef,
  targetOf,
}
