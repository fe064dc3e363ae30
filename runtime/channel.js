'use strict'

// The way out of the child: one result, once. Everything it needs is taken when it is loaded, which is before any
// project code runs, so that a patched `JSON.stringify`, `Object.prototype.toJSON`, `process.send`, `process.exit`,
// `fs.writeSync` or `console` neither changes nor suppresses the result by accident. Code that means to can still forge
// one: the parent treats what arrives as untrusted data. `send` fails before anything is written where the payload is
// not data or too large to be one text, and with the system's error where the descriptor cannot be written to.
//
// Where it writes: to the descriptor in SALLYPORT_RESULT_FD as one frame (four bytes of length, big-endian, then UTF-8
// JSON); else by `process.send`; else as one line on stdout, under a caller's own launcher.

const fs = require('node:fs')

const {
  ArrayPrototype,
  ErrorConstructor,
  ObjectPrototype,
  SetConstructor,
  append,
  apply,
  getOwnPropertyDescriptor,
  has,
  hasInstance,
  isArray,
  keys,
  put,
  regExpExec,
  setAdd,
  setDelete,
  setHas,
  setPrototypeOf,
  stringify,
  uncurryGetter,
  uncurryThis,
} = require('./primordials')
const { elementPath, fieldPath, pathText, wordFor } = require('./data')

const { closeSync, writeSync } = fs
const { defineProperty } = Reflect
const { emit, execPath, exit, on, permission, send: sendMessage } = process
const { reallyExit } = /** @type {{ reallyExit?: (code?: number) => never }} */ (/** @type {unknown} */ (process))
const permissionHas = permission?.has
const encodeText = uncurryThis(TextEncoder.prototype.encode)
const encoder = new TextEncoder()
const byteLengthOf = uncurryGetter(Object.getPrototypeOf(Uint8Array.prototype), 'byteLength')
const ByteArray = Uint8Array
const { wait } = Atomics
const NEVER = new Int32Array(new SharedArrayBuffer(4))

const STDOUT = 1
const STDERR = 2

const resultDescriptor = takeDescriptor('SALLYPORT_RESULT_FD')

// Nothing is waited for once the result is there, so what was written before it must be out by then: newer versions of
// Node write what a pipe does not take at once only later. The streams are made by Node when they are asked for, which
// takes longer than all that is done here, and most projects print nothing.
if (resultDescriptor !== undefined) {
  blockOnWriting('stdout')
  blockOnWriting('stderr')
}
delete process.env.SALLYPORT_CONTROL_FD

/** @param {'stdout' | 'stderr'} name of a stream that shall have written when a write returns */
function blockOnWriting(name) {
  const property = getOwnPropertyDescriptor(process, name)
  const { get } = property ?? {}
  if (property === undefined || get === undefined) return
  let blocks = false
  defineProperty(process, name, {
    ...property,
    get() {
      const stream = apply(get, process, [])
      if (!blocks) {
        blocks = true
        const { _handle: handle } = /** @type {{ _handle?: { setBlocking?: (blocking: boolean) => void } }} */ (stream)
        handle?.setBlocking?.(true)
      }
      return stream
    },
  })
}

/** One for the process, whatever number of channels is made: the parent takes one frame. */
let sent = false

/**
 * @param {string} variable
 * @returns {number | undefined}
 */
function takeDescriptor(variable) {
  const text = process.env[variable]
  delete process.env[variable]
  if (text === undefined) return undefined
  if (regExpExec(/^[0-9]{1,9}$/, text) === null) {
    throw new ErrorConstructor(`${variable} must be the number of a descriptor. Received ${stringify(text)}`)
  }
  return +text
}

/**
 * A copy that has no prototypes, for a realm in which a `toJSON` was put on those of all objects or arrays.
 * @param {unknown} payload
 * @returns {unknown}
 * @throws where the payload is not data, with the path
 */
function withoutPrototypes(payload) {
  /** @type {Set<object>} */
  const ancestors = new SetConstructor()

  /**
   * @param {unknown} value
   * @param {import('./data.js').Path} path
   * @returns {any}
   */
  const copy = (value, path) => {
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
      throw new ErrorConstructor(`${pathText(path) || '<root>'}: ${wordFor(value)}`)
    }
    if (typeof value !== 'object' || value === null) return value
    if (setHas(ancestors, value)) throw new ErrorConstructor(`${pathText(path)}: a circular reference`)
    setAdd(ancestors, value)
    const copied = isArray(value) ? copyArray(value, path) : copyRecord(value, path)
    setDelete(ancestors, value)
    return copied
  }

  /**
   * @param {unknown[]} list
   * @param {import('./data.js').Path} path
   */
  const copyArray = (list, path) => {
    /** @type {unknown[]} */
    const copied = []
    setPrototypeOf(copied, null)
    const { length } = list
    for (let index = 0; index < length; index += 1) append(copied, copy(list[index], elementPath(path, index)))
    return copied
  }

  /**
   * @param {object} record
   * @param {import('./data.js').Path} path
   */
  const copyRecord = (record, path) => {
    /** @type {Record<string, unknown>} */
    const copied = /** @type {any} */ ({ __proto__: null })
    const names = keys(record)
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index]
      copied[name] = copy(/** @type {Record<string, unknown>} */ (record)[name], fieldPath(path, name))
    }
    return copied
  }

  return copy(payload, '')
}

/**
 * @param {unknown} payload
 * @returns {unknown} what JSON.stringify turns into text without asking anything that project code can have put there
 */
function unaffected(payload) {
  // Looking twice is enough: plain data has no other prototypes, and the copy takes seconds for 50 MB.
  return has(ObjectPrototype, 'toJSON') || has(ArrayPrototype, 'toJSON') ? withoutPrototypes(payload) : payload
}

/**
 * @param {unknown} payload
 * @returns {string}
 */
function toText(payload) {
  try {
    const text = stringify(unaffected(payload))
    if (typeof text === 'string') return text
  } catch (error) {
    throw cannotSend(reasonOf(payload, error), error)
  }
  throw cannotSend('it is no value', undefined)
}

/**
 * @param {unknown} payload
 * @param {unknown} error
 * @returns {string}
 */
function reasonOf(payload, error) {
  try {
    withoutPrototypes(payload)
  } catch (found) {
    // The copy says where; JSON.stringify says it in words that depend on the version of V8.
    return messageOf(found)
  }
  return messageOf(error)
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function messageOf(error) {
  return hasInstance(ErrorConstructor, error) ? /** @type {Error} */ (error).message : 'an unknown reason'
}

/**
 * @param {string} reason
 * @param {unknown} cause
 * @returns {Error}
 */
function cannotSend(reason, cause) {
  return new ErrorConstructor(`The result cannot be sent: ${reason}`, { cause })
}

/**
 * @param {number} descriptor
 * @param {Uint8Array} bytes
 */
function writeAll(descriptor, bytes) {
  const length = byteLengthOf(bytes)
  let offset = 0
  while (offset < length) {
    try {
      offset += writeSync(descriptor, bytes, offset, length - offset)
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error
      // A launcher gave a descriptor that does not block: its reader is behind. The parent's deadline bounds the wait.
      wait(NEVER, 0, 0, 1)
    }
  }
}

/**
 * @param {string} text
 */
function writeFrame(text) {
  const descriptor = /** @type {number} */ (resultDescriptor)
  const body = encodeText(encoder, text)
  // The longest text that V8 makes is far below 4 GiB, so the length always fits.
  const length = byteLengthOf(body)
  const header = new ByteArray(4)
  header[0] = length >>> 24
  header[1] = length >>> 16
  header[2] = length >>> 8
  header[3] = length
  writeAll(descriptor, header)
  writeAll(descriptor, body)
  closeSync(descriptor)
}

/**
 * @param {unknown} payload plain data
 * @returns {boolean} false where a result was sent before: only the first counts
 */
function send(payload) {
  if (sent) return false
  const text = toText(payload)
  // Turning the payload into text can run code of a trusted module's, which may have ended the process and sent.
  if (sent) return false
  sent = true
  if (resultDescriptor !== undefined) writeFrame(text)
  else if (typeof sendMessage === 'function') apply(sendMessage, process, [unaffected(payload)])
  else writeAll(STDOUT, encodeText(encoder, `${text}\n`))
  return true
}

/** @type {{ error: unknown } | undefined} */
let uncaught

/** @returns {{ error: unknown } | undefined} what nobody caught, where that is what ends the process */
function uncaughtError() {
  return uncaught
}

/** @type {unknown} */
let exitCode

/**
 * @param {string} what did not come to be, as a sentence
 * @returns {Error} for a process that ends
 */
function endedBefore(what) {
  const code = typeof exitCode === 'number' ? ` (exit code ${exitCode})` : ''
  return new ErrorConstructor(`the process ended before ${what}: it exits, or waits for what can never come${code}`)
}

/**
 * Sends what `makePayload` gives where the process ends before anything was sent.
 * @param {() => unknown} makePayload
 */
function onIncomplete(makePayload) {
  let flushing = false
  const flush = (/** @type {unknown} */ code) => {
    // Making the payload runs project code, which may end the process again.
    if (sent || flushing) return
    flushing = true
    exitCode = code
    try {
      send(makePayload())
    } catch (error) {
      // The process is ending: its error output is all that is left to say it with, and the parent shows that.
      writeAll(STDERR, encodeText(encoder, `sallyport: ${messageOf(error)}\n`))
    }
  }

  // Three ways to notice, since a project may take away listeners (`process.removeAllListeners`), replace `process.emit`
  // (as libraries that watch for the end do) or leave by `process.reallyExit`.
  apply(on, process, ['exit', flush])
  // What nobody caught ends the process before its words are printed: it is kept, to be told with the result.
  apply(on, process, ['uncaughtExceptionMonitor', (/** @type {unknown} */ error) => (uncaught = { error })])
  process.emit = /** @type {typeof process.emit} */ (
    /** @this {NodeJS.Process} */
    function (/** @type {unknown} */ event) {
      if (event === 'exit') flush(arguments[1])
      return apply(emit, this, arguments)
    }
  )
  if (typeof reallyExit === 'function') {
    const flushAndExit = (/** @type {number | undefined} */ code) => {
      flush(code)
      return apply(reallyExit, process, [code])
    }
    put(process, 'reallyExit', flushAndExit)
  }
}

// Not `/` itself: Node 20 takes the place where the paths of two grants part for granted too.
const NEVER_GRANTED = '/sallyport-never-granted'

/** What must be refused, and where a scope has resources, one that no sandbox grants. */
const REFUSED = /** @type {const} */ ([
  ['fs.read', NEVER_GRANTED],
  ['fs.write', NEVER_GRANTED],
  ['fs.write'],
  ['child'],
  ['worker'],
  ['addon'],
  ['wasi'],
  ['inspector'],
  ['net'],
])

/**
 * Makes sure that the restriction is really on, where this is a sandboxed run at all: a host program that ignores the
 * switch must be a failed run and not an open one.
 * @throws {Error} where it is not
 */
function requireRestriction() {
  if (resultDescriptor === undefined) return
  if (typeof permissionHas !== 'function') throw notRestricted('it has no permission model in force')
  for (let index = 0; index < REFUSED.length; index += 1) {
    // Scopes that a version of Node does not know are refused by it as well.
    if (apply(permissionHas, permission, REFUSED[index]) !== false) {
      throw notRestricted(`it permits ${REFUSED[index][0]}`)
    }
  }
}

/**
 * @param {string} reason
 * @returns {Error}
 */
function notRestricted(reason) {
  return new ErrorConstructor(
    `The sandbox is not in force in ${execPath}: ${reason}. Give a Node of version 20 or later as nodePath.`,
  )
}

/**
 * @returns {{ send: typeof send, onIncomplete: typeof onIncomplete, uncaughtError: typeof uncaughtError, endedBefore: typeof endedBefore, requireRestriction: typeof requireRestriction,
 *   exit: (code?: number) => never }} `exit` is the `process.exit` of before the project ran
 */
function createChannel() {
  return {
    send,
    onIncomplete,
    uncaughtError,
    endedBefore,
    requireRestriction,
    exit: (code) => apply(exit, process, [code]),
  }
}

module.exports = { createChannel }
