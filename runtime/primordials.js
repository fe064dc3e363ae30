'use strict'

// The built-in functions that the runtime works with, taken before any project code runs. Project code shares the realm
// with the runtime: a polyfill, a lockdown or an accident that replaces `Array.prototype.push`, `JSON.stringify` or a
// whole global must not change what the runtime reports. It guards against accidents, not against intent: code in the
// same process can always forge a result. Loading it cannot fail.
//
// How the rest of the runtime keeps to it: methods are called through these functions; arrays are walked by index and
// filled with `append`, never iterated or spread; objects made inside have no prototype, or are filled with `put`.

const { types } = require('node:util')

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, has, ownKeys } = Reflect
const { bind, call } = Function.prototype

/** @type {(method: Function) => (receiver: any, ...values: any[]) => any} */
const uncurryThis = bind.bind(call)

/**
 * @param {object} prototype
 * @param {PropertyKey} key of an accessor of the language itself
 * @returns {(receiver: any) => any}
 */
function uncurryGetter(prototype, key) {
  const descriptor = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(prototype, key))
  return uncurryThis(/** @type {() => any} */ (descriptor.get))
}

const ObjectPrototype = Object.prototype
const hasOwn = /** @type {(target: object, key: PropertyKey) => boolean} */ (Object.hasOwn)

/**
 * @template T
 * @param {T[]} list
 * @param {T} value
 */
function append(list, value) {
  list[list.length] = value
}

/**
 * Sets an own field of an ordinary object, as a literal would: neither a setter nor a frozen field of Object.prototype
 * has a say, and `__proto__` is a name like any other.
 * @param {object} target
 * @param {PropertyKey} key
 * @param {unknown} value
 */
function put(target, key, value) {
  if (has(ObjectPrototype, key)) {
    const descriptor = { __proto__: null, value, writable: true, enumerable: true, configurable: true }
    defineProperty(target, key, /** @type {PropertyDescriptor} */ (descriptor))
  } else {
    ;/** @type {Record<PropertyKey, unknown>} */ (target)[key] = value
  }
}

/**
 * Sets a field that the enumeration of an object does not show.
 * @param {object} target
 * @param {PropertyKey} key
 * @param {unknown} value
 * @returns {boolean} whether it could be set: not on a frozen object
 */
function putHidden(target, key, value) {
  const descriptor = { __proto__: null, value, writable: true, enumerable: false, configurable: true }
  return defineProperty(target, key, /** @type {PropertyDescriptor} */ (descriptor))
}

module.exports = {
  ArrayConstructor: Array,
  ArrayPrototype: Array.prototype,
  ErrorConstructor: Error,
  MapConstructor: Map,
  NumberConstructor: Number,
  ObjectPrototype,
  SetConstructor: Set,
  StringConstructor: String,
  TypeErrorConstructor: TypeError,
  append,
  apply,
  arraySort: /** @type {<T>(list: T[], compare: (left: T, right: T) => number) => T[]} */ (
    uncurryThis(Array.prototype.sort)
  ),
  freeze: Object.freeze,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  has,
  hasInstance: /** @type {(constructor: Function, value: unknown) => boolean} */ (
    uncurryThis(Function.prototype[Symbol.hasInstance])
  ),
  hasOwn,
  isArray: Array.isArray,
  isFinite: Number.isFinite,
  isInteger: Number.isInteger,
  keys: Object.keys,
  mapForEach: /** @type {<K, V>(map: Map<K, V>, visit: (value: V, key: K) => void) => void} */ (
    uncurryThis(Map.prototype.forEach)
  ),
  mapGet: /** @type {<K, V>(map: Map<K, V>, key: K) => V | undefined} */ (uncurryThis(Map.prototype.get)),
  mapHas: /** @type {<K, V>(map: Map<K, V>, key: K) => boolean} */ (uncurryThis(Map.prototype.has)),
  mapSet: /** @type {<K, V>(map: Map<K, V>, key: K, value: V) => void} */ (uncurryThis(Map.prototype.set)),
  ownKeys,
  put,
  putHidden,
  regExpExec: /** @type {(pattern: RegExp, text: string) => RegExpExecArray | null} */ (
    uncurryThis(RegExp.prototype.exec)
  ),
  setAdd: /** @type {<T>(set: Set<T>, value: T) => void} */ (uncurryThis(Set.prototype.add)),
  setDelete: /** @type {<T>(set: Set<T>, value: T) => boolean} */ (uncurryThis(Set.prototype.delete)),
  setHas: /** @type {<T>(set: Set<T>, value: T) => boolean} */ (uncurryThis(Set.prototype.has)),
  setPrototypeOf: Reflect.setPrototypeOf,
  stringLocaleCompare: /** @type {(left: string, right: string) => number} */ (
    uncurryThis(String.prototype.localeCompare)
  ),
  stringSlice: /** @type {(text: string, start: number, end?: number) => string} */ (
    uncurryThis(String.prototype.slice)
  ),
  stringToUpperCase: /** @type {(text: string) => string} */ (uncurryThis(String.prototype.toUpperCase)),
  stringToWellFormed: /** @type {(text: string) => string} */ (
    uncurryThis(/** @type {any} */ (String.prototype).toWellFormed)
  ),
  stringify: JSON.stringify,
  symbolDescription: /** @type {(symbol: symbol) => string | undefined} */ (
    uncurryGetter(Symbol.prototype, 'description')
  ),
  types: {
    isDate: types.isDate,
    isMap: types.isMap,
    isNativeError: types.isNativeError,
    isPromise: types.isPromise,
    isRegExp: types.isRegExp,
    isSet: types.isSet,
  },
  uncurryGetter,
  uncurryThis,
  weakRefDeref: /** @type {(reference: WeakRef<object>) => object | undefined} */ (
    uncurryThis(WeakRef.prototype.deref)
  ),
}
