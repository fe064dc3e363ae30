// What is data and the words for what is not (contract/sandbox.md, "Config"), build parameters, and how an error is
// described so that nothing a project makes can break the description.

import fc from 'fast-check'
import vm from 'node:vm'
import { describe, expect, it } from 'vitest'

import { runtime } from './support/entities/runtime'

const {
  classifyChildError,
  describeNonData,
  DiscoveryError,
  getBuildParams,
  isDiscoveryError,
  readData,
  setBuildParams,
  toData,
} = runtime

class Region {}
const Anonymous = (() => class {})()

function cyclic(): unknown {
  const value: Record<string, unknown> = { list: [] }
  ;(value.list as unknown[]).push({ back: value })
  return value
}

function nested(levels: number, innermost: unknown = 1): unknown {
  let value = innermost
  for (let level = 0; level < levels; level += 1) value = { a: value }
  return value
}

describe('what is not data', () => {
  it.each<[unknown, string, string]>([
    [() => 1, '<root>', 'a function'],
    [{ hooks: { beforeBuild() {} } }, 'hooks.beforeBuild', 'a function'],
    [{ c: Region }, 'c', 'a function'],
    [{ stacks: [{ name: Symbol('x') }] }, 'stacks[0].name', 'a symbol'],
    [{ [Symbol('mark')]: 1 }, '[Symbol(mark)]', 'a symbol'],
    [1n, '<root>', 'a bigint'],
    [[NaN], '[0]', 'NaN'],
    [{ x: Infinity }, 'x', 'a non-finite number'],
    [{ x: -Infinity }, 'x', 'a non-finite number'],
    [new Date(), '<root>', 'a Date'],
    [{ x: /x/ }, 'x', 'a RegExp'],
    [{ x: new Map() }, 'x', 'a Map'],
    [{ x: new Set() }, 'x', 'a Set'],
    [{ x: Promise.resolve() }, 'x', 'a Promise'],
    [{ x: new TypeError('x') }, 'x', 'an Error'],
    [{ x: new DOMException('x') }, 'x', 'an Error'],
    [{ x: vm.runInNewContext('new Error("x")') }, 'x', 'an Error'],
    [{ x: new Region() }, 'x', 'a Region instance'],
    [{ x: new Uint8Array(1) }, 'x', 'a Uint8Array instance'],
    [{ x: new Number(1) }, 'x', 'a Number instance'],
    [{ x: new URL('file:///x') }, 'x', 'a URL instance'],
    [{ x: new Anonymous() }, 'x', 'a non-plain object'],
    [{ x: Object.create({ inherited: 1 }) }, 'x', 'a non-plain object'],
    [cyclic(), 'list[0].back', 'a circular reference'],
    [[1, undefined], '[1]', 'undefined'],
    // eslint-disable-next-line no-sparse-arrays
    [{ x: [, 1] }, 'x[0]', 'undefined'],
    [{ 'a b': { '': { 1: [NaN] } } }, '["a b"][""]["1"][0]', 'NaN'],
    [{ größe: { $x_1: NaN } }, 'größe.$x_1', 'NaN'],
    [nested(65), `a${'.a'.repeat(64)}`, 'nested more than 64 levels deep'],
  ])('%o is named: %s: %s', (value, path, found) => {
    expect(describeNonData(value)).toEqual([{ path, found }])
  })

  it('is listed in the order in which it stands', () => {
    expect(describeNonData({ b: [1n, 1], a: { c: NaN } })).toEqual([
      { path: 'b[0]', found: 'a bigint' },
      { path: 'a.c', found: 'NaN' },
    ])
  })

  it('is refused by toData, a line each, up to a bound', () => {
    expect(() => toData({ a: 1n, b: [() => 1] })).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARG_VALUE',
        message: 'The value holds values that are not data:\n  a: a bigint\n  b[0]: a function',
      }),
    )
    expect(() => toData(Array.from({ length: 103 }, () => NaN))).toThrow(/\n {2}\[99\]: NaN\n {2}… and 3 more$/)
  })
})

describe('what is data', () => {
  it.each<[unknown, unknown]>([
    [undefined, undefined],
    [null, null],
    ['\ud800', '\ud800'],
    [{ a: undefined, b: [1, 'x', true, null, {}] }, { b: [1, 'x', true, null, {}] }],
    [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    [vm.runInNewContext('({ a: [1] })'), { a: [1] }],
    [nested(64), nested(64)],
  ])('%o is copied', (value, data) => {
    expect(readData(value)).toEqual({ data, nonData: [] })
    expect(toData(value)).toEqual(data)
  })

  it('may be shared, and the copy is its own', () => {
    const shared = { a: 1 }
    const value = { x: shared, y: [shared] }
    const copy = toData(value)
    expect(copy).toEqual(value)
    copy.x.a = 2
    expect(shared.a).toBe(1)
  })

  it('is read once', () => {
    let reads = 0
    const value = { get x() { return (reads += 1) === 1 ? 1 : () => 1 } } // prettier-ignore
    expect(readData(value)).toEqual({ data: { x: 1 }, nonData: [] })
    expect(reads).toBe(1)
  })

  it('keeps what has the name of something of every object', () => {
    const text = '{"__proto__":{"polluted":1},"constructor":1}'
    expect(JSON.stringify(toData(JSON.parse(text)))).toBe(text)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('is all that JSON gives, unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(describeNonData(value)).toEqual([])
        expect(JSON.stringify(toData(value))).toBe(JSON.stringify(value))
      }),
    )
  })
})

describe('build parameters', () => {
  it('are what was bound last, by every copy, and nobody can change them', () => {
    const params = { stage: 'test', count: 2, dry: false }
    setBuildParams(params)
    params.stage = 'other'
    expect(getBuildParams()).toEqual({ stage: 'test', count: 2, dry: false })
    expect(Object.isFrozen(getBuildParams())).toBe(true)
    expect((globalThis as any)[Symbol.for('sallyport.buildParams')]).toBe(getBuildParams())
    setBuildParams({})
    expect(getBuildParams()).toEqual({})
  })

  it.each([undefined, null, [], 'x', { a: null }, { a: {} }, { a: 1n }])('refuse %o', (params) => {
    expect(() => setBuildParams(params)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }))
  })
})

describe('the error of a project file', () => {
  it('is data with the description that the parent classifies', () => {
    const error = Object.assign(new Error('denied'), {
      code: 'ERR_ACCESS_DENIED',
      permission: 'FileSystemRead',
      resource: '/etc/passwd',
      port: 80,
      other: 'left out',
      spawnargs: ['left out'],
    })
    expect(JSON.parse(JSON.stringify(classifyChildError('/project/a.ts', error)))).toEqual({
      name: 'DiscoveryError',
      file: '/project/a.ts',
      message: 'denied',
      type: 'import',
      raw: {
        isError: true,
        name: 'Error',
        message: 'denied',
        text: 'Error: denied',
        code: 'ERR_ACCESS_DENIED',
        permission: 'FileSystemRead',
        resource: '/etc/passwd',
        port: 80,
      },
    })
  })

  it('has the type that is given, or the one it brings itself', () => {
    expect(classifyChildError('', new Error('x'), 'resolution').type).toBe('resolution')
    expect(classifyChildError('', new DiscoveryError('a', 'x', 'circular'), 'resolution').type).toBe('circular')
    expect(isDiscoveryError(classifyChildError('', 1))).toBe(true)
    expect(isDiscoveryError({ name: 'DiscoveryError', file: '', type: 'other' })).toBe(false)
  })

  it.each<[unknown, string]>([
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [42, '42'],
    [Symbol('x'), 'Symbol(x)'],
    [{ message: 'no error' }, '[object Object]'],
    [Object.create(null), 'a value that cannot be shown as text'],
    [vm.runInNewContext('new RangeError("other realm")'), 'other realm'],
  ])('is made of whatever was thrown: %o', (thrown, message) => {
    expect(classifyChildError('a.ts', thrown).message).toBe(message)
  })

  it('is described through causes and several errors, and ends', () => {
    const inner = Object.assign(new Error('inner'), { code: 'EPERM', syscall: 'connect', address: '10.0.0.1' })
    const loop = new AggregateError([inner, 'text', null], 'outer', { cause: inner })
    inner.cause = loop
    const { raw } = classifyChildError('a.ts', loop)
    expect(raw).toMatchObject({
      message: 'outer',
      errors: [{ message: 'inner', code: 'EPERM' }, { text: 'text' }, { text: 'null' }],
    })
    expect(raw.errors[0].cause).toBeUndefined()
    let deep: unknown = 'end'
    for (let level = 0; level < 100; level += 1) {
      deep = new AggregateError(
        Array.from({ length: 20 }, () => new Error('x', { cause: deep })),
        'x',
        { cause: deep },
      )
    }
    expect(JSON.stringify(classifyChildError('a.ts', deep)).length).toBeLessThan(20_000)
  })

  it('is cut with a mark where it is long, and stays Unicode', () => {
    const { raw, message } = classifyChildError('a.ts', new Error('\u{1F600}'.repeat(10_000_000)))
    expect(message.length).toBe(64 * 1024)
    expect(message.endsWith('… [cut]')).toBe(true)
    expect((message as any).isWellFormed()).toBe(true)
    expect(raw.text.length).toBe(64 * 1024)
    expect(classifyChildError('a.ts', new Error('\ud800')).message).toBe('\ufffd')
  })

  it('is made of things that throw when they are looked at', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const hostile = Object.defineProperties(new Error('x'), {
      message: { get() { throw new Error('message') } }, // prettier-ignore
      code: { get() { throw new Error('code') } }, // prettier-ignore
      name: { get() { throw new Error('name') } }, // prettier-ignore
      cause: { value: proxy },
      errors: { value: proxy },
    })
    for (const thrown of [
      hostile,
      proxy,
      new AggregateError([proxy]),
      {
        toString: () => {
          throw hostile
        },
      },
    ])
      // prettier-ignore
      expect(classifyChildError('a.ts', thrown)).toMatchObject({ file: 'a.ts', type: 'import' })
  })
})
