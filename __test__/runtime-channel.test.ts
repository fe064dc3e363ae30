// The way out of the child, in real children with real descriptors: one frame, whole, whatever project code did to the
// realm it shares with the runtime, and a report where the process ends too early. What code can forge on purpose is not
// tested here: the parent treats every result as untrusted.

import path from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'

import { packageRoot } from './support/ordinary-user'
import { runDriver, type DriverOptions } from './support/entities/driver'
import { createWorkspace, type Workspace } from './support/workspace'

let workspace: Workspace

beforeEach(() => {
  workspace = createWorkspace()
})

const run = (options: Omit<DriverOptions, 'workspace'> = {}) => runDriver({ workspace, ...options })

const VALUE = { list: [1, 'é \u{1F600} \u2028', null, true], record: { __proto_: 1, toJSON: 'text', '': {} } }
const SET_VALUE = `globalThis.value = ${JSON.stringify(VALUE)}`

describe('a result', () => {
  it('is one frame, and the descriptor is closed after it', async () => {
    const result = await run({
      project: SET_VALUE,
      ending: `
        const first = channel.send({ kind: 'value', value })
        const second = channel.send({ kind: 'value', value: 2 })
        const { createRequire } = await import('node:module')
        try { createRequire('/')('node:fs').fstatSync(3); console.log('open') } catch { console.log(first, second) }
      `,
    })
    expect(result.errorOutput).toBe('')
    expect(result.payload).toEqual({ kind: 'value', value: VALUE })
    expect(result.output).toBe('true false\n')
    expect(result.exitCode).toBe(0)
  })

  it('goes by process.send without a descriptor, and as a line of output without either', async () => {
    const patch = `Object.prototype.toJSON = () => 'forged'; process.send = () => {}; console.log = () => {}`
    const [byMessage, byOutput] = await Promise.all([
      run({ way: 'message', project: `${SET_VALUE}; ${patch}` }),
      run({ way: 'output', project: `${SET_VALUE}; ${patch}` }),
    ])
    expect(byMessage.messages, byMessage.errorOutput).toEqual([{ kind: 'value', value: VALUE }])
    expect(byMessage.output).toBe('')
    expect(byOutput.output).toBe(`${JSON.stringify({ kind: 'value', value: VALUE })}\n`)
  })

  it('of 50 MB arrives whole, patched or not', async () => {
    const project = `
      globalThis.value = Array.from({ length: 270_000 }, (_, index) =>
        ({ form: 'declarable', name: 'entity' + index, props: { a: index, text: 'some text é'.repeat(10) } }))`
    for (const patch of ['', `; Array.prototype.toJSON = () => 'forged'`]) {
      const { bytes, payload, errorOutput } = await run({ project: project + patch })
      expect(errorOutput).toBe('')
      expect(bytes.length).toBeGreaterThan(50e6)
      expect(payload.value).toHaveLength(270_000)
      expect(payload.value[269_999].name).toBe('entity269999')
    }
  })

  it('that is not data is an error with the path, and another can be sent instead', async () => {
    const ending = `
      const failures = []
      for (const value of [{ a: [1n] }, (() => { const a = {}; a.b = { a }; return a })(), undefined]) {
        try { channel.send(value) } catch (error) { failures.push(error.message) }
      }
      channel.send(failures)
    `
    const { payload } = await run({ ending })
    expect(payload).toEqual([
      'The result cannot be sent: a[0]: a bigint',
      'The result cannot be sent: b.a: a circular reference',
      'The result cannot be sent: it is no value',
    ])
  })
})

// Each does to the realm what a polyfill, a lockdown, a test helper or a mistake does.
const patches: Record<string, string> = {
  'process.send and console': `process.send = () => {}; console.log = console.error = () => {}; process.stdout.write = () => true`,
  'JSON.stringify': `JSON.stringify = () => '"forged"'`,
  'the whole of JSON': `globalThis.JSON = { stringify: () => '"forged"', parse: () => 'forged' }`,
  'Object.prototype.toJSON': `Object.prototype.toJSON = () => 'forged'`,
  'a toJSON that cannot be taken away': `
    Object.defineProperty(Object.prototype, 'toJSON', { value: () => 'forged' }); Object.freeze(Object.prototype)`,
  'a toJSON of every primitive': `
    for (const one of [String, Number, Boolean, BigInt, Symbol]) one.prototype.toJSON = () => 'forged'`,
  'the prototype of arrays': `Object.setPrototypeOf(Array.prototype, { toJSON: () => 'forged', __proto__: Object.prototype })`,
  'methods of arrays': `
    for (const name of Object.getOwnPropertyNames(Array.prototype))
      if (name !== 'length' && name !== 'constructor') Array.prototype[name] = () => 'forged'`,
  iterating: `
    Array.prototype[Symbol.iterator] = String.prototype[Symbol.iterator] = function* () { yield 'forged' }
    Object.getPrototypeOf(new Map().entries()).next = () => ({ done: true })`,
  'methods of strings': `
    for (const name of Object.getOwnPropertyNames(String.prototype))
      if (name !== 'length' && name !== 'constructor') String.prototype[name] = () => 'forged'`,
  'methods of maps, sets and weak references': `
    for (const one of [Map, Set, WeakRef, WeakMap])
      for (const name of Object.getOwnPropertyNames(one.prototype))
        if (name !== 'size' && name !== 'constructor') one.prototype[name] = () => 'forged'`,
  'call, apply and bind': `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => () => 'forged'`,
  'functions of Object and Reflect': `
    for (const one of [Object, Reflect])
      for (const name of Object.getOwnPropertyNames(one)) if (typeof one[name] === 'function') one[name] = () => 'forged'`,
  'regular expressions': `RegExp.prototype.exec = () => null; RegExp.prototype.test = () => false`,
  'setters on Object.prototype': `
    for (const name of ['file', 'type', 'raw', 'code', 'cause', 'sourceFile', 'composite', 'arn', 'kind', 'value', 'entities', 'name', 'props', 'list', 'record', 'path'])
      Object.defineProperty(Object.prototype, name, { __proto__: null, set() {}, get() {}, configurable: true })`,
  'fields of every descriptor': `Object.prototype.enumerable = false; Object.prototype.writable = false`,
  fs: `
    for (const [name, { value, writable }] of Object.entries(Object.getOwnPropertyDescriptors(fs)))
      if (typeof value === 'function' && writable) fs[name] = () => 0`,
  'text encoding': `
    TextEncoder.prototype.encode = () => new Uint8Array(0); Buffer.from = () => Buffer.alloc(0)
    globalThis.TextEncoder = globalThis.Buffer = undefined`,
  globals: `
    for (const name of ['Map', 'Set', 'WeakRef', 'Array', 'Object', 'String', 'Error', 'TypeError', 'Uint8Array', 'Symbol',
      'Reflect', 'Atomics', 'Number', 'Function', 'process', 'Promise']) globalThis[name] = undefined`,
  'nothing, everything is frozen': `
    for (const one of [Object, Array, String, Map, Set, WeakRef, Function, Error, RegExp, Number]) {
      Object.freeze(one); Object.freeze(one.prototype)
    }
    Object.freeze(JSON); Object.freeze(Reflect); Object.freeze(console)`,
}

describe('project code that patched', () => {
  it.each(Object.keys(patches))('%s changes no value', async (name) => {
    const { payload, errorOutput } = await run({ project: `${SET_VALUE}; ${patches[name]}` })
    expect(errorOutput).toBe('')
    expect(payload).toEqual({ kind: 'value', value: VALUE })
  })

  it.each(Object.keys(patches))('%s changes no entities and no errors', async (name) => {
    const protocol = path.join(packageRoot, '__test__', 'support', 'entities', 'protocol.ts')
    const project = `
      import { createComposite, createProperty, createResource, Join, LexiconOutput, share } from ${JSON.stringify(protocol)}
      const bucket = createResource('Storage::Bucket', 'cloud', ['arn'])({ rules: [createProperty('Storage::Rule')({ days: 1 })] })
      const role = createResource('Access::Role')({ arn: bucket.arn, of: bucket, constructor: 1, text: new Join('', ['a', bucket.arn]) })
      const app = share(createComposite('App', () => ({ role }))(), { tags: ['shared'] })
      globalThis.exportsOfProject = { bucket, app, output: new LexiconOutput(bucket.arn, 'Arn') }
      globalThis.thrown = Object.assign(new Error('denied'), { code: 'EACCES', cause: 'why' })
      ${patches[name]}`
    const ending = `
      const entities = collectEntities([{ file: '/project/a.ts', exports: exportsOfProject }], '/project')
      resolveAttrRefs(entities)
      channel.send({
        entitySet: encodeEntitySet(entities),
        error: classifyChildError('/project/a.ts', thrown).toJSON(),
        checked: readData({ a: [1n] }).nonData,
        file: getProvenance(exportsOfProject.bucket).sourceFile,
      })`
    const [plain, patched] = await Promise.all([
      run({ project: project.replace(patches[name] as string, ''), ending }),
      run({ project, ending }),
    ])
    expect(plain.errorOutput).toBe('')
    expect(plain.payload.entitySet.entities).toHaveLength(3)
    expect(plain.payload.checked).toEqual([{ path: 'a[0]', found: 'a bigint' }])
    expect(patched.errorOutput).toBe('')
    expect(patched.payload).toEqual(plain.payload)
  })
})

describe('a process that ends before a result', () => {
  it.each<[string, string]>([
    ['by process.exit', `process.exit(0)`],
    ['by an exit without its listeners', `process.removeAllListeners(); process.exit(7)`],
    ['by process.reallyExit', `process.reallyExit(0)`],
    ['by an error', `setTimeout(() => { throw new Error('late') }, 1); await new Promise(() => {})`],
    ['by a rejection', `Promise.reject(new Error('late')); await new Promise(() => {})`],
    ['by waiting for what never comes', `await new Promise(() => {})`],
    ['by waiting, without its listeners', `process.removeAllListeners('exit'); await new Promise(() => {})`],
    ['by an exit, with another emit', `process.emit = () => false; process.exit(0)`],
    ['by an exit in an exit', `process.on('exit', () => process.exit(3)); process.exit(0)`],
    [
      'by an exit after an error in a listener',
      `process.prependListener('exit', () => { throw new Error('x') }); process.exit(0)`,
    ],
  ])('says so: %s', async (_how, project) => {
    const { payload } = await run({ project })
    expect(payload).toEqual({ kind: 'incomplete' })
  })

  it('says nothing twice', async () => {
    const { payload, exitCode } = await run({ ending: `channel.send(1); process.exit(4)` })
    expect(payload).toBe(1)
    expect(exitCode).toBe(4)
  })

  it('says on its error output what it could not say otherwise', async () => {
    const { payload, errorOutput } = await run({ project: `fs.closeSync(3); process.exit(0)` })
    expect(payload).toBeUndefined()
    expect(errorOutput).toContain('sallyport: EBADF')
  })

  it('can be ended by the channel when the project replaced process.exit', async () => {
    const { payload, exitCode } = await run({
      project: `process.exit = () => {}; setInterval(() => {}, 1000)`,
      ending: `channel.send(1); channel.exit(5)`,
    })
    expect(payload).toBe(1)
    expect(exitCode).toBe(5)
  })
})

describe('the environment', () => {
  it('holds nothing of the machinery when project code runs', async () => {
    const project = `globalThis.value = Object.keys(process.env).filter((name) => name.startsWith('SALLYPORT'))`
    const { payload } = await run({ project, environment: { SALLYPORT_CONTROL_FD: '9' } })
    expect(payload).toEqual({ kind: 'value', value: [] })
  })

  it.each(['', '-1', '3x', 'three', '99999999999'])('with a descriptor that is none is refused: %o', async (text) => {
    const { errorOutput, exitCode } = await run({ environment: { SALLYPORT_RESULT_FD: text } })
    expect(errorOutput).toContain('SALLYPORT_RESULT_FD must be the number of a descriptor')
    expect(exitCode).toBe(1)
  })
})

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const permissionSwitch =
  major > 23 || (major === 23 && minor >= 5) || (major === 22 && minor >= 13)
    ? '--permission'
    : '--experimental-permission'

describe('the restriction', () => {
  const ending = `
    try { channel.requireRestriction(); channel.send('restricted') }
    catch (error) { channel.send({ code: error.code, message: error.message }) }`

  it('is in force', async () => {
    const { payload, errorOutput } = await run({
      ending,
      nodeOptions: [permissionSwitch, `--allow-fs-read=${workspace.base}`],
    })
    expect(payload, errorOutput).toBe('restricted')
  })

  it.each<[string, string[], string]>([
    ['no switch', [], 'it has no permission model in force'],
    ['all to read', [permissionSwitch, '--allow-fs-read=*'], 'it permits fs.read'],
    ['all to write', [permissionSwitch, '--allow-fs-write=*'], 'it permits fs.write'],
    ['child processes', [permissionSwitch, '--allow-child-process'], 'it permits child'],
    ['workers', [permissionSwitch, '--allow-worker'], 'it permits worker'],
  ])('is not in force with %s', async (_what, nodeOptions, reason) => {
    const { payload } = await run({
      ending,
      nodeOptions: [...nodeOptions, `--allow-fs-read=${workspace.base}`].slice(nodeOptions.length === 0 ? 1 : 0),
    })
    expect(payload.message).toContain(reason)
    expect(payload.message).toContain('nodePath')
  })

  it('is not asked for under a caller’s own launcher', async () => {
    expect((await run({ ending, way: 'output' })).output).toBe('"restricted"\n')
  })
})

describe('boot.mjs', () => {
  it('imports the bundle at the word, restricted or not', async () => {
    const nodeOptions = [permissionSwitch, `--allow-fs-read=${workspace.base}`]
    for (const options of [[], nodeOptions]) {
      const { payload, errorOutput, exitCode } = await run({ boot: 'go', project: SET_VALUE, nodeOptions: options })
      expect(payload, errorOutput).toEqual({ kind: 'value', value: VALUE })
      expect(exitCode).toBe(0)
    }
  })

  it('ends with nothing said where the parent gives up', async () => {
    const { bytes, output, errorOutput, exitCode } = await run({ boot: 'give up' })
    expect([bytes.length, output, errorOutput, exitCode]).toEqual([0, '', '', 0])
  })

  it('leaves the error of a bundle to Node', async () => {
    const { errorOutput, exitCode, payload } = await run({
      boot: 'go',
      preparation: `throw new Error('broken bundle')`,
    })
    expect(errorOutput).toContain('broken bundle')
    expect(exitCode).toBe(1)
    expect(payload).toBeUndefined()
  })

  it('is started by sallyport only', async () => {
    const { errorOutput, exitCode } = await run({ boot: 'go', environment: { SALLYPORT_CONTROL_FD: 'x' } })
    expect(errorOutput).toContain('SALLYPORT_CONTROL_FD must be the number of a descriptor')
    expect(exitCode).toBe(1)
  })
})
