'use strict'

// Entity sets on the caller's side: back from the wire to live objects that keep the entity protocol. A wire comes from
// code that is not trusted, so every part of it is checked before it is used: a wrong shape, a name that is not in the
// set, and nesting without end are TypeErrors (ERR_INVALID_ARG_VALUE) that name the place; a key like `__proto__` is a
// field and never a prototype. Source of the form: contract/sandbox.md, "Entity protocol", Wire and Decode.

const { types } = require('node:util')

const codec = require('../runtime/entity-wire-codec')
const { elementPath, fieldPath, pathText } = require('../runtime/data')
const marks = require('../runtime/marks')
const { hasOwn, put, putHidden } = require('../runtime/primordials')
const { invalidType, invalidValue, requireObject } = require('./arguments')

/**
 * @typedef {import('../runtime/entity-wire-codec.js').EntitySetWire} EntitySetWire
 * @typedef {import('../runtime/data.js').Path} Path
 * @typedef {Record<PropertyKey, any>} LiveObject
 */

/** A reference to an attribute of an entity; it is recognised by its shape, and holds its parent weakly. */
class AttributeReference {
  /** @type {string} */
  #logicalName

  /**
   * @param {object} parent
   * @param {string} attribute
   * @param {string} logicalName
   */
  constructor(parent, attribute, logicalName) {
    this.parent = new WeakRef(parent)
    this.attribute = attribute
    this.#logicalName = logicalName
    putHidden(this, marks.INTRINSIC, true)
  }

  getLogicalName() {
    return this.#logicalName
  }

  /** @param {string} name */
  _setLogicalName(name) {
    this.#logicalName = name
  }

  toJSON() {
    return { __attrRef: { entity: this.#logicalName, attribute: this.attribute } }
  }
}

/**
 * What an output of a lexicon stands for.
 * @typedef {object} OutputSource
 * @property {object} [parent]
 * @property {string} [entity]
 * @property {string} [attribute]
 * @property {LiveObject} [intrinsic]
 * @property {string | number | boolean | null} [literal]
 * @property {string} lexicon
 */

class LexiconOutput {
  /**
   * @param {string} outputName
   * @param {OutputSource} source
   */
  constructor(outputName, source) {
    this.outputName = outputName
    this.sourceLexicon = source.lexicon
    this.sourceEntity = source.entity
    this.sourceAttribute = source.attribute
    this._sourceParent = source.parent === undefined ? null : new WeakRef(source.parent)
    this._intrinsic = source.intrinsic
    this._literalValue = source.literal
    putHidden(this, marks.LEXICON_OUTPUT, true)
    putHidden(this, marks.INTRINSIC, true)
  }

  /** @param {string} name */
  _setSourceEntity(name) {
    this.sourceEntity = name
  }

  getOutputValue() {
    if (this._literalValue !== undefined) return this._literalValue
    if (this._intrinsic !== undefined) return this._intrinsic.toJSON()
    return { 'Fn::GetAtt': [this.sourceEntity, this.sourceAttribute] }
  }

  toJSON() {
    return { 'chant::output': this.outputName }
  }
}

/**
 * Where a value stands in the wire. In what an intrinsic answers, a reference stays the data it was written as.
 * @typedef {{ path: Path, level: number, answer: boolean }} Place
 */

/**
 * @param {Place} place
 * @param {Path} path
 * @param {boolean} [answer]
 * @returns {Place}
 */
function below(place, path, answer = place.answer) {
  return { path, level: place.level + 1, answer }
}

/**
 * @param {Path} path
 * @param {string} expected
 * @param {unknown} received
 * @returns {TypeError & { code: string }}
 */
function refusal(path, expected, received) {
  return invalidValue(pathText(path), expected, received)
}

/**
 * @param {unknown} value
 * @param {Path} path
 * @returns {Record<string, unknown>}
 */
function recordAt(value, path) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refusal(path, 'a record', value)
  return /** @type {Record<string, unknown>} */ (value)
}

/**
 * @param {unknown} value
 * @param {Path} path
 * @returns {unknown[]}
 */
function arrayAt(value, path) {
  if (!Array.isArray(value)) throw refusal(path, 'an array', value)
  return value
}

/**
 * @param {Record<string, unknown>} record
 * @param {string} key
 * @returns {unknown} the record's own field, never an inherited one
 */
function fieldOf(record, key) {
  return hasOwn(record, key) ? record[key] : undefined
}

/**
 * @param {Record<string, unknown>} record
 * @param {string} key
 * @param {Path} path of the record
 * @returns {string}
 */
function textAt(record, key, path) {
  const text = fieldOf(record, key)
  if (typeof text !== 'string') throw refusal(fieldPath(path, key), 'a string', text)
  return text
}

/**
 * Reads one wire. Shells of all entities are made first and filled afterwards, so that entities may hold each other.
 */
class Decoding {
  /** @type {Map<string, LiveObject>} */
  entities = new Map()

  /** One object per attribute of an entity, as it was before. @type {Map<string, Map<string, AttributeReference>>} */
  references = new Map()

  /** @param {unknown} wire */
  decode(wire) {
    const list = arrayAt(fieldOf(requireObject(wire, 'wire'), 'entities'), 'wire.entities')
    /** @type {(() => void)[]} */
    const fillings = []
    /** @type {(() => void)[]} */
    const outputs = []
    // Holes are visited too, and refused.
    for (let index = 0; index < list.length; index += 1) {
      const path = elementPath('wire.entities', index)
      const record = recordAt(list[index], path)
      const name = textAt(record, 'name', path)
      if (this.entities.has(name)) throw refusal(fieldPath(path, 'name'), 'a name that no other entity has', name)
      const form = fieldOf(record, 'form')
      if (form === 'declarable') {
        const entity = this.declarableShell(record, name, path)
        this.entities.set(name, entity)
        fillings.push(() => this.fillDeclarable(entity, record, path))
      } else if (form === 'lexiconOutput') {
        const outputName = textAt(record, 'outputName', path)
        const output = Object.create(LexiconOutput.prototype)
        this.entities.set(name, output)
        outputs.push(() => this.fillOutput(output, name, outputName, record, path))
      } else {
        throw refusal(fieldPath(path, 'form'), "one of: 'declarable', 'lexiconOutput'", form)
      }
    }
    for (const fill of fillings) fill()
    for (const fill of outputs) fill()
    return this.entities
  }

  /**
   * @param {Record<string, unknown>} record
   * @param {string} name
   * @param {Path} path
   * @returns {LiveObject}
   */
  declarableShell(record, name, path) {
    /** @type {LiveObject} */
    const entity = {}
    const markers = arrayAt(fieldOf(record, 'markers'), fieldPath(path, 'markers'))
    for (let index = 0; index < markers.length; index += 1) {
      const marker = markers[index]
      if (typeof marker !== 'string') throw refusal(elementPath(fieldPath(path, 'markers'), index), 'a string', marker)
      putHidden(entity, Symbol.for(marker), true)
    }
    // Where the class of the entity carries the mark, the list of own marks is without it; the form says it all the same.
    if (entity[marks.DECLARABLE] !== true) putHidden(entity, marks.DECLARABLE, true)
    if (entity[marks.LEXICON_OUTPUT] === true || entity[marks.CHILD_PROJECT] === true) {
      throw refusal(fieldPath(path, 'markers'), 'the marks of a declarable', markers)
    }
    putHidden(entity, marks.LOGICAL_NAME, name)
    putHidden(entity, 'lexicon', textAt(record, 'lexicon', path))
    putHidden(entity, 'entityType', textAt(record, 'entityType', path))
    if (fieldOf(record, 'kind') !== undefined) putHidden(entity, 'kind', textAt(record, 'kind', path))
    return entity
  }

  /**
   * @param {LiveObject} entity
   * @param {Record<string, unknown>} record
   * @param {Path} path
   */
  fillDeclarable(entity, record, path) {
    const place = { path, level: 0, answer: false }
    for (const key of ['props', 'attributes']) {
      const field = fieldOf(record, key)
      if (field !== undefined) putHidden(entity, key, this.value(field, below(place, fieldPath(path, key))))
    }
    if (fieldOf(record, 'extra') === undefined) return
    const extraPath = fieldPath(path, 'extra')
    const extra = recordAt(record.extra, extraPath)
    for (const key of Object.keys(extra)) {
      const fieldPlace = below(place, fieldPath(extraPath, key))
      if (codec.OWN_PLACE.includes(key)) throw refusal(fieldPlace.path, 'a field without a place of its own', key)
      put(entity, key, this.value(extra[key], fieldPlace))
    }
  }

  /**
   * @param {LexiconOutput} output
   * @param {string} name
   * @param {string} outputName
   * @param {Record<string, unknown>} record
   * @param {Path} path
   */
  fillOutput(output, name, outputName, record, path) {
    // The constructor makes the fields, in one place for all outputs; the shell gives them their identity.
    const made = new LexiconOutput(outputName, this.outputSource(fieldOf(record, 'ref'), fieldPath(path, 'ref')))
    Object.defineProperties(output, Object.getOwnPropertyDescriptors(made))
    putHidden(output, marks.LOGICAL_NAME, name)
  }

  /**
   * @param {unknown} ref
   * @param {Path} path
   * @returns {OutputSource}
   */
  outputSource(ref, path) {
    const value = this.value(ref, { path, level: 0, answer: false })
    if (value instanceof AttributeReference) {
      const parent = /** @type {LiveObject} */ (value.parent.deref())
      const entity = value.getLogicalName()
      return { parent, entity, attribute: value.attribute, lexicon: lexiconOf(parent) }
    }
    if (typeof value === 'object' && value !== null) {
      if (!hasOwn(value, '__chantWireRefs')) throw refusal(path, 'a reference, an intrinsic or a scalar', ref)
      return { intrinsic: value, lexicon: lexiconOf(...value.__chantWireRefs) }
    }
    return { literal: /** @type {string | number | boolean | null} */ (value), lexicon: '' }
  }

  /**
   * @param {unknown} value
   * @param {Place} place
   * @returns {any}
   */
  value(value, place) {
    if (place.level > codec.MAXIMUM_LEVELS) {
      throw refusal(place.path, `nested at most ${codec.MAXIMUM_LEVELS} levels deep`, value)
    }
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value
      case 'number':
        if (!Number.isFinite(value)) throw refusal(place.path, 'a finite number', value)
        return value
      case 'object':
        if (value === null) return null
        return Array.isArray(value)
          ? this.array(value, place)
          : this.record(/** @type {Record<string, unknown>} */ (value), place)
      default:
        throw refusal(place.path, 'a value of JSON', value)
    }
  }

  /**
   * @param {unknown[]} list
   * @param {Place} place
   * @returns {unknown[]}
   */
  array(list, place) {
    return Array.from(list, (element, index) => this.value(element, below(place, elementPath(place.path, index))))
  }

  /**
   * @param {Record<string, unknown>} record
   * @param {Place} place
   * @returns {unknown}
   */
  record(record, place) {
    const wireKey = codec.wireKeyOf(record)
    if (wireKey !== undefined && !(wireKey === '__attrRef' && place.answer)) {
      const path = fieldPath(place.path, wireKey)
      return this.special(wireKey, recordAt(record[wireKey], path), { ...place, path })
    }
    const decoded = {}
    for (const key of Object.keys(record)) {
      put(decoded, key, this.value(record[key], below(place, fieldPath(place.path, key))))
    }
    return decoded
  }

  /**
   * @param {string} wireKey
   * @param {Record<string, unknown>} record
   * @param {Place} place of the record
   * @returns {object}
   */
  special(wireKey, record, place) {
    switch (wireKey) {
      case '__attrRef':
        return this.reference(textAt(record, 'entity', place.path), textAt(record, 'attribute', place.path), place.path)
      case '__entityRef':
        return this.entity(textAt(record, 'entity', place.path), place.path)
      case '__property':
        return this.property(record, place)
      default:
        return this.intrinsic(record, place)
    }
  }

  /**
   * @param {string} name
   * @param {Path} path
   * @returns {LiveObject}
   */
  entity(name, path) {
    const entity = this.entities.get(name)
    if (entity === undefined) throw refusal(fieldPath(path, 'entity'), 'the name of an entity of the set', name)
    return entity
  }

  /**
   * @param {string} name
   * @param {string} attribute
   * @param {Path} path
   * @returns {AttributeReference}
   */
  reference(name, attribute, path) {
    const parent = this.entity(name, path)
    let ofEntity = this.references.get(name)
    if (ofEntity === undefined) this.references.set(name, (ofEntity = new Map()))
    let reference = ofEntity.get(attribute)
    if (reference === undefined) {
      ofEntity.set(attribute, (reference = new AttributeReference(parent, attribute, name)))
    }
    return reference
  }

  /**
   * @param {Record<string, unknown>} record
   * @param {Place} place
   * @returns {LiveObject}
   */
  property(record, place) {
    /** @type {LiveObject} */
    const property = {}
    putHidden(property, marks.DECLARABLE, true)
    putHidden(property, 'lexicon', textAt(record, 'lexicon', place.path))
    putHidden(property, 'entityType', textAt(record, 'entityType', place.path))
    putHidden(property, 'kind', 'property')
    const props = fieldOf(record, 'props')
    if (props !== undefined) {
      putHidden(property, 'props', this.value(props, below(place, fieldPath(place.path, 'props'), false)))
    }
    return property
  }

  /**
   * @param {Record<string, unknown>} record
   * @param {Place} place
   * @returns {LiveObject}
   */
  intrinsic(record, place) {
    /** @type {LiveObject} */
    const intrinsic = {}
    putHidden(intrinsic, marks.INTRINSIC, true)
    for (const [key, method] of /** @type {const} */ ([
      ['value', 'toJSON'],
      ['yaml', 'toYAML'],
    ])) {
      if (key === 'yaml' && !hasOwn(record, key)) continue
      const answer = this.value(fieldOf(record, key), below(place, fieldPath(place.path, key), true))
      putHidden(intrinsic, method, () => answer)
    }
    const refsPath = fieldPath(place.path, 'refs')
    const refs = arrayAt(fieldOf(record, 'refs'), refsPath)
    // Enumerable, so that whoever looks for the dependencies of an entity by walking its fields finds them.
    put(intrinsic, '__chantWireRefs', this.array(refs, { path: refsPath, level: place.level, answer: false }))
    return intrinsic
  }
}

/**
 * @param {...unknown} candidates entities, or references to their attributes
 * @returns {string} the lexicon of the first that has one
 */
function lexiconOf(...candidates) {
  for (const candidate of candidates) {
    const entity = candidate instanceof AttributeReference ? candidate.parent.deref() : candidate
    const lexicon = marks.isObject(entity) ? /** @type {LiveObject} */ (entity).lexicon : undefined
    if (typeof lexicon === 'string') return lexicon
  }
  return ''
}

/**
 * @param {EntitySetWire} wire
 * @returns {Map<string, object>} live objects by name
 * @throws {TypeError} ERR_INVALID_ARG_TYPE where it is no record; ERR_INVALID_ARG_VALUE, naming the place, for what is
 *   in it
 */
function decodeEntitySet(wire) {
  return new Decoding().decode(wire)
}

/**
 * @param {Map<string, object>} entities by name, as collected and resolved
 * @returns {EntitySetWire}
 * @throws {TypeError} ERR_INVALID_ARG_TYPE where it is no Map of objects by name; ERR_INVALID_ARG_VALUE that lists, also as
 *   `nonData`, what is not data
 */
function encodeEntitySet(entities) {
  if (!types.isMap(entities)) throw invalidType('entities', 'an instance of Map', entities)
  for (const [name, entity] of entities) {
    if (typeof name !== 'string') throw invalidType('entities', 'a Map by name', name)
    if (typeof entity !== 'object' || entity === null)
      throw invalidType(`entities[${JSON.stringify(name)}]`, 'of type object', entity)
  }
  return codec.encodeEntitySet(entities)
}

module.exports = { decodeEntitySet, encodeEntitySet }
