'use strict'

// Finds the entities among the exports of the project's modules and names them. Fails with a DiscoveryError of type
// `resolution` that names the file: for a name that stands for two objects, and where looking at an export throws.
// Source of every rule here: contract/sandbox.md, "Entity protocol", Collect and Composite.

const path = require('node:path')

const {
  ErrorConstructor,
  MapConstructor,
  StringConstructor,
  append,
  arraySort,
  getOwnPropertyDescriptor,
  hasInstance,
  isArray,
  keys,
  mapForEach,
  mapGet,
  mapHas,
  mapSet,
  put,
  putHidden,
  stringLocaleCompare,
  stringSlice,
  stringToUpperCase,
} = require('./primordials')
const { DiscoveryError, isDiscoveryError } = require('./errors')
const {
  COMPOSITE_ORIGINAL_PROPS,
  COMPOSITE_SHARED,
  isComposite,
  isDeclarable,
  isLexiconOutput,
  isObject,
} = require('./marks')
const { stampProvenance } = require('./provenance')

const { basename, dirname, relative } = path

/**
 * One name for one object, as a file exports it.
 * @typedef {{ name: string, entity: object, file: string, directory: string }} Export
 */

/** @typedef {Record<string, unknown>} Props */

/**
 * @param {string} word
 * @returns {string}
 */
function capitalised(word) {
  return stringToUpperCase(stringSlice(word, 0, 1)) + stringSlice(word, 1)
}

/**
 * @param {string} file
 * @returns {string} what a default export is called
 */
function defaultName(file) {
  return basename(basename(file, '.ts'), '.op')
}

/**
 * @param {string} directory
 * @param {string} buildRoot
 * @returns {string} such as `InfraEuWest` for `infra/eu-west`; empty for the build root itself
 */
function directoryPrefix(directory, buildRoot) {
  const text = relative(buildRoot, directory)
  let prefix = ''
  let word = ''
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (isAlphanumeric(character)) {
      word += character
    } else {
      prefix += capitalised(word)
      word = ''
    }
  }
  return prefix + capitalised(word)
}

/**
 * @param {string} character
 * @returns {boolean}
 */
function isAlphanumeric(character) {
  return (
    (character >= 'a' && character <= 'z') ||
    (character >= 'A' && character <= 'Z') ||
    (character >= '0' && character <= '9')
  )
}

/**
 * Shared props first, then the member's own: arrays are joined, other own values win, undefined is dropped.
 * @param {Props} shared
 * @param {Props} own
 * @returns {Props}
 */
function mergeProps(shared, own) {
  /** @type {Props} */
  const merged = {}
  const sharedNames = keys(shared)
  for (let index = 0; index < sharedNames.length; index += 1) {
    const value = shared[sharedNames[index]]
    if (value !== undefined) put(merged, sharedNames[index], value)
  }
  const ownNames = keys(own)
  for (let index = 0; index < ownNames.length; index += 1) {
    const name = ownNames[index]
    const value = own[name]
    if (value === undefined) continue
    const before = getOwnPropertyDescriptor(merged, name)?.value
    put(merged, name, isArray(before) && isArray(value) ? joined(before, value) : value)
  }
  return merged
}

/**
 * @param {unknown[]} first
 * @param {unknown[]} second
 * @returns {unknown[]}
 */
function joined(first, second) {
  /** @type {unknown[]} */
  const all = []
  for (let index = 0; index < first.length; index += 1) append(all, first[index])
  for (let index = 0; index < second.length; index += 1) append(all, second[index])
  return all
}

/**
 * @param {string} name
 * @param {Record<PropertyKey, any>} member
 * @param {Props} shared
 */
function applyShared(name, member, shared) {
  const kept = member[COMPOSITE_ORIGINAL_PROPS]
  const original = isObject(kept) ? kept : isObject(member.props) ? member.props : {}
  const merged = mergeProps(shared, /** @type {Props} */ (original))
  if (!putHidden(member, COMPOSITE_ORIGINAL_PROPS, original) || !putHidden(member, 'props', merged)) {
    throw new ErrorConstructor(
      `Cannot merge the shared props of a composite into "${name}": the object is frozen or sealed`,
    )
  }
}

/**
 * @param {string} name
 * @param {Record<PropertyKey, any>} composite
 * @param {Props | undefined} outerShared what the composites around it share
 * @param {Record<PropertyKey, any>[]} around the composites around it
 * @param {(name: string, entity: object) => void} found
 */
function expandComposite(name, composite, outerShared, around, found) {
  if (includes(around, composite)) {
    throw new ErrorConstructor(`The composite "${name}" is a member of itself`)
  }
  const ownShared = composite[COMPOSITE_SHARED]
  const shared = isObject(ownShared) ? mergeProps(outerShared ?? {}, /** @type {Props} */ (ownShared)) : outerShared
  const { members, _definition: definition } = composite
  if (!isObject(members)) throw new ErrorConstructor(`The composite "${name}" has no record of members`)
  const compositeName = isObject(definition) ? /** @type {Props} */ (definition).compositeName : undefined

  append(around, composite)
  const names = keys(members)
  for (let index = 0; index < names.length; index += 1) {
    const member = /** @type {Record<string, unknown>} */ (members)[names[index]]
    const memberName = name + capitalised(names[index])
    if (isLexiconOutput(member) || isDeclarable(member)) {
      if (shared !== undefined && isDeclarable(member)) applyShared(memberName, member, shared)
      stampProvenance(member, {
        composite: typeof compositeName === 'string' ? compositeName : undefined,
        compositeInstance: name,
      })
      found(memberName, member)
    } else if (isComposite(member)) {
      expandComposite(memberName, member, shared, around, found)
    }
  }
  around.length -= 1
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
 * @param {string} name
 * @param {unknown} value
 * @param {(name: string, entity: object) => void} found
 */
function collectExport(name, value, found) {
  if (isLexiconOutput(value)) return found(name, value)
  if (isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const element = value[index]
      if (isDeclarable(element) && !isLexiconOutput(element)) found(`${name}_${index}`, element)
      else if (isComposite(element)) expandComposite(`${name}_${index}`, element, undefined, [], found)
    }
    return
  }
  if (isDeclarable(value)) found(name, value)
  else if (isComposite(value)) expandComposite(name, value, undefined, [], found)
}

/**
 * @param {string} file
 * @param {Record<string, unknown>} exports
 * @param {Export[]} collected
 */
function collectModule(file, exports, collected) {
  const directory = dirname(file)
  const names = arraySort(keys(exports), stringLocaleCompare)
  for (let index = 0; index < names.length; index += 1) {
    const exportName = names[index] === 'default' ? defaultName(file) : names[index]
    collectExport(exportName, exports[names[index]], (name, entity) => {
      stampProvenance(entity, { sourceFile: file })
      append(collected, { name, entity, file, directory })
    })
  }
}

/**
 * @param {string} file
 * @param {string} name
 * @returns {DiscoveryError}
 */
function duplicate(file, name) {
  return new DiscoveryError(file, `Duplicate export name "${name}" found`, 'resolution')
}

/**
 * The exports of one name: one object keeps it, different objects of one directory are an error, and those of different
 * directories are told apart by the directory.
 * @param {Export[]} exports
 * @returns {{ distinct: Export[], prefixed: boolean }}
 */
function settleName(exports) {
  /** @type {Map<object, Export>} */
  const first = new MapConstructor()
  /** @type {Map<string, object>} */
  const byDirectory = new MapConstructor()
  /** @type {Export[]} */
  const distinct = []
  for (let index = 0; index < exports.length; index += 1) {
    const { name, entity, file, directory } = exports[index]
    const other = mapGet(byDirectory, directory)
    if (other !== undefined && other !== entity) throw duplicate(file, name)
    mapSet(byDirectory, directory, entity)
    if (mapHas(first, entity)) continue
    mapSet(first, entity, exports[index])
    append(distinct, exports[index])
  }
  return { distinct, prefixed: distinct.length > 1 }
}

/**
 * @param {readonly { file: string, exports: object }[]} modules in the order of the build
 * @param {string} buildRoot what directories are relative to
 * @returns {Map<string, object>} entities by name
 */
function collectEntities(modules, buildRoot) {
  /** @type {Export[]} */
  const collected = []
  for (let index = 0; index < modules.length; index += 1) {
    const { file, exports } = modules[index]
    try {
      collectModule(file, /** @type {Record<string, unknown>} */ (exports), collected)
    } catch (error) {
      if (isDiscoveryError(error)) throw error
      const message = hasInstance(ErrorConstructor, error)
        ? /** @type {Error} */ (error).message
        : StringConstructor(error)
      throw new DiscoveryError(file, message, 'resolution')
    }
  }

  /** @type {Map<string, Export[]>} */
  const byName = new MapConstructor()
  for (let index = 0; index < collected.length; index += 1) {
    const { name } = collected[index]
    const exports = mapGet(byName, name)
    if (exports === undefined) mapSet(byName, name, [collected[index]])
    else append(exports, collected[index])
  }

  /** @type {Map<string, object>} */
  const entities = new MapConstructor()
  mapForEach(byName, (exports) => {
    const { distinct, prefixed } = settleName(exports)
    for (let index = 0; index < distinct.length; index += 1) {
      const { name, entity, file, directory } = distinct[index]
      const finalName = prefixed ? directoryPrefix(directory, buildRoot) + name : name
      // Two directories can make the same prefix, and a prefix can make a name that another file exports.
      if (mapHas(entities, finalName) && mapGet(entities, finalName) !== entity) throw duplicate(file, finalName)
      mapSet(entities, finalName, entity)
    }
  })
  return entities
}

module.exports = { collectEntities }
