// Random entity sets as they stand on the wire, in the one form that encoding gives: fields that are undefined are
// absent, references are listed once. Every set is valid; a failing one is printed by fast-check.

import fc from 'fast-check'

// Few names, so that entities meet; among them those that prototypes have.
const names = ['bucket', 'role', 'roleArn', '__proto__', 'constructor', 'toJSON', 'a b', 'é', '']
const text = fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'binary', maxLength: 8 }))
const key = fc.oneof(fc.constantFrom(...names, 'props', 'toString', 'hasOwnProperty', '0'), fc.string({ maxLength: 4 }))
const wireKeys = ['__attrRef', '__entityRef', '__property', '__intrinsic']
/** -0 is what JSON does not carry. */
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value))
const scalar = fc.oneof(fc.constant(null), fc.boolean(), number, text)

function record(fields: fc.Arbitrary<unknown>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .array(fc.tuple(key, fields), { maxLength: 4 })
    .map((pairs) => Object.fromEntries(pairs.filter(([name]) => !wireKeys.includes(name))))
}

function once(references: unknown[]): unknown[] {
  return [...new Map(references.map((reference) => [JSON.stringify(reference), reference])).values()]
}

function values(entityNames: string[]): fc.Arbitrary<unknown> {
  const entity = fc.constantFrom(...entityNames)
  const attributeReference = fc.record({ __attrRef: fc.record({ entity, attribute: text }) })
  const entityReference = fc.record({ __entityRef: fc.record({ entity }) })
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      attributeReference,
      entityReference,
      fc.array(tie('value'), { maxLength: 4 }),
      record(tie('value')),
      tie('property'),
      tie('intrinsic'),
    ),
    property: fc.record({
      __property: fc.record(
        { lexicon: text, entityType: text, props: tie('value') },
        { requiredKeys: ['lexicon', 'entityType'] },
      ),
    }),
    intrinsic: fc.record({
      __intrinsic: fc.record(
        {
          value: tie('value'),
          yaml: tie('value'),
          refs: fc.array(fc.oneof(attributeReference, entityReference), { maxLength: 3 }).map(once),
        },
        { requiredKeys: ['value', 'refs'] },
      ),
    }),
  })).value
}

function sources(entityNames: string[], value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.oneof(fc.boolean(), number, text),
    fc.record({ __attrRef: fc.record({ entity: fc.constantFrom(...entityNames), attribute: text }) }),
    fc.record({ __intrinsic: fc.record({ value, refs: fc.constant([]) }) }),
  )
}

function entities(entityNames: string[]): fc.Arbitrary<unknown[]> {
  const value = values(entityNames)
  const place = ['lexicon', 'entityType', 'kind', 'props', 'attributes']
  const extra = record(value)
    .map((fields) => Object.fromEntries(Object.entries(fields).filter(([name]) => !place.includes(name))))
    .filter((fields) => Object.keys(fields).length > 0)
  const markers = fc.constantFrom(
    ['chant.declarable'],
    ['chant.declarable', 'chant.own'],
    ['other', 'chant.declarable'],
  )
  const declarable = fc.record(
    {
      form: fc.constant('declarable'),
      lexicon: text,
      entityType: text,
      markers,
      kind: fc.constantFrom('resource', 'property', 'output'),
      props: value,
      attributes: value,
      extra,
    },
    { requiredKeys: ['form', 'lexicon', 'entityType', 'markers'] },
  )
  const output = fc.record({
    form: fc.constant('lexiconOutput'),
    outputName: text,
    ref: sources(entityNames, value),
  })
  return fc
    .tuple(...entityNames.map(() => fc.oneof({ weight: 4, arbitrary: declarable }, { weight: 1, arbitrary: output })))
    .map((list) => list.map((entity, index) => ({ ...entity, name: entityNames[index] })))
}

export const entitySets: fc.Arbitrary<{ entities: any[] }> = fc
  .uniqueArray(text, { minLength: 1, maxLength: 5 })
  .chain(entities)
  .map((list) => ({ entities: list }))
