// What is found among a project's exports and what it is called, and how references get their names: the rules of
// contract/sandbox.md, "Entity protocol", Composite, Collect and Resolve.

import v8 from 'node:v8'
import vm from 'node:vm'
import { describe, expect, it } from 'vitest'

import {
  AttributeReference,
  createComposite,
  createResource,
  Join,
  LexiconOutput,
  LOGICAL_NAME,
  PROVENANCE,
  share,
  type Entity,
} from './support/entities/protocol'
import { runtime } from './support/entities/runtime'

const { collectEntities, getProvenance, resolveAttrRefs, stampProvenance } = runtime
const bucketOf = createResource('Storage::Bucket', 'cloud', ['arn'])

const root = '/project'

function collect(files: Record<string, object>): Map<string, any> {
  const modules = Object.entries(files).map(([file, exports]) => ({ file: `${root}/${file}`, exports }))
  return collectEntities(modules, root)
}

function namesIn(files: Record<string, object>): string[] {
  return [...collect(files).keys()]
}

function catchError(run: () => unknown): any {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('the names of what is exported', () => {
  it('are those of the exports, in the order of the modules and of localeCompare', () => {
    const exports = {
      b: bucketOf(),
      a: bucketOf(),
      B: bucketOf(),
      A: bucketOf(),
      é: bucketOf(),
      f: bucketOf(),
      _: bucketOf(),
    }
    const sorted = Object.keys(exports).sort((left, right) => left.localeCompare(right))
    expect(namesIn({ 'z.ts': { z: bucketOf() }, 'a.ts': exports })).toEqual(['z', ...sorted])
    expect(sorted).not.toEqual(Object.keys(exports).sort())
  })

  it.each([
    ['storage.ts', 'storage'],
    ['storage.op.ts', 'storage'],
    ['deep/storage.op', 'storage'],
    ['storage.js', 'storage.js'],
    ['a.b.ts', 'a.b'],
  ])('is that of the file for a default export: %s', (file, name) => {
    expect(namesIn({ [file]: { default: bucketOf() } })).toEqual([name])
  })

  it('have the index for a list', () => {
    const pair = createComposite('Pair', () => ({ left: bucketOf(), right: bucketOf() }))
    const list = [bucketOf(), 'text', pair(), [bucketOf()], new LexiconOutput('x', 'X'), bucketOf()]
    expect(namesIn({ 'a.ts': { list } })).toEqual(['list_0', 'list_2Left', 'list_2Right', 'list_5'])
  })

  it('are of entities alone', () => {
    const bucket = bucketOf()
    const passed = {
      text: 'x',
      none: null,
      nothing: undefined,
      ref: bucket.arn,
      join: new Join('', []),
      maker: bucketOf,
    }
    expect(namesIn({ 'a.ts': { ...passed, output: new LexiconOutput(bucket.arn, 'X') } })).toEqual(['output'])
  })

  it('come from a namespace without a prototype too', () => {
    expect(namesIn({ 'a.ts': Object.assign(Object.create(null), { bucket: bucketOf() }) })).toEqual(['bucket'])
  })
})

describe('a composite', () => {
  const inner = createComposite('Inner', () => ({ leaf: bucketOf({ tags: ['own'] }) }))
  const outer = createComposite('Outer', () => ({
    bucket: bucketOf({ tags: ['own'], size: 1, gone: undefined }),
    inner: inner(),
    output: new LexiconOutput('x', 'X'),
    text: 'passed over',
  }))

  it('is expanded into its members, nested ones likewise', () => {
    const entities = collect({ 'a.ts': { app: outer() } })
    expect([...entities.keys()]).toEqual(['appBucket', 'appInnerLeaf', 'appOutput'])
    expect(getProvenance(entities.get('appBucket'))).toEqual({
      sourceFile: '/project/a.ts',
      composite: 'Outer',
      compositeInstance: 'app',
    })
    expect(getProvenance(entities.get('appInnerLeaf'))).toEqual({
      sourceFile: '/project/a.ts',
      composite: 'Inner',
      compositeInstance: 'appInner',
    })
  })

  it('shares props with every member: shared first, lists joined, own values win, undefined dropped', () => {
    const app = share(outer(), { tags: ['shared'], size: 2, region: 'north', none: undefined })
    const entities = collect({ 'a.ts': { app } })
    const { props } = entities.get('appBucket')
    expect(props).toEqual({ tags: ['shared', 'own'], size: 1, region: 'north' })
    expect(Object.keys(props)).toEqual(['tags', 'size', 'region'])
    expect(Object.keys(entities.get('appBucket'))).toEqual(['arn'])
    expect(entities.get('appInnerLeaf').props).toEqual({ tags: ['shared', 'own'], size: 2, region: 'north' })
  })

  it('adds what is shared further in after what is shared further out', () => {
    const app = createComposite('App', () => ({ inner: share(inner(), { tags: ['inner'], size: 1 }) }))
    const entities = collect({ 'a.ts': { app: share(app(), { tags: ['outer'], size: 2 }) } })
    expect(entities.get('appInnerLeaf').props).toEqual({ tags: ['outer', 'inner', 'own'], size: 1 })
  })

  it('is the same when it is expanded twice', () => {
    const app = share(outer(), { tags: ['shared'] })
    collect({ 'a.ts': { app } })
    const entities = collect({ 'a.ts': { app }, 'b.ts': { app } })
    expect(entities.size).toBe(3)
    expect(entities.get('appBucket').props.tags).toEqual(['shared', 'own'])
  })

  it('that holds itself, or no members, is an error of its file', () => {
    const loop = outer()
    loop.members.loop = loop
    expect(catchError(() => collect({ 'a.ts': { loop } }))).toMatchObject({
      name: 'DiscoveryError',
      file: '/project/a.ts',
      type: 'resolution',
      message: 'The composite "loopLoop" is a member of itself',
    })
    const empty = outer()
    empty.members = undefined
    expect(catchError(() => collect({ 'a.ts': { empty } })).message).toBe(
      'The composite "empty" has no record of members',
    )
  })
})

describe('one name for two objects', () => {
  it('is an error in one directory, of the file that comes second', () => {
    const error = catchError(() => collect({ 'a.ts': { bucket: bucketOf() }, 'b.ts': { bucket: bucketOf() } }))
    expect(error.toJSON()).toEqual({
      name: 'DiscoveryError',
      file: '/project/b.ts',
      message: 'Duplicate export name "bucket" found',
      type: 'resolution',
    })
  })

  it('is fine for the same object, which keeps its first file', () => {
    const bucket = bucketOf()
    const entities = collect({ 'a/a.ts': { bucket }, 'a/b.ts': { bucket }, 'b/index.ts': { bucket } })
    expect([...entities]).toEqual([['bucket', bucket]])
    expect(getProvenance(bucket)?.sourceFile).toBe('/project/a/a.ts')
  })

  it('is told apart by the directory', () => {
    expect(
      namesIn({
        'infra/eu-west.1/a.ts': { bucket: bucketOf(), only: bucketOf() },
        'infra/us/a.ts': { bucket: bucketOf() },
        'main.ts': { bucket: bucketOf() },
      }),
    ).toEqual(['InfraEuWest1bucket', 'InfraUsbucket', 'bucket', 'only'])
  })

  it('is an error where the directories make one prefix, and where the prefix makes a name that is taken', () => {
    const twice = { 'a-b/x.ts': { bucket: bucketOf() }, 'a/b/x.ts': { bucket: bucketOf() } }
    expect(catchError(() => collect(twice)).message).toBe('Duplicate export name "ABbucket" found')
    const taken = {
      'x.ts': { Abucket: bucketOf() },
      'a/x.ts': { bucket: bucketOf() },
      'b/x.ts': { bucket: bucketOf() },
    }
    expect(catchError(() => collect(taken))).toMatchObject({
      file: '/project/a/x.ts',
      message: 'Duplicate export name "Abucket" found',
    })
  })
})

describe('an export that cannot be looked at', () => {
  it.each([
    ['throws', { get bucket() { throw new Error('not yet') } }, 'not yet'], // prettier-ignore
    ['throws no error', { get bucket() { throw 'text' } }, 'text'], // prettier-ignore
    ['is frozen', { bucket: Object.freeze(bucketOf()) }, 'Cannot note where an entity was declared'],
  ])('is an error of its file: it %s', (_what, exports, message) => {
    const error = catchError(() => collect({ 'a.ts': exports }))
    expect(error).toMatchObject({ name: 'DiscoveryError', file: '/project/a.ts', type: 'resolution' })
    expect(error.message).toContain(message)
  })
})

describe('provenance', () => {
  it('is not enumerable, and the first writer of a field wins', () => {
    const bucket = bucketOf()
    stampProvenance(bucket, { composite: 'First' })
    stampProvenance(bucket, { composite: 'Second', sourceFile: 'a.ts' })
    expect(getProvenance(bucket)).toEqual({ composite: 'First', sourceFile: 'a.ts' })
    expect(Object.getOwnPropertyDescriptor(bucket, PROVENANCE)?.enumerable).toBe(false)
  })

  it.each([undefined, null, 1, {}])('is nothing for %o', (value) => {
    expect(getProvenance(value)).toBeUndefined()
  })
})

describe('resolving', () => {
  it('gives every entity its name and every reference that of its parent', () => {
    const bucket = bucketOf()
    const role: Entity = createResource('Access::Role')()
    role.policy = bucket.arn
    const output = new LexiconOutput(bucket.arn, 'Arn')
    const entities = collect({ 'a.ts': { bucket, role, output } })
    resolveAttrRefs(entities)
    expect(bucket[LOGICAL_NAME]).toBe('bucket')
    expect((output as unknown as Entity)[LOGICAL_NAME]).toBe('output')
    expect(Object.getOwnPropertyDescriptor(role, LOGICAL_NAME)?.enumerable).toBe(false)
    expect(role.policy.getLogicalName()).toBe('bucket')
    expect(output.getOutputValue()).toEqual({ 'Fn::GetAtt': ['bucket', 'arn'] })
    resolveAttrRefs(entities)
  })

  it('goes by the first name of an entity that has two', () => {
    const bucket = bucketOf()
    resolveAttrRefs(collect({ 'a.ts': { b: bucket, a: bucket } }))
    expect(bucket.arn.getLogicalName()).toBe('a')
    expect(bucket[LOGICAL_NAME]).toBe('a')
  })

  it('fails for a parent that is not collected, naming entity, field and file', () => {
    const role: Entity = createResource('Access::Role')()
    const hidden = bucketOf()
    role.policy = hidden.arn
    const error = catchError(() => resolveAttrRefs(collect({ 'a.ts': { role } })))
    expect(error.toJSON()).toEqual({
      name: 'DiscoveryError',
      file: '/project/a.ts',
      message: 'Cannot resolve AttrRef on "role.policy": parent entity not found in entities collection',
      type: 'resolution',
    })
    expect(hidden.arn.parent.deref()).toBe(hidden)
  })

  it('fails for a parent that has been collected as garbage', async () => {
    const role: Entity = createResource('Access::Role')()
    role.policy = new AttributeReference({}, 'arn')
    v8.setFlagsFromString('--expose-gc')
    const collectGarbage = vm.runInNewContext('gc') as () => void
    // A WeakRef holds its target until the job that made it is over.
    await new Promise(setImmediate)
    collectGarbage()
    const error = catchError(() => resolveAttrRefs(collect({ 'a.ts': { role } })))
    expect(error.message).toBe('Cannot resolve AttrRef on "role.policy": parent has been garbage collected')
  })
})
