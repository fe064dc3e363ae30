'use strict'

// Where an entity was declared: the file, and the composite it was expanded from. It is kept on the entity itself, not
// enumerable, and the first writer of a field wins, so that a re-export does not move an entity to another file.
// Fails with a TypeError where the entity cannot be written to. Source: contract/sandbox.md, "Entity protocol".

const { TypeErrorConstructor, put, putHidden } = require('./primordials')
const { PROVENANCE, isObject } = require('./marks')

/** @typedef {{ sourceFile?: string, composite?: string, compositeInstance?: string }} Provenance */

const FIELDS = /** @type {const} */ (['sourceFile', 'composite', 'compositeInstance'])

/**
 * @param {unknown} entity
 * @returns {Provenance | undefined}
 */
function getProvenance(entity) {
  if (!isObject(entity)) return undefined
  const provenance = /** @type {Record<symbol, unknown>} */ (entity)[PROVENANCE]
  return isObject(provenance) ? provenance : undefined
}

/**
 * @param {object} entity
 * @param {Provenance} provenance
 */
function stampProvenance(entity, provenance) {
  const before = getProvenance(entity)
  /** @type {Provenance} */
  const merged = {}
  for (let index = 0; index < FIELDS.length; index += 1) {
    const value = before?.[FIELDS[index]] ?? provenance[FIELDS[index]]
    if (value !== undefined) put(merged, FIELDS[index], value)
  }
  if (!putHidden(entity, PROVENANCE, merged)) {
    throw new TypeErrorConstructor('Cannot note where an entity was declared: the object is frozen or sealed')
  }
}

module.exports = { getProvenance, stampProvenance }
