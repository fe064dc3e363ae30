'use strict'

// Turns collected entities into plain data that can leave the child. Everything that is not data is named by its path
// and refused, all of it in one error (TypeError, ERR_INVALID_ARG_VALUE, `nonData`): functions, Dates, Maps, NaN and the
// like, cycles, references without a name, child projects. What a `toJSON()` of the project throws is an error with the
// path and that cause. Source of the form: contract/sandbox.md, "Entity protocol", Wire; js/entities.js reads it back.

const {
  ErrorConstructor,
  MapConstructor,
  SetConstructor,
  append,
  apply,
  getOwnPropertyDescriptor,
  hasInstance,
  hasOwn,
  isArray,
  keys,
  mapForEach,
  mapGet,
  mapHas,
  mapSet,
  ownKeys,
  put,
  setAdd,
  setDelete,
  setHas,
  symbolDescription,
} = require('./primordials')
const { elementPath, fieldPath, isPlainObject, nonDataError, pathText, wordFor } = require('./data')
const {
  isAttributeReference,
  isChildProject,
  isComposite,
  isDeclarable,
  isIntrinsic,
  isLexiconOutput,
  isObject,
  isWeakRef,
  targetOf,
} = require('./marks')
const { namesOf } = require('./resolve')

/**
 * @typedef {import('./data.js').NonData} NonData
 * @typedef {import('./data.js').Path} Path
 * @typedef {{ form: 'declarable', name: string, lexicon: string, entityType: string, kind?: string, props?: unknown,
 *   attributes?: unknown, markers: string[], extra?: Record<string, unknown> }} DeclarableWire
 * @typedef {{ form: 'lexiconOutput', name: string, outputName: string, ref: unknown }} LexiconOutputWire
 * @typedef {{ entities: (DeclarableWire | LexiconOutputWire)[] }} EntitySetWire
 */

/**
 * How many steps a value may be away from its entity, for both directions. Far above what people write, and far below
 * what would exhaust the stack of any reader.
 */
const MAXIMUM_LEVELS = 500

/** A record with one of these as its only field stands for something else on the wire. */
const WIRE_KEYS = /** @type {const} */ (['__attrRef', '__entityRef', '__property', '__intrinsic'])

/** Fields of a declarable that have a place of their own on the wire. */
const OWN_PLACE = ['lexicon', 'entityType', 'kind', 'props', 'attributes']

/**
 * What is being encoded.
 * @typedef {object} Encoding
 * @property {Map<string, object>} entities
 * @property {Map<object, string>} names
 * @property {NonData[]} nonData what was refused so far
 * @property {Set<object>} ancestors of the value in hand: meeting one again is a cycle
 */

/**
 * Where a value stands. Inside the answer of a `toJSON()` an attribute reference may already be data.
 * @typedef {{ path: Path, level: number, answer: boolean }} Place
 */

/**
 * @param {Place} place
 * @param {Path} path
 * @returns {Place}
 */
function below(place, path) {
  return { path, level: place.level + 1, answer: place.answer }
}

/**
 * @param {readonly unknown[]} list
 * @param {unknown} value
 * @returns {boolean}
 */
function includes(list, value) {
  for (let index = 0; index < list.length; index += 1) {
    if (list[index] === value) return true
  }
  return false
}

/**
 * @param {Encoding} encoding
 * @param {Path} path
 * @param {string} found
 * @returns {null}
 */
function refuse(encoding, path, found) {
  append(encoding.nonData, { path: pathText(path), found })
  return null
}

/**
 * @param {string} key
 * @param {unknown} value
 * @returns {Record<string, unknown>}
 */
function wrap(key, value) {
  /** @type {Record<string, unknown>} */
  const wrapped = {}
  put(wrapped, key, value)
  return wrapped
}

/**
 * @param {object} record
 * @returns {string | undefined} the wire key that the record would be taken for
 */
function wireKeyOf(record) {
  const names = keys(record)
  return names.length === 1 && includes(WIRE_KEYS, names[0]) ? names[0] : undefined
}

/**
 * @param {unknown} value
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {unknown}
 */
function encodeValue(value, place, encoding) {
  if (place.level > MAXIMUM_LEVELS) {
    return refuse(encoding, place.path, `nested more than ${MAXIMUM_LEVELS} levels deep`)
  }
  if (value === null || value === undefined) return null
  if (!isObject(value)) {
    const word = wordFor(value)
    return word === undefined ? value : refuse(encoding, place.path, word)
  }
  if (isAttributeReference(value)) return encodeReference(value, place, encoding)
  const name = mapGet(encoding.names, value)
  if (name !== undefined) return wrap('__entityRef', { entity: name })
  if (isChildProject(value)) return refuse(encoding, place.path, 'a child project')

  if (setHas(encoding.ancestors, value)) return refuse(encoding, place.path, 'a circular reference')
  setAdd(encoding.ancestors, value)
  const encoded = encodeObject(value, place, encoding)
  setDelete(encoding.ancestors, value)
  return encoded
}

/**
 * @param {Record<PropertyKey, any>} value no reference and no collected entity
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {unknown}
 */
function encodeObject(value, place, encoding) {
  if (isDeclarable(value)) return encodeProperty(value, place, encoding)
  if (isIntrinsic(value)) return encodeIntrinsic(value, place, encoding)
  if (isComposite(value)) return refuse(encoding, place.path, 'a composite')
  const word = wordFor(value)
  if (word !== undefined) return refuse(encoding, place.path, word)
  return isArray(value) ? encodeArray(value, place, encoding) : encodeRecord(value, place, encoding)
}

/**
 * @param {unknown[]} list
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {unknown[]} null for holes too
 */
function encodeArray(list, place, encoding) {
  /** @type {unknown[]} */
  const encoded = []
  const { length } = list
  for (let index = 0; index < length; index += 1) {
    append(encoded, encodeValue(list[index], below(place, elementPath(place.path, index)), encoding))
  }
  return encoded
}

/**
 * @param {Record<string, unknown>} record
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {Record<string, unknown> | null}
 */
function encodeRecord(record, place, encoding) {
  const wireKey = wireKeyOf(record)
  if (wireKey !== undefined && !(wireKey === '__attrRef' && isWrittenReference(record, place, encoding))) {
    return refuse(encoding, place.path, `a record with the reserved key "${wireKey}" alone`)
  }
  return encodeFields(record, keys(record), place, encoding)
}

/**
 * A reference that was already turned into data, by its own `toJSON()`.
 * @param {Record<string, unknown>} record
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {boolean}
 */
function isWrittenReference(record, place, encoding) {
  if (place.answer) return true
  const written = record.__attrRef
  if (!isObject(written)) return false
  const { entity, attribute } = /** @type {Record<string, unknown>} */ (written)
  return typeof entity === 'string' && typeof attribute === 'string' && mapHas(encoding.entities, entity)
}

/**
 * @param {Record<string, unknown>} record
 * @param {readonly string[]} names
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {Record<string, unknown>} without the fields that are undefined
 */
function encodeFields(record, names, place, encoding) {
  /** @type {Record<string, unknown>} */
  const encoded = {}
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index]
    const field = record[name]
    if (field !== undefined) put(encoded, name, encodeValue(field, below(place, fieldPath(place.path, name)), encoding))
  }
  return encoded
}

/**
 * @param {Record<PropertyKey, any>} reference
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {Record<string, unknown> | null}
 */
function encodeReference(reference, place, encoding) {
  const entity = logicalNameOf(reference)
  const { attribute } = reference
  if (entity === undefined || (entity === '' && !mapHas(encoding.entities, ''))) {
    return refuse(
      encoding,
      place.path,
      `a reference to the attribute "${attribute}" of something without a name, which no source file exports`,
    )
  }
  if (!mapHas(encoding.entities, entity)) {
    return refuse(encoding, place.path, `a reference to "${entity}", which is not among the entities`)
  }
  return wrap('__attrRef', { entity, attribute })
}

/**
 * @param {Record<PropertyKey, any>} reference
 * @returns {string | undefined}
 */
function logicalNameOf(reference) {
  const name =
    typeof reference.getLogicalName === 'function' ? apply(reference.getLogicalName, reference, []) : undefined
  return typeof name === 'string' ? name : undefined
}

/**
 * @param {Record<PropertyKey, any>} declarable
 * @param {'lexicon' | 'entityType'} field
 * @param {Path} path
 * @param {Encoding} encoding
 * @returns {string}
 */
function requiredText(declarable, field, path, encoding) {
  const text = declarable[field]
  if (typeof text === 'string') return text
  refuse(encoding, fieldPath(path, field), 'no string')
  return ''
}

/**
 * @param {Record<PropertyKey, any>} declarable that was not collected
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {Record<string, unknown>}
 */
function encodeProperty(declarable, place, encoding) {
  /** @type {Record<string, unknown>} */
  const property = {}
  put(property, 'lexicon', requiredText(declarable, 'lexicon', place.path, encoding))
  put(property, 'entityType', requiredText(declarable, 'entityType', place.path, encoding))
  if (declarable.props !== undefined) {
    const propsPlace = { ...below(place, fieldPath(place.path, 'props')), answer: false }
    put(property, 'props', encodeValue(declarable.props, propsPlace, encoding))
  }
  return wrap('__property', property)
}

/**
 * @param {Record<PropertyKey, any>} intrinsic
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {Record<string, unknown> | null}
 */
function encodeIntrinsic(intrinsic, place, encoding) {
  if (typeof intrinsic.toJSON !== 'function') return refuse(encoding, place.path, 'an intrinsic without toJSON()')
  /** @type {Record<string, unknown>} */
  const encoded = {}
  put(encoded, 'value', encodeAnswer(intrinsic, 'toJSON', place, encoding))
  if (typeof intrinsic.toYAML === 'function') put(encoded, 'yaml', encodeAnswer(intrinsic, 'toYAML', place, encoding))
  /** @type {References} */
  const references = { list: [], met: new SetConstructor(), named: new MapConstructor() }
  findReferences(intrinsic, place, references, encoding)
  put(encoded, 'refs', references.list)
  return wrap('__intrinsic', encoded)
}

/**
 * @param {Record<PropertyKey, any>} intrinsic
 * @param {'toJSON' | 'toYAML'} method
 * @param {Place} place
 * @param {Encoding} encoding
 * @returns {unknown}
 */
function encodeAnswer(intrinsic, method, place, encoding) {
  const path = `${pathText(place.path)}.${method}()`
  let answer
  try {
    answer = apply(intrinsic[method], intrinsic, [])
  } catch (error) {
    const reason = hasInstance(ErrorConstructor, error) ? `: ${/** @type {Error} */ (error).message}` : ''
    throw new ErrorConstructor(`Cannot encode the entities: ${path} failed${reason}`, { cause: error })
  }
  return encodeValue(answer, { path, level: place.level + 1, answer: true }, encoding)
}

/** @typedef {{ list: unknown[], met: Set<object>, named: Map<string, true> }} References */

/**
 * Collects the attribute references and entities that an intrinsic holds in its fields, each once. Accessors are not
 * called: what they answer is no field.
 * @param {object} holder
 * @param {Place} place
 * @param {References} references
 * @param {Encoding} encoding
 */
function findReferences(holder, place, references, encoding) {
  setAdd(references.met, holder)
  const names = ownKeys(holder)
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index]
    if (typeof name !== 'string') continue
    const field = getOwnPropertyDescriptor(holder, name)?.value
    if (!isObject(field)) continue
    const path = isArray(holder) ? elementPath(place.path, +name) : fieldPath(place.path, name)
    findReference(field, below(place, path), references, encoding)
  }
}

/**
 * @param {object} field
 * @param {Place} place
 * @param {References} references
 * @param {Encoding} encoding
 */
function findReference(field, place, references, encoding) {
  if (place.level > MAXIMUM_LEVELS) {
    refuse(encoding, place.path, `nested more than ${MAXIMUM_LEVELS} levels deep`)
    return
  }
  if (isAttributeReference(field)) {
    const encoded = encodeReference(field, place, encoding)
    const name = logicalNameOf(field)
    // With the length of the name, so that no other name and attribute make the same key.
    if (encoded !== null) addReference(references, `reference ${name?.length} ${name} ${field.attribute}`, encoded)
    return
  }
  const target = isWeakRef(field) ? targetOf(field) : field
  if (target === undefined) return
  const name = mapGet(encoding.names, target)
  if (name !== undefined) return addReference(references, `entity ${name}`, wrap('__entityRef', { entity: name }))
  // A weak reference says what the holder knows of, not what it is made of.
  if (target !== field || setHas(references.met, target)) return
  if (isArray(target) || isIntrinsic(target) || isPlainObject(target)) {
    findReferences(target, place, references, encoding)
  } else if (isDeclarable(target) && isObject(target.props)) {
    findReferences(target.props, below(place, fieldPath(place.path, 'props')), references, encoding)
  }
}

/**
 * @param {References} references
 * @param {string} key
 * @param {unknown} encoded
 */
function addReference(references, key, encoded) {
  if (mapHas(references.named, key)) return
  mapSet(references.named, key, true)
  append(references.list, encoded)
}

/**
 * @param {string} name
 * @param {Record<PropertyKey, any>} output
 * @param {Encoding} encoding
 * @returns {LexiconOutputWire}
 */
function encodeOutput(name, output, encoding) {
  const path = fieldPath('', name)
  const { outputName } = output
  if (typeof outputName !== 'string') refuse(encoding, fieldPath(path, 'outputName'), 'no string')
  return { form: 'lexiconOutput', name, outputName, ref: encodeOutputSource(output, path, encoding) }
}

/**
 * @param {Record<PropertyKey, any>} output
 * @param {Path} path
 * @param {Encoding} encoding
 * @returns {unknown}
 */
function encodeOutputSource(output, path, encoding) {
  const { _literalValue: literal, _intrinsic: intrinsic } = output
  if (literal !== undefined && literal !== null) {
    return encodeValue(literal, { path: fieldPath(path, '_literalValue'), level: 0, answer: false }, encoding)
  }
  if (isObject(intrinsic)) {
    return encodeValue(intrinsic, { path: fieldPath(path, '_intrinsic'), level: 0, answer: false }, encoding)
  }
  const attribute = output.sourceAttribute
  // Some copies of the class have null for "no literal", so it is one only where there is no other source.
  if (literal === null && typeof attribute !== 'string') return null
  const parent = targetOf(output._sourceParent)
  const entity = parent === undefined ? output.sourceEntity : mapGet(encoding.names, parent)
  if (typeof entity !== 'string' || typeof attribute !== 'string' || !mapHas(encoding.entities, entity)) {
    return refuse(encoding, path, 'an output of something that no source file exports')
  }
  return wrap('__attrRef', { entity, attribute })
}

/**
 * @param {string} name
 * @param {Record<PropertyKey, any>} entity
 * @param {Encoding} encoding
 * @returns {DeclarableWire}
 */
function encodeDeclarable(name, entity, encoding) {
  const path = fieldPath('', name)
  const place = { path, level: 0, answer: false }
  /** @type {DeclarableWire} */
  const wire = {
    form: 'declarable',
    name,
    lexicon: requiredText(entity, 'lexicon', path, encoding),
    entityType: requiredText(entity, 'entityType', path, encoding),
    markers: [],
  }
  const { kind } = entity
  if (typeof kind === 'string') put(wire, 'kind', kind)
  else if (kind !== undefined) refuse(encoding, fieldPath(path, 'kind'), 'no string')

  setAdd(encoding.ancestors, entity)
  const ownPlace = encodeFields(entity, ['props', 'attributes'], place, encoding)
  if (hasOwn(ownPlace, 'props')) put(wire, 'props', ownPlace.props)
  if (hasOwn(ownPlace, 'attributes')) put(wire, 'attributes', ownPlace.attributes)
  const extra = encodeFields(entity, extraNames(entity), place, encoding)
  if (keys(extra).length > 0) put(wire, 'extra', extra)
  setDelete(encoding.ancestors, entity)

  const all = ownKeys(entity)
  for (let index = 0; index < all.length; index += 1) {
    const key = all[index]
    if (typeof key !== 'symbol' || entity[key] !== true) continue
    const description = symbolDescription(key)
    if (description !== undefined) append(wire.markers, description)
  }
  return wire
}

/**
 * @param {Record<string, unknown>} entity
 * @returns {string[]}
 */
function extraNames(entity) {
  /** @type {string[]} */
  const names = []
  const all = keys(entity)
  for (let index = 0; index < all.length; index += 1) {
    if (!includes(OWN_PLACE, all[index])) append(names, all[index])
  }
  return names
}

/**
 * @param {Map<string, object>} entities by name, resolved
 * @returns {EntitySetWire}
 */
function encodeEntitySet(entities) {
  /** @type {Encoding} */
  const encoding = { entities, names: namesOf(entities), nonData: [], ancestors: new SetConstructor() }
  /** @type {EntitySetWire} */
  const wire = { entities: [] }
  mapForEach(entities, (entity, name) => {
    if (isLexiconOutput(entity)) append(wire.entities, encodeOutput(name, entity, encoding))
    else if (isChildProject(entity)) refuse(encoding, fieldPath('', name), 'a child project')
    else if (isDeclarable(entity)) append(wire.entities, encodeDeclarable(name, entity, encoding))
    else refuse(encoding, fieldPath('', name), 'no entity')
  })
  if (encoding.nonData.length > 0) {
    throw nonDataError('Cannot encode the entities, they hold values that are not data:', encoding.nonData)
  }
  return wire
}

module.exports = { MAXIMUM_LEVELS, OWN_PLACE, encodeEntitySet, wireKeyOf }
