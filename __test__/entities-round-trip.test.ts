// Entity sets from objects to the wire and back: what decoding gives is what was encoded, by every rule of
// contract/sandbox.md, "Entity protocol", and encoding it again gives the same wire, for random sets too.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { decodeEntitySet, encodeEntitySet } from '../index.mjs'
import {
  createChildProject,
  createProperty,
  createResource,
  DECLARABLE,
  INTRINSIC,
  Join,
  LEXICON_OUTPUT,
  LexiconOutput,
  LOGICAL_NAME,
  type Entity,
} from './support/entities/protocol'
import { runtime } from './support/entities/runtime'
import { entitySets } from './support/entities/wires'
import { rounds } from './support/effort'

const { collectEntities, resolveAttrRefs } = runtime
const bucketOf = createResource('Storage::Bucket', 'cloud', ['arn', 'url'])
const roleOf = createResource('Access::Role')
const ruleOf = createProperty('Storage::Rule')

function resolved(entities: Record<string, Entity>): Map<string, object> {
  const map = collectEntities([{ file: '/project/main.ts', exports: entities }], '/project')
  resolveAttrRefs(map)
  return map
}

/** Through text, as the wire travels. */
function travel(entities: Map<string, object>): Map<string, Entity> {
  return decodeEntitySet(JSON.parse(JSON.stringify(encodeEntitySet(entities)))) as Map<string, Entity>
}

function roundTrip(entities: Record<string, Entity>): Map<string, Entity> {
  return travel(resolved(entities))
}

function propsOf(entities: Map<string, Entity>, name: string): any {
  return entities.get(name)?.props
}

describe('the wire', () => {
  it('has the form of the contract', () => {
    const bucket = bucketOf({ name: 'logs', rules: [ruleOf({ days: 3 }), undefined], none: undefined, nothing: null })
    const role = roleOf({ of: bucket, arn: bucket.arn, text: new Join('-', ['a', bucket.url, bucket], true) })
    const arn = new LexiconOutput(bucket.arn, 'LogsArn')
    role[Symbol.for('chant.own')] = true

    expect(encodeEntitySet(resolved({ arn, bucket, role }))).toEqual({
      entities: [
        { form: 'lexiconOutput', name: 'arn', outputName: 'LogsArn', ref: reference('bucket', 'arn') },
        {
          form: 'declarable',
          name: 'bucket',
          lexicon: 'cloud',
          entityType: 'Storage::Bucket',
          kind: 'resource',
          props: {
            name: 'logs',
            rules: [{ __property: { lexicon: 'cloud', entityType: 'Storage::Rule', props: { days: 3 } } }, null],
            nothing: null,
          },
          attributes: { arn: 'arn', url: 'url' },
          markers: ['chant.declarable'],
          extra: { arn: reference('bucket', 'arn'), url: reference('bucket', 'url') },
        },
        {
          form: 'declarable',
          name: 'role',
          lexicon: 'cloud',
          entityType: 'Access::Role',
          kind: 'resource',
          props: {
            of: { __entityRef: { entity: 'bucket' } },
            arn: reference('bucket', 'arn'),
            text: {
              __intrinsic: {
                value: { 'Fn::Join': ['-', ['a', reference('bucket', 'url'), entity('bucket')]] },
                yaml: { tag: '!Join', value: ['-', ['a', reference('bucket', 'url'), entity('bucket')]] },
                refs: [reference('bucket', 'url'), entity('bucket')],
              },
            },
          },
          attributes: {},
          markers: ['chant.declarable', 'chant.own'],
        },
      ],
    })
  })

  it('takes holes for null and leaves fields out that are undefined', () => {
    // eslint-disable-next-line no-sparse-arrays
    const entities = resolved({ bucket: bucketOf({ list: [1, , undefined, null], gone: undefined }) })
    expect(encodeEntitySet(entities).entities[0]).toMatchObject({ props: { list: [1, null, null, null] } })
  })

  it('takes a reference that is data already, where its entity is in the set', () => {
    const written = { __attrRef: { entity: 'bucket', attribute: 'arn' } }
    const decoded = roundTrip({ bucket: bucketOf(), role: roleOf({ arn: written }) })
    expect(propsOf(decoded, 'role').arn.parent.deref()).toBe(decoded.get('bucket'))
  })

  it('uses an embedded entity of two names by its first', () => {
    const bucket = bucketOf()
    const wire = encodeEntitySet(resolved({ a: bucket, b: bucket, role: roleOf({ bucket }) }))
    expect(wire.entities[2]).toMatchObject({ props: { bucket: entity('a') } })
  })
})

describe('what is no data', () => {
  class Region {}
  const cyclic: Record<string, unknown> = {}
  cyclic.list = [cyclic]
  const rule = ruleOf({})
  ;(rule as Entity).props.self = rule
  const endless = { [INTRINSIC]: true, toJSON: (): unknown => ({ again: { ...endless } }) }

  it.each<[string, unknown, string, string]>([
    ['a function', () => 1, 'bucket.props.x', 'a function'],
    ['a Date', new Date(0), 'bucket.props.x', 'a Date'],
    ['a Map', new Map(), 'bucket.props.x', 'a Map'],
    ['a Set in a list', [new Set()], 'bucket.props.x[0]', 'a Set'],
    ['a RegExp', { 'a-b': /x/ }, 'bucket.props.x["a-b"]', 'a RegExp'],
    ['a Promise', Promise.resolve(), 'bucket.props.x', 'a Promise'],
    ['an Error', new RangeError('x'), 'bucket.props.x', 'an Error'],
    ['NaN', NaN, 'bucket.props.x', 'NaN'],
    ['infinity', -Infinity, 'bucket.props.x', 'a non-finite number'],
    ['a bigint', 1n, 'bucket.props.x', 'a bigint'],
    ['a symbol', Symbol('x'), 'bucket.props.x', 'a symbol'],
    ['an instance', new Region(), 'bucket.props.x', 'a Region instance'],
    ['a cycle of plain values', cyclic, 'bucket.props.x.list[0]', 'a circular reference'],
    ['a cycle of properties', rule, 'bucket.props.x.props.self', 'a circular reference'],
    ['a child project', createChildProject(), 'bucket.props.x', 'a child project'],
    ['an intrinsic without toJSON()', { [INTRINSIC]: true }, 'bucket.props.x', 'an intrinsic without toJSON()'],
    ['inside an intrinsic', new Join('', [NaN]), `bucket.props.x.toJSON()["Fn::Join"][1][0]`, 'NaN'],
    [
      'a record that would be taken for something else',
      { __entityRef: { entity: 'bucket' } },
      'bucket.props.x',
      'a record with the reserved key "__entityRef" alone',
    ],
  ])('%s is named by its path and refused', (_what, value, path, found) => {
    const entities = resolved({ bucket: bucketOf({ x: value }) })
    expect(() => encodeEntitySet(entities)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_VALUE',
        nonData: [{ path, found }],
        message: expect.stringContaining(`\n  ${path}: ${found}`),
      }),
    )
  })

  it('is listed as a whole', () => {
    const bucket = bucketOf({ a: () => 1, b: { c: 1n } })
    bucket.extra = new Date(0)
    const entities = resolved({ bucket, other: createChildProject() })
    expect(() => encodeEntitySet(entities)).toThrow(
      expect.objectContaining({
        nonData: [
          { path: 'bucket.props.a', found: 'a function' },
          { path: 'bucket.props.b.c', found: 'a bigint' },
          { path: 'bucket.extra', found: 'a Date' },
          { path: 'other', found: 'a child project' },
        ],
      }),
    )
  })

  it('is nesting without end, which is no overflow of the stack', () => {
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level += 1) deep = { deep }
    for (const value of [deep, endless, new Join('', [deep])]) {
      expect(() => encodeEntitySet(resolved({ bucket: bucketOf({ value }) }))).toThrow(
        /nested more than 500 levels deep/,
      )
    }
  })

  it('is a reference without a name, or to something else', () => {
    const hidden = bucketOf()
    const entities = resolved({ role: roleOf({ arn: hidden.arn }) })
    expect(() => encodeEntitySet(entities)).toThrow(/role\.props\.arn: a reference to the attribute "arn" of something/)
    hidden.arn._setLogicalName('elsewhere')
    expect(() => encodeEntitySet(entities)).toThrow(/role\.props\.arn: a reference to "elsewhere"/)
    const output = new LexiconOutput(hidden.arn, 'Arn')
    expect(() => encodeEntitySet(resolved({ output }))).toThrow(/output: an output of something/)
  })

  it('names the path where toJSON() itself fails, with the cause', () => {
    const cause = new Error('no value')
    const broken = {
      [INTRINSIC]: true,
      toJSON() {
        throw cause
      },
    }
    expect(() => encodeEntitySet(resolved({ bucket: bucketOf({ broken }) }))).toThrow(
      expect.objectContaining({
        message: 'Cannot encode the entities: bucket.props.broken.toJSON() failed: no value',
        cause,
      }),
    )
  })

  it.each([
    [undefined, 'ERR_INVALID_ARG_TYPE'],
    [{}, 'ERR_INVALID_ARG_TYPE'],
    [new Map([['a', 1]]), 'ERR_INVALID_ARG_TYPE'],
    [new Map([[1, {}]]), 'ERR_INVALID_ARG_TYPE'],
    [new Map([['a', {}]]), 'ERR_INVALID_ARG_VALUE'],
  ])('is an argument like %o', (entities, code) => {
    expect(() => encodeEntitySet(entities as never)).toThrow(expect.objectContaining({ code }))
  })
})

describe('decoding', () => {
  it('gives marks, and fields that enumeration does not show', () => {
    const bucket = roundTrip({ bucket: bucketOf({ name: 'logs' }) }).get('bucket')!
    expect(bucket[DECLARABLE]).toBe(true)
    expect(bucket[LOGICAL_NAME]).toBe('bucket')
    expect(bucket).toMatchObject({ lexicon: 'cloud', entityType: 'Storage::Bucket', kind: 'resource' })
    expect(bucket.props).toEqual({ name: 'logs' })
    expect(bucket.attributes).toEqual({ arn: 'arn', url: 'url' })
    expect(Object.keys(bucket)).toEqual(['arn', 'url'])
    expect(
      Object.getOwnPropertySymbols(bucket).some((key) => Object.prototype.propertyIsEnumerable.call(bucket, key)),
    ).toBe(false)
  })

  it('gives references with live parents, the same object wherever it stands', () => {
    const bucket = bucketOf()
    const decoded = roundTrip({ bucket, role: roleOf({ arn: bucket.arn }) })
    const { arn } = decoded.get('bucket')!
    expect(propsOf(decoded, 'role').arn).toBe(arn)
    expect(arn.parent).toBeInstanceOf(WeakRef)
    expect(arn.parent.deref()).toBe(decoded.get('bucket'))
    expect(arn.attribute).toBe('arn')
    expect(arn[INTRINSIC]).toBe(true)
    expect(arn.getLogicalName()).toBe('bucket')
    expect(JSON.stringify(arn)).toBe('{"__attrRef":{"entity":"bucket","attribute":"arn"}}')
    arn._setLogicalName('renamed')
    expect(arn.getLogicalName()).toBe('renamed')
    resolveAttrRefs(decoded)
    expect(arn.getLogicalName()).toBe('bucket')
  })

  it('gives an embedded entity as the same object, cycles too', () => {
    const left = bucketOf({})
    const right = bucketOf({ left, list: [left] })
    left.props.right = right
    left.props.self = left
    const decoded = roundTrip({ left, right })
    expect(propsOf(decoded, 'left').right).toBe(decoded.get('right'))
    expect(propsOf(decoded, 'left').self).toBe(decoded.get('left'))
    expect(propsOf(decoded, 'right').list[0]).toBe(decoded.get('left'))
  })

  it('gives a property of the kind `property`', () => {
    const { rule } = propsOf(roundTrip({ bucket: bucketOf({ rule: ruleOf({ days: 1 }) }) }), 'bucket')
    expect(rule[DECLARABLE]).toBe(true)
    expect(rule).toMatchObject({ lexicon: 'cloud', entityType: 'Storage::Rule', kind: 'property', props: { days: 1 } })
    expect(Object.keys(rule)).toEqual([])
  })

  it('gives intrinsics that answer as before and carry what they refer to', () => {
    const bucket = bucketOf()
    const outer = new Join(':', [new Join('-', ['x', bucket.arn], true), bucket])
    const decoded = roundTrip({ bucket, role: roleOf({ outer, inner: outer.parts[0] }) })
    const { outer: live, inner } = propsOf(decoded, 'role')
    expect(live[INTRINSIC]).toBe(true)
    expect(live.toYAML).toBeUndefined()
    expect(JSON.stringify(live)).toBe(JSON.stringify(outer))
    expect(inner.toJSON()).toEqual({ 'Fn::Join': ['-', ['x', reference('bucket', 'arn')]] })
    expect(inner.toYAML()).toEqual({ tag: '!Join', value: ['-', ['x', reference('bucket', 'arn')]] })
    expect(live.__chantWireRefs).toEqual([decoded.get('bucket')!.arn, decoded.get('bucket')])
    expect(live.__chantWireRefs[0]).toBe(decoded.get('bucket')!.arn)
    expect(Object.keys(live)).toEqual(['__chantWireRefs'])
  })

  it('gives outputs of a reference, an intrinsic and a scalar', () => {
    const bucket = bucketOf()
    const decoded = roundTrip({
      bucket,
      ofReference: new LexiconOutput(bucket.arn, 'Arn'),
      ofIntrinsic: new LexiconOutput(new Join('', [bucket.url]), 'Url'),
      ofScalar: new LexiconOutput(false, 'Flag'),
    })
    const ofReference = decoded.get('ofReference')!
    expect(ofReference[LEXICON_OUTPUT]).toBe(true)
    expect(ofReference[INTRINSIC]).toBe(true)
    expect(ofReference).toMatchObject({
      outputName: 'Arn',
      sourceLexicon: 'cloud',
      sourceEntity: 'bucket',
      sourceAttribute: 'arn',
    })
    expect(ofReference._sourceParent.deref()).toBe(decoded.get('bucket'))
    expect(ofReference.getOutputValue()).toEqual({ 'Fn::GetAtt': ['bucket', 'arn'] })
    expect(JSON.stringify(ofReference)).toBe('{"chant::output":"Arn"}')
    ofReference._setSourceEntity('renamed')
    expect(ofReference.sourceEntity).toBe('renamed')

    const ofIntrinsic = decoded.get('ofIntrinsic')!
    expect(ofIntrinsic.getOutputValue()).toEqual({ 'Fn::Join': ['', [reference('bucket', 'url')]] })
    expect(ofIntrinsic).toMatchObject({ sourceLexicon: 'cloud', _sourceParent: null })
    expect(decoded.get('ofScalar')!.getOutputValue()).toBe(false)
  })

  it('keeps what has the name of something of every object', () => {
    const props = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": 2}, "toString": "x"}')
    const decoded = propsOf(roundTrip({ bucket: bucketOf(props) }), 'bucket')
    expect(JSON.stringify(decoded)).toBe(JSON.stringify(props))
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype)
    expect(({} as Entity).polluted).toBeUndefined()
  })

  it('goes as deep as encoding goes', () => {
    let value: unknown = 1
    for (let level = 0; level < 490; level += 2) value = ruleOf({ value })
    const decoded = propsOf(roundTrip({ bucket: bucketOf({ value }) }), 'bucket')
    expect(decoded.value.props.value.kind).toBe('property')
  })
})

describe('for every set', () => {
  it('encoding what was decoded is the identity', () => {
    fc.assert(
      fc.property(entitySets, (wire) => {
        const given = JSON.parse(JSON.stringify(wire))
        const again = encodeEntitySet(decodeEntitySet(given))
        expect(JSON.parse(JSON.stringify(again))).toEqual(given)
        expect(travel(decodeEntitySet(given)).size).toBe(wire.entities.length)
      }),
      { numRuns: rounds(1000, 200) },
    )
  })

  it('nothing that is wrong in it gets through as anything but a named error', () => {
    fc.assert(
      fc.property(entitySets, fc.nat(), fc.anything({ maxDepth: 2 }), (wire, place, junk) => {
        const text = JSON.stringify(wire)
        const places = [...text.matchAll(/[[:,](?=["{[0-9tfn-])/g)]
        const at = places[place % places.length]?.index ?? 0
        let broken: unknown
        try {
          broken = JSON.parse(`${text.slice(0, at + 1)}${JSON.stringify(junk) ?? 'null'}${text.slice(at + 1)}`)
        } catch {
          // No JSON any more: the frame's reader refuses that before anything is decoded.
          broken = junk
        }
        try {
          decodeEntitySet(broken as never)
        } catch (error) {
          expect(error).toMatchObject({
            name: 'TypeError',
            code: expect.stringMatching(/^ERR_INVALID_ARG_(TYPE|VALUE)$/),
          })
        }
      }),
      { numRuns: rounds(1000, 200) },
    )
  })
})

function reference(name: string, attribute: string): unknown {
  return { __attrRef: { entity: name, attribute } }
}

function entity(name: string): unknown {
  return { __entityRef: { entity: name } }
}
