// decodeEntitySet against a wire that somebody made up: every wrong shape is a TypeError that names the place, no key
// reaches a prototype, and no depth reaches the end of the stack.

import { describe, expect, it } from 'vitest'

import { decodeEntitySet } from '../index.mjs'
import { DECLARABLE } from './support/entities/protocol'

type Wire = Record<string, any>

function declarable(fields: Wire = {}): Wire {
  return { form: 'declarable', name: 'a', lexicon: 'l', entityType: 't', markers: ['chant.declarable'], ...fields }
}

function output(ref: unknown): Wire {
  return { form: 'lexiconOutput', name: 'o', outputName: 'O', ref }
}

function withProps(props: unknown): unknown {
  return { entities: [declarable({ props })] }
}

function nested(levels: number, around: (inner: unknown) => unknown): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = around(value)
  return value
}

describe('a wire of the wrong shape', () => {
  it.each([undefined, null, 1, 'text', [], () => 1])('is refused as an argument: %o', (wire) => {
    expect(() => decodeEntitySet(wire as never)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_TYPE',
        message: expect.stringContaining('"wire"'),
      }),
    )
  })

  const intrinsic = { value: 1, refs: [] }
  it.each<[string, unknown, string]>([
    ['no list', {}, 'wire.entities'],
    ['a record for the list', { entities: {} }, 'wire.entities'],
    ['an inherited list', Object.create({ entities: [] }), 'wire.entities'],
    ['no entity', { entities: [null] }, 'wire.entities[0]'],
    ['a hole', { entities: new Array(1) }, 'wire.entities[0]'],
    ['no name', { entities: [declarable({ name: undefined })] }, 'wire.entities[0].name'],
    ['a name that is none', { entities: [declarable({ name: 1 })] }, 'wire.entities[0].name'],
    ['a name twice', { entities: [declarable(), declarable()] }, 'wire.entities[1].name'],
    ['another form', { entities: [declarable({ form: 'other' })] }, 'wire.entities[0].form'],
    ['no lexicon', { entities: [declarable({ lexicon: undefined })] }, 'wire.entities[0].lexicon'],
    ['no type', { entities: [declarable({ entityType: {} })] }, 'wire.entities[0].entityType'],
    ['a kind that is none', { entities: [declarable({ kind: null })] }, 'wire.entities[0].kind'],
    ['no markers', { entities: [declarable({ markers: undefined })] }, 'wire.entities[0].markers'],
    ['a marker that is none', { entities: [declarable({ markers: [1] })] }, 'wire.entities[0].markers[0]'],
    ['an output among declarables', { entities: [declarable({ markers: ['chant.lexiconOutput'] })] }, '[0].markers'],
    ['a child project', { entities: [declarable({ markers: ['chant.childProject'] })] }, '[0].markers'],
    ['extra that is no record', { entities: [declarable({ extra: [] })] }, 'wire.entities[0].extra'],
    ['extra props', { entities: [declarable({ extra: { props: 1 } })] }, 'wire.entities[0].extra.props'],
    ['no output name', { entities: [{ ...output(1), outputName: 1 }] }, 'wire.entities[0].outputName'],
    ['an output of nothing', { entities: [output(undefined)] }, 'wire.entities[0].ref'],
    ['an output of a list', { entities: [output([])] }, 'wire.entities[0].ref'],
    ['an output of itself', { entities: [output({ __entityRef: { entity: 'o' } })] }, 'wire.entities[0].ref'],
    [
      'an unknown reference',
      withProps([{ __attrRef: { entity: 'b', attribute: 'x' } }]),
      '[0].props[0].__attrRef.entity',
    ],
    ['a reference without attribute', withProps({ __attrRef: { entity: 'a' } }), '[0].props.__attrRef.attribute'],
    ['a reference that is no record', withProps({ x: { __attrRef: 1 } }), '[0].props.x.__attrRef'],
    ['an unknown entity', withProps({ 'x-y': { __entityRef: { entity: 'b' } } }), 'props["x-y"].__entityRef.entity'],
    ['an entity of every object', withProps({ __entityRef: { entity: 'constructor' } }), '__entityRef.entity'],
    ['a property without type', withProps({ __property: { lexicon: 'l' } }), '__property.entityType'],
    ['an intrinsic without value', withProps({ __intrinsic: { refs: [] } }), '__intrinsic.value'],
    ['an intrinsic without refs', withProps({ __intrinsic: { value: 1 } }), '__intrinsic.refs'],
    ['a wrong ref', withProps({ __intrinsic: { ...intrinsic, refs: [{ __entityRef: null }] } }), 'refs[0].__entityRef'],
    ['what JSON does not have', withProps({ x: Infinity }), '[0].props.x'],
    ['a function', withProps({ x: () => 1 }), '[0].props.x'],
    ['a bigint', withProps([1n]), '[0].props[0]'],
  ])('is refused by name: %s', (_what, wire, place) => {
    expect(() => decodeEntitySet(wire as never)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringContaining(place),
      }),
    )
  })

  it.each<[string, (inner: unknown) => unknown]>([
    ['lists', (inner) => [inner]],
    ['records', (inner) => ({ inner })],
    ['properties', (inner) => ({ __property: { lexicon: 'l', entityType: 't', props: inner } })],
    ['intrinsics', (inner) => ({ __intrinsic: { value: inner, refs: [] } })],
    ['references of intrinsics', (inner) => ({ __intrinsic: { value: 1, refs: [inner] } })],
  ])('is refused where it is nested without end: %s', (_what, around) => {
    const wire = withProps(nested(100_000, around))
    expect(() => decodeEntitySet(wire as never)).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringContaining('nested at most 500 levels deep'),
      }),
    )
  })
})

describe('a wire with keys of prototypes', () => {
  it('reaches no prototype', () => {
    const wire = JSON.parse(`{ "entities": [{
      "form": "declarable", "name": "__proto__", "lexicon": "l", "entityType": "t", "markers": ["chant.declarable"],
      "props": { "__proto__": { "polluted": 1 }, "deep": [{ "__proto__": null }] },
      "extra": { "__proto__": { "polluted": 2 }, "constructor": { "prototype": { "polluted": 3 } } },
      "__proto__": { "kind": "inherited" }
    }] }`)
    const entity = decodeEntitySet(wire).get('__proto__') as Record<PropertyKey, any>
    expect(Object.getPrototypeOf(entity)).toBe(Object.prototype)
    expect(Object.getOwnPropertyDescriptor(entity, '__proto__')?.value).toEqual({ polluted: 2 })
    expect(Object.getPrototypeOf(entity.props)).toBe(Object.prototype)
    expect(Object.getOwnPropertyDescriptor(entity.props, '__proto__')?.value).toEqual({ polluted: 1 })
    expect(Object.getOwnPropertyDescriptor(entity.props.deep[0], '__proto__')?.value).toBeNull()
    expect(entity.polluted).toBeUndefined()
    expect(entity.kind).toBeUndefined()
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect((Object as unknown as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('is not touched itself, and shares nothing with what it gave', () => {
    const wire = withProps({ list: [{ a: 1 }] }) as Wire
    const before = JSON.stringify(wire)
    const entity = decodeEntitySet(wire as never).get('a') as Wire
    entity.props.list[0].a = 2
    expect(JSON.stringify(wire)).toBe(before)
  })
})

describe('a wire of another codec', () => {
  it('needs no mark where the form says it', () => {
    const entity = decodeEntitySet({ entities: [declarable({ markers: [] })] } as never).get('a') as Wire
    expect((entity as Record<symbol, unknown>)[DECLARABLE]).toBe(true)
  })

  it('may have what is not known here', () => {
    expect(decodeEntitySet({ entities: [declarable({ later: 1 })], later: 2 } as never).size).toBe(1)
  })

  it('may be empty', () => {
    expect(decodeEntitySet({ entities: [] })).toEqual(new Map())
  })
})
