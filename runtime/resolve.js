'use strict'

// Gives every collected entity its name and every attribute reference that an entity owns the name of its parent. Fails
// with a DiscoveryError of type `resolution` that names the entity and the field; what was named before stays named.
// Source: contract/sandbox.md, "Entity protocol", Resolve.

const {
  MapConstructor,
  apply,
  getOwnPropertyDescriptor,
  mapForEach,
  mapGet,
  mapHas,
  mapSet,
  ownKeys,
  putHidden,
} = require('./primordials')
const { DiscoveryError } = require('./errors')
const { LOGICAL_NAME, isAttributeReference, isLexiconOutput, targetOf } = require('./marks')
const { getProvenance } = require('./provenance')

/**
 * @param {Map<string, object>} entities
 * @returns {Map<object, string>} an entity with two names goes by the first
 */
function namesOf(entities) {
  /** @type {Map<object, string>} */
  const names = new MapConstructor()
  mapForEach(entities, (entity, name) => {
    if (!mapHas(names, entity)) mapSet(names, entity, name)
  })
  return names
}

/**
 * @param {Record<PropertyKey, any>} target a reference or an output
 * @param {'_setLogicalName' | '_setSourceEntity'} method
 * @param {string} name
 */
function tellName(target, method, name) {
  if (typeof target[method] === 'function') apply(target[method], target, [name])
}

/**
 * @param {Map<string, object>} entities
 */
function resolveAttrRefs(entities) {
  const names = namesOf(entities)
  mapForEach(names, (name, entity) => {
    if (!putHidden(entity, LOGICAL_NAME, name)) {
      throw failure(entity, `Cannot give the entity "${name}" its name: the object is frozen or sealed`)
    }
  })

  mapForEach(names, (name, entity) => {
    if (isLexiconOutput(entity)) {
      const source = targetOf(entity._sourceParent)
      const sourceName = source === undefined ? undefined : mapGet(names, source)
      if (sourceName !== undefined) tellName(entity, '_setSourceEntity', sourceName)
    }
    resolveOwnReferences(name, entity, names)
  })
}

/**
 * @param {string} name
 * @param {object} entity
 * @param {Map<object, string>} names
 */
function resolveOwnReferences(name, entity, names) {
  const keys = ownKeys(entity)
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index]
    if (typeof key !== 'string') continue
    const descriptor = getOwnPropertyDescriptor(entity, key)
    // An accessor that is not enumerable is no field of an entity, and reading it would run code for nothing.
    if (descriptor === undefined || (descriptor.get !== undefined && !descriptor.enumerable)) continue
    const reference = /** @type {Record<string, unknown>} */ (entity)[key]
    if (!isAttributeReference(reference)) continue

    const parent = targetOf(reference.parent)
    if (parent === undefined) throw unresolved(entity, name, key, 'parent has been garbage collected')
    const parentName = mapGet(names, parent)
    if (parentName === undefined) {
      throw unresolved(entity, name, key, 'parent entity not found in entities collection')
    }
    tellName(reference, '_setLogicalName', parentName)
  }
}

/**
 * @param {object} entity
 * @param {string} name
 * @param {string} field
 * @param {string} reason
 * @returns {DiscoveryError}
 */
function unresolved(entity, name, field, reason) {
  return failure(entity, `Cannot resolve AttrRef on "${name}.${field}": ${reason}`)
}

/**
 * @param {object} entity
 * @param {string} message
 * @returns {DiscoveryError}
 */
function failure(entity, message) {
  return new DiscoveryError(getProvenance(entity)?.sourceFile ?? '', message, 'resolution')
}

module.exports = { namesOf, resolveAttrRefs }
