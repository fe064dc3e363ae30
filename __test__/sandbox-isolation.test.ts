// What project source can and cannot do in a sandboxed run, and what the options of a run do (contract/sandbox.md,
// "runFallbackFilesSandboxed" and "Launch"): the boundary is asked by the project files themselves, and answers in the
// errors of the result.

import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it, vi } from 'vitest'

import { evaluateConfigSandboxed, runFallbackFilesSandboxed, type SandboxOptions } from '../index.mjs'
import { refusal } from './support/refusal'
import {
  bundlesIn,
  declaring,
  errorOf,
  GOOD,
  namesOf,
  processesOf,
  propsOf,
  protocolSource,
  sandboxProject,
  temporary,
} from './support/sandbox'

const SECRET = 'hunter2-hunter2'

function denied(operation: string, resource: string, file: string): string {
  return `sandbox denied ${operation} (${resource}): "${file}" attempted an operation outside the sandbox's allowlist`
}

describe('reading outside of the project', () => {
  const ways: [string, (target: string) => string][] = [
    ['fs.readFileSync', (target) => `import fs from 'node:fs'; export const text = fs.readFileSync(${target}, 'utf8')`],
    [
      'a builtin without its prefix',
      (target) => `import { openSync } from 'fs'; export const fd = openSync(${target}, 'r')`,
    ],
    [
      'fs.promises',
      (target) => `import { readFile } from 'node:fs/promises'; export const text = await readFile(${target})`,
    ],
    [
      'a callback',
      (target) =>
        `import fs from 'node:fs'; await new Promise((yes, no) => fs.readFile(${target}, (e, d) => e ? no(e) : yes(d)))`,
    ],
    [
      'a stream',
      (target) =>
        `import fs from 'node:fs'; for await (const part of fs.createReadStream(${target})) console.log(String(part))`,
    ],
    ['fs.statSync', (target) => `import fs from 'node:fs'; export const size = fs.statSync(${target}).size`],
    [
      'require at run time',
      (target) =>
        `import { createRequire } from 'node:module'; export const x = createRequire(import.meta.url)(${target})`,
    ],
    [
      'import() at run time',
      (target) => `const target = ${target}; export const x = await import(target, { with: { type: 'json' } })`,
    ],
  ]

  it.each(ways)('by %s is denied, with file and operation', async (_way, source) => {
    const project = sandboxProject({ 'good.ts': GOOD }, { around: { 'outside/secret.json': { json: SECRET } } })
    const secret = path.join(project.base, 'outside', 'secret.json')
    project.write({ 'project/bad.ts': source(JSON.stringify(secret)) })
    const output: string[] = []
    const result = await project.run(['bad.ts', 'good.ts'], { onOutput: (line) => output.push(line) })
    expect(result.errors).toHaveLength(1)
    const [error] = result.errors
    expect(error).toMatchObject({ name: 'DiscoveryError', file: project.file('bad.ts'), type: 'permission' })
    expect(error?.message).toBe(denied('FileSystemRead', secret, project.file('bad.ts')))
    expect(JSON.stringify([result, output])).not.toContain(SECRET)
    expect(namesOf(result)).toEqual(['good'])
  })

  it('as a directory, by a relative path and by the name of a neighbour with the same beginning, is denied', async () => {
    const project = sandboxProject(
      {
        'list.ts': `import fs from 'node:fs'; fs.readdirSync('/')`,
        'relative.ts': `import fs from 'node:fs'; fs.readFileSync(new URL('../outside.txt', import.meta.url))`,
        'neighbour.ts': `import fs from 'node:fs'; fs.readFileSync(new URL('../project-two/secret.txt', import.meta.url))`,
        'temporary.ts': `import fs from 'node:fs'; fs.readdirSync(${JSON.stringify(os.tmpdir())})`,
      },
      { around: { 'outside.txt': SECRET, 'project-two/secret.txt': SECRET } },
    )
    const result = await project.run()
    for (const name of ['list.ts', 'relative.ts', 'neighbour.ts', 'temporary.ts']) {
      const error = errorOf(result, project.file(name))
      expect(error?.type, name).toBe('permission')
      expect(error?.message, name).toMatch(/^sandbox denied FileSystemRead \(.+\): "/)
    }
    expect(result.errors).toHaveLength(4)
  })

  it('by a link that leads out of the project never succeeds by an import, and by fs only where no kernel layer holds', async () => {
    const project = sandboxProject(
      {
        'link.json': { link: '../secret.json' },
        folder: { link: '../outside' },
        'imported.ts': `import secret from './link.json'; export { secret }`,
        'through.ts': `import secret from './folder/secret.json'; export { secret }`,
        'read.ts': declaring(
          'read',
          `{ text: fs.readFileSync(new URL('./link.json', import.meta.url), 'utf8') }`,
          `import fs from 'node:fs'`,
        ),
      },
      { around: { 'secret.json': { json: SECRET }, 'outside/secret.json': { json: SECRET } } },
    )
    const result = await project.run(['imported.ts', 'through.ts', 'read.ts'])
    for (const [name, target] of [
      ['imported.ts', 'secret.json'],
      ['through.ts', 'outside/secret.json'],
    ] as const) {
      const error = errorOf(result, project.file(name))
      expect(error?.type).toBe('permission')
      expect(error?.message).toContain(path.join(project.base, target))
      expect(error?.message).not.toContain(SECRET)
    }
    if (result.isolation.guarantees.files.held) {
      expect(errorOf(result, project.file('read.ts'))?.type).toBe('permission')
      expect(JSON.stringify(result)).not.toContain(SECRET)
    } else {
      // Node's Permission Model follows links by design: the report must not claim what it does not hold.
      expect(result.isolation.level).not.toBe('kernel')
    }
  })

  it('inside the project and its read roots is allowed', async () => {
    const project = sandboxProject(
      {
        'data/a.txt': 'inside',
        'a.ts': declaring(
          'a',
          `{ inside: fs.readFileSync(new URL('./data/a.txt', import.meta.url), 'utf8'), shared: fs.readFileSync(new URL('../shared/b.txt', import.meta.url), 'utf8') }`,
          `import fs from 'node:fs'`,
        ),
      },
      { around: { 'shared/b.txt': 'shared' } },
    )
    const result = await project.run(['a.ts'], { readRoots: [path.join(project.base, 'shared')] })
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ inside: 'inside', shared: 'shared' })
    const without = await project.run(['a.ts'])
    expect(without.errors).toMatchObject([{ file: project.file('a.ts'), type: 'permission' }])
  })
})

describe('writing', () => {
  it.each<[string, (target: string) => string, 'new' | 'own']>([
    ['writeFileSync', (target) => `fs.writeFileSync(${target}, 'x')`, 'new'],
    ['writeFileSync to a file of the project', (target) => `fs.writeFileSync(${target}, 'x')`, 'own'],
    ['appendFileSync', (target) => `fs.appendFileSync(${target}, 'x')`, 'own'],
    ['fs.promises.writeFile', (target) => `await fs.promises.writeFile(${target}, 'x')`, 'new'],
    ['openSync', (target) => `fs.openSync(${target}, 'w')`, 'own'],
    ['mkdirSync', (target) => `fs.mkdirSync(${target})`, 'new'],
    ['unlinkSync', (target) => `fs.unlinkSync(${target})`, 'own'],
    ['rmSync', (target) => `fs.rmSync(${target})`, 'own'],
    ['renameSync', (target) => `fs.renameSync(${target}, ${target} + '.moved')`, 'own'],
    ['chmodSync', (target) => `fs.chmodSync(${target}, 0o777)`, 'own'],
    ['truncateSync', (target) => `fs.truncateSync(${target}, 0)`, 'own'],
    ['symlinkSync', (target) => `fs.symlinkSync('/etc', ${target})`, 'new'],
    [
      'createWriteStream',
      (target) => `await new Promise((yes, no) => fs.createWriteStream(${target}).on('error', no).on('open', yes))`,
      'new',
    ],
  ])('by %s is denied, and nothing is changed', async (_way, statement, kind) => {
    const project = sandboxProject({ 'good.ts': GOOD, 'own.txt': 'own' })
    const target = kind === 'own' ? project.file('own.txt') : project.file('new.txt')
    project.write({ 'project/bad.ts': `import fs from 'node:fs'\n${statement(JSON.stringify(target))}` })
    const { mode } = fs.statSync(project.file('own.txt'))
    const result = await project.run(['bad.ts', 'good.ts'])
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'permission' }])
    expect(result.errors[0]?.message).toMatch(
      /^sandbox denied FileSystem(Write|Read) \(.+\): "|^sandbox denied an unrecognized/,
    )
    expect(result.errors[0]?.message).toContain(`"${project.file('bad.ts')}"`)
    expect(fs.readdirSync(project.root).sort()).toEqual(['bad.ts', 'good.ts', 'own.txt'])
    expect(fs.readFileSync(project.file('own.txt'), 'utf8')).toBe('own')
    expect(fs.statSync(project.file('own.txt')).mode).toBe(mode)
    expect(namesOf(result)).toEqual(['good'])
  })
})

describe('starting other programs', () => {
  it.each([
    ['execFileSync', `import { execFileSync } from 'node:child_process'; execFileSync('/bin/true')`],
    [
      'spawnSync',
      `import { spawnSync } from 'node:child_process'; const { error } = spawnSync('/bin/true'); if (error) throw error`,
    ],
    [
      'spawn',
      `import { spawn } from 'node:child_process'; await new Promise((yes, no) => spawn('/bin/true').on('error', no).on('exit', yes))`,
    ],
    [
      'exec',
      `import { exec } from 'node:child_process'; await new Promise((yes, no) => exec('true', (e) => e ? no(e) : yes()))`,
    ],
    ['fork', `import { fork } from 'node:child_process'; fork('/dev/null')`],
    ['require', `const { execSync } = require('child_process'); execSync('true')`],
  ])('by %s is denied, with file and operation', async (_way, source) => {
    const project = sandboxProject({ 'bad.ts': source, 'good.ts': GOOD })
    const result = await project.run()
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'permission' }])
    // Which program it was is known to Node 22.23 and later.
    expect(result.errors[0]?.message).toMatch(/^sandbox denied ChildProcess( \(.*\))?: ".+" attempted/)
    expect(result.errors[0]?.message).toContain(`"${project.file('bad.ts')}"`)
    expect(namesOf(result)).toEqual(['good'])
  })

  it.each([
    ['a worker', `import { Worker } from 'node:worker_threads'; new Worker('', { eval: true })`, 'WorkerThreads'],
    ['WASI', `import { WASI } from 'node:wasi'; new WASI({ version: 'preview1' })`, 'WASI'],
    ['an addon', `process.dlopen({ exports: {} }, new URL('./addon.node', import.meta.url).pathname)`, 'Addons'],
  ])('and starting %s', async (_what, source, operation) => {
    const project = sandboxProject({ 'bad.ts': source, 'addon.node': 'none' })
    const result = await project.run(['bad.ts'])
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'permission' }])
    expect(result.errors[0]?.message).toMatch(new RegExp(`^sandbox denied ${operation}\\b`))
  })

  it('is no error of a file that expects the denial', async () => {
    const project = sandboxProject({
      'careful.ts': declaring(
        'careful',
        '{ code }',
        `import { execSync } from 'node:child_process'; let code; try { execSync('true') } catch (error) { code = error.code }`,
      ),
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'careful')).toEqual({ code: 'ERR_ACCESS_DENIED' })
  })
})

describe('the environment', () => {
  const reads = declaring('seen', '{ ...process.env }')

  it('is closed: nothing of the caller but PATH, and what the caller names', async () => {
    const project = sandboxProject({ 'a.ts': reads })
    const callers = {
      NODE_OPTIONS: '--no-warnings',
      NODE_PATH: '/nowhere',
      GITHUB_TOKEN: SECRET,
      AWS_SECRET_ACCESS_KEY: SECRET,
      HTTPS_PROXY: `http://${SECRET}@localhost:1`,
      http_proxy: `http://${SECRET}@localhost:1`,
      SSH_AUTH_SOCK: '/nowhere',
      HOME: '/home/somebody',
      CHANT_ENV: 'production',
    }
    for (const [name, value] of Object.entries(callers)) vi.stubEnv(name, value)
    try {
      const closed = await project.run()
      expect(closed.errors).toEqual([])
      expect(propsOf(closed, 'seen')).toEqual({ PATH: process.env.PATH })
      const named = await project.run(['a.ts'], { env: { STAGE: 'test', EMPTY: '', 'odd name': 'é\n"' } })
      expect(propsOf(named, 'seen')).toEqual({ PATH: process.env.PATH, STAGE: 'test', EMPTY: '', 'odd name': 'é\n"' })
      const path = await project.run(['a.ts'], { env: { PATH: '/bin' } })
      expect(propsOf(path, 'seen')).toEqual({ PATH: '/bin' })
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it.each(['NODE_OPTIONS', 'NODE_REPL_EXTERNAL_MODULE', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'SALLYPORT_RESULT_FD'])(
    'does not take %s, which would change what the child is',
    async (name) => {
      const project = sandboxProject({ 'a.ts': reads })
      const error = await refusal(project.run(['a.ts'], { env: { [name]: 'x' } }))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
      expect(error.message).toContain(`'options.env.${name}'`)
    },
  )

  it('shows neither the result descriptor nor the arguments of the caller', async () => {
    const project = sandboxProject({
      'a.ts': declaring(
        'a',
        '{ names: Object.keys(process.env).filter((name) => name.startsWith("SALLYPORT")), argv: process.argv.length, stdin }',
        `import fs from 'node:fs'\nconst stdin = fs.readFileSync(0, 'utf8')`,
      ),
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ names: [], argv: 2, stdin: '' })
  })
})

describe('the files of a run', () => {
  it('are one module graph, and references between them are resolved by name', async () => {
    const project = sandboxProject({
      'lib/protocol.ts': protocolSource,
      'shared.ts': `export const shared = { count: 0 }`,
      'storage.ts': `import { createResource } from './lib/protocol'; import { shared } from './shared'
        shared.count += 1
        export const bucket = createResource('Bucket', 'cloud', ['arn'])({ size: 1 })`,
      'access.ts': `import { createResource, Join, LexiconOutput } from './lib/protocol'; import { bucket } from './storage'; import { shared } from './shared'
        shared.count += 1
        export const policy = createResource('Policy')({ target: bucket.arn, text: new Join('/', [bucket.arn, '*']), whole: bucket, order: shared.count })
        export const address = new LexiconOutput(bucket.arn, 'BucketAddress')`,
    })
    const result = await project.run(['access.ts', 'storage.ts'])
    expect(result.errors).toEqual([])
    expect(namesOf(result).sort()).toEqual(['address', 'bucket', 'policy'])
    expect(propsOf(result, 'policy')).toMatchObject({
      target: { __attrRef: { entity: 'bucket', attribute: 'arn' } },
      whole: { __entityRef: { entity: 'bucket' } },
      order: 2,
    })
    const policy = result.entities.get('policy') as any
    expect(policy.props.whole).toBe(result.entities.get('bucket'))
    expect(policy.props.target.parent.deref()).toBe(result.entities.get('bucket'))
    expect(policy.props.text.toJSON()).toEqual({
      'Fn::Join': ['/', [{ __attrRef: { entity: 'bucket', attribute: 'arn' } }, '*']],
    })
    expect(result.provenanceByName).toMatchObject({
      bucket: project.file('storage.ts'),
      policy: project.file('access.ts'),
    })
  })

  it('that cannot be resolved are named', async () => {
    const project = sandboxProject({
      'lib/protocol.ts': protocolSource,
      'a.ts': `import { createResource } from './lib/protocol'
        const hidden = createResource('Bucket', 'cloud', ['arn'])()
        export const user = Object.assign(createResource('User')(), { from: hidden.arn })`,
    })
    const result = await project.run(['a.ts'])
    expect(result.errors[0]).toMatchObject({
      file: project.file('a.ts'),
      type: 'resolution',
      message: 'Cannot resolve AttrRef on "user.from": parent entity not found in entities collection',
    })
  })

  it('may bear the same name only in different directories', async () => {
    const project = sandboxProject({
      'a.ts': declaring('thing'),
      'b.ts': declaring('thing'),
      'one/c.ts': declaring('other'),
      'two-b/c.ts': declaring('other'),
    })
    const apart = await project.run(['one/c.ts', 'two-b/c.ts'])
    expect(apart.errors).toEqual([])
    expect(namesOf(apart)).toHaveLength(2)
    const together = await project.run(['a.ts', 'b.ts'])
    expect(together.errors).toMatchObject([
      { file: project.file('b.ts'), type: 'resolution', message: 'Duplicate export name "thing" found' },
    ])
    expect(together.entities.size).toBe(0)
  })

  it('do not take each other down: one bad file is one bad file', async () => {
    const project = sandboxProject({
      'throws.ts': `throw new Error('on purpose')`,
      'throws-text.ts': `throw 'only text'`,
      'syntax.ts': `export const a = 1\nexport const = 2\n`,
      'missing.ts': `import 'a-package-that-nobody-installed'`,
      'absent.ts': `import './not-there'`,
      'export.ts': `import { nothing } from './good'; console.log(nothing.at)`,
      'rejects.ts': `await Promise.reject(new TypeError('awaited'))`,
      'good.ts': GOOD,
    })
    const result = await project.run()
    const message = (name: string) => errorOf(result, project.file(name))?.message
    expect(message('throws.ts')).toBe('on purpose')
    expect(message('throws-text.ts')).toBe('only text')
    expect(message('syntax.ts')).toMatch(/2:\d+/)
    expect(message('missing.ts')).toContain('a-package-that-nobody-installed')
    expect(message('missing.ts')).toMatch(/1:\d+/)
    expect(message('absent.ts')).toContain('./not-there')
    expect(message('export.ts')).toBeDefined()
    expect(message('rejects.ts')).toBe('awaited')
    expect(result.errors).toHaveLength(7)
    expect(new Set(result.errors.map(({ type }) => type))).toEqual(new Set(['import']))
    expect(namesOf(result)).toEqual(['good'])
  })

  it.each([
    ['an error in a timer', `setTimeout(() => { throw new Error('from the timer') }, 1)`, /from the timer/],
    ['a promise that nobody looks at', `Promise.reject(new Error('from the promise'))`, /from the promise/],
    ['something that is no error', `setTimeout(() => { throw 'only text' }, 1)`, /only text/],
  ])('that leave %s to nobody are named, with what it says', async (_what, statement, said) => {
    const project = sandboxProject({
      'good.ts': GOOD,
      'bad.ts': `${statement}\nawait new Promise(() => setInterval(() => {}, 1000))`,
    })
    const result = await project.run(['good.ts', 'bad.ts'])
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'import' }])
    expect(result.errors[0]?.message).toMatch(said)
    expect(namesOf(result)).toEqual(['good'])
  })

  it('that leave a denial to nobody are named, with file and operation', async () => {
    const project = sandboxProject({
      'bad.ts': `import fs from 'node:fs'\nsetTimeout(() => fs.readFileSync('/etc/passwd'), 1)\nawait new Promise(() => setInterval(() => {}, 1000))`,
    })
    const result = await project.run()
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'permission' }])
    expect(result.errors[0]?.message).toContain(denied('FileSystemRead', '/etc/passwd', project.file('bad.ts')))
  })

  it('may be none: an empty result, and nothing is bundled', async () => {
    const project = sandboxProject({})
    const made = vi.spyOn(fs, 'mkdtempSync')
    const result = await runFallbackFilesSandboxed([], project.root)
    expect(made).not.toHaveBeenCalled()
    expect(result).toMatchObject({
      entities: new Map(),
      entitySet: { entities: [] },
      errors: [],
      bundleMs: 0,
      bundleBytes: 0,
      provenanceByName: {},
    })
    made.mockRestore()
  })

  it('may be none: nothing is started either, no probe and not the Node that is given', async () => {
    const project = sandboxProject({})
    const nodePath = path.join(project.root, 'node')
    const started = path.join(project.root, 'started')
    fs.writeFileSync(nodePath, `#!/bin/sh\necho >> ${JSON.stringify(started)}\n`, { mode: 0o755 })
    const temp = path.join(project.root, 'temp')
    fs.mkdirSync(temp)
    vi.stubEnv('TMPDIR', temp)
    const watched = fs.statSync(temp, { bigint: true }).mtimeNs
    try {
      for (const isolation of ['kernel', 'best-effort', 'node'] as const) {
        const { isolation: told } = await runFallbackFilesSandboxed([], project.root, { nodePath, isolation })
        expect(told).toMatchObject({ level: 'kernel', node: '', landlockAbi: null })
        for (const guarantee of Object.values(told.guarantees)) {
          expect(guarantee).toEqual({ held: true, by: [], reason: expect.stringContaining('nothing was started') })
        }
      }
    } finally {
      vi.unstubAllEnvs()
    }
    expect(fs.existsSync(started)).toBe(false)
    // A probe makes a folder there.
    expect(fs.statSync(temp, { bigint: true }).mtimeNs).toBe(watched)
    await expect(
      runFallbackFilesSandboxed([], project.root, { nodePath: path.join(project.root, 'missing') }),
    ).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' })
  })

  it('may be named through a link to the build root', async () => {
    const project = sandboxProject({
      'data.txt': 'mine',
      'a.ts': declaring(
        'a',
        `{ text: fs.readFileSync(new URL('./data.txt', import.meta.url), 'utf8') }`,
        `import fs from 'node:fs'`,
      ),
    })
    const link = path.join(project.base, 'link')
    fs.symlinkSync('project', link)
    const result = await runFallbackFilesSandboxed([path.join(link, 'a.ts')], link)
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ text: 'mine' })
    expect(result.provenanceByName).toEqual({ a: path.join(link, 'a.ts') })
  })
})

describe('parameters', () => {
  it('are bound before the first import', async () => {
    const project = sandboxProject({
      'a.ts': declaring('a', `{ bound: { ...(globalThis as any)[Symbol.for('sallyport.buildParams')] } }`),
    })
    const params = { stage: 'test "quoted"\n\u2028', count: 0.5, enabled: false, __proto__x: 'a' }
    const result = await project.run(['a.ts'], { params })
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ bound: params })
    expect(propsOf(await project.run(), 'a')).toEqual({ bound: {} })
  })
})

/** A package as chant's: trusted modules in TypeScript, and parameters that project files read from it. */
const TOOL = {
  'node_modules/tool/package.json': {
    json: { name: 'tool', version: '1.0.0', type: 'module', exports: { './*': './src/*.ts' } },
  },
  'node_modules/tool/src/params.ts': `
    let bound: Record<string, unknown> = {}
    export function setBuildParams(params: Record<string, unknown>): void { bound = params }
    export const param = (name: string): unknown => bound[name]`,
  'node_modules/tool/src/entity.ts': `
    export class Entity { name = ''; constructor(readonly text: string) {} }`,
  'node_modules/tool/src/collect.ts': `
    import { Entity } from './entity.js'
    export function collectEntities(modules: { file: string; exports: Record<string, unknown> }[], root: string): Map<string, Entity> {
      const found = new Map<string, Entity>()
      for (const { file, exports } of modules)
        for (const [name, value] of Object.entries(exports))
          if (value instanceof Entity) found.set(file.slice(root.length) + '#' + name, value)
      return found
    }`,
  'node_modules/tool/src/resolve.ts': `
    export function resolveAttrRefs(entities: Map<string, { name: string }>): void { for (const [name, entity] of entities) entity.name = name }`,
  'node_modules/tool/src/codec.ts': `
    export const encodeEntitySet = (entities: Map<string, { text: string }>) => ({
      entities: [...entities].map(([name, { text }]) => ({ form: 'declarable', name, lexicon: 'tool', entityType: 'Text', props: { text }, markers: [] })),
    })`,
  'node_modules/tool/src/provenance.ts': `export const getProvenance = (entity: { text: string }) => ({ sourceFile: 'from ' + entity.text })`,
  'node_modules/tool/src/errors.ts': `
    export const classifyChildError = (file: string, error: any, type = 'import') => ({ toJSON: () => ({ name: 'DiscoveryError', file, message: 'tool: ' + error.message, type }) })`,
}

function toolModules(base: string) {
  const module = (name: string) => path.join(base, 'node_modules/tool/src', `${name}.ts`)
  return {
    collect: module('collect'),
    resolve: module('resolve'),
    entityWireCodec: module('codec'),
    provenance: module('provenance'),
    params: module('params'),
    childErrors: module('errors'),
  }
}

describe('modules of the caller', () => {
  it('take the place of all trusted steps, in TypeScript, in one graph with the project', async () => {
    const project = sandboxProject(
      {
        'a.ts': `import { Entity } from 'tool/entity'; import { param } from 'tool/params'; export const greeting = new Entity('hello ' + param('who'))`,
        'bad.ts': `throw new Error('bad')`,
      },
      { around: TOOL },
    )
    const result = await project.run(['a.ts', 'bad.ts'], {
      modules: toolModules(project.base),
      params: { who: 'world' },
    })
    expect(result.entitySet).toEqual({
      entities: [
        {
          form: 'declarable',
          name: '/a.ts#greeting',
          lexicon: 'tool',
          entityType: 'Text',
          props: { text: 'hello world' },
          markers: [],
        },
      ],
    })
    expect(result.provenanceByName).toEqual({ '/a.ts#greeting': 'from hello world' })
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), message: 'tool: bad', type: 'import' }])
  })

  const EXPORTS = {
    collect: 'collectEntities',
    resolve: 'resolveAttrRefs',
    entityWireCodec: 'encodeEntitySet',
    provenance: 'getProvenance',
    params: 'setBuildParams',
    childErrors: 'classifyChildError',
  } as const

  it.each<[string, string, (name: string) => string]>([
    ['CommonJS without it', 'wrong.cjs', () => 'exports.other = () => 1'],
    ['CommonJS of another type', 'wrong.cjs', (name) => `exports.${name} = 1`],
    ['an ECMAScript module without it', 'wrong.mjs', () => 'export const other = () => 1'],
    ['an ECMAScript module of another type', 'wrong.mjs', (name) => `export const ${name} = 1`],
    ['TypeScript without it', 'wrong.ts', () => 'export const other = (): number => 1'],
    ['TypeScript that has only a type by that name', 'wrong.ts', (name) => `export type ${name} = () => void`],
  ])('that do not export what they should are a wrong argument: %s', async (_what, name, text) => {
    const project = sandboxProject({ 'good.ts': GOOD }, { around: TOOL })
    const wrong = path.join(project.base, 'node_modules/tool/src', name)
    for (const [key, exported] of Object.entries(EXPORTS)) {
      fs.writeFileSync(wrong, text(exported))
      const modules = { ...toolModules(project.base), [key]: wrong }
      const error = await refusal(project.run(['good.ts'], { modules }))
      expect(error, key).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' })
      expect(error.message, key).toContain(`'options.modules.${key}'`)
      expect(error.message, key).toContain(exported)
    }
  })

  it('that throw end the run with an error of the step', async () => {
    const project = sandboxProject({ 'good.ts': GOOD }, { around: TOOL })
    const modules = toolModules(project.base)
    const broken: [keyof typeof modules, string, string][] = [
      [
        'collect',
        `export function collectEntities() { throw Object.assign(new Error('cannot collect'), { file: '/the/file.ts' }) }`,
        '/the/file.ts',
      ],
      ['resolve', `export function resolveAttrRefs() { throw new Error('cannot resolve') }`, ''],
      ['entityWireCodec', `export function encodeEntitySet() { throw new Error('cannot encode') }`, ''],
    ]
    for (const [key, source, file] of broken) {
      const replaced = path.join(project.base, 'node_modules/tool/src', `broken-${key}.ts`)
      fs.writeFileSync(replaced, source)
      const { childErrors: _own, ...rest } = modules
      const result = await project.run(['good.ts'], { modules: { ...rest, [key]: replaced } })
      expect(result.errors, key).toMatchObject([
        { file, type: 'resolution', message: expect.stringMatching(/^cannot/) },
      ])
      expect(result.entitySet.entities, key).toEqual([])
    }
  })

  it('and a decoder of the caller is given what crossed', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    const entities = new Map([['mine', {}]])
    const decodeEntitySet = vi.fn(() => entities)
    const result = await project.run(['good.ts'], { decodeEntitySet })
    expect(decodeEntitySet).toHaveBeenCalledExactlyOnceWith(result.entitySet)
    expect(result.entities).toBe(entities)
    const failed = await project.run(['good.ts'], {
      decodeEntitySet: () => {
        throw new Error('I do not know this form')
      },
    })
    expect(failed.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(failed.errors[0]?.message).toContain('I do not know this form')
    expect(failed.entities.size).toBe(0)
  })
})

describe('limits', () => {
  it.each([
    ['spins', `while (true);`],
    ['waits with a timer that never ends', `setInterval(() => {}, 1000); await new Promise(() => {})`],
  ])('of time end a file that %s', async (_how, source) => {
    const project = sandboxProject({ 'good.ts': GOOD, 'bad.ts': source })
    const result = await project.run(['good.ts', 'bad.ts'], { timeoutMs: 1500 })
    expect(result.errors).toMatchObject([{ file: '', type: 'import', code: 'sandbox_timeout' }])
    expect(result.errors[0]?.message).toContain('sandbox:run')
    expect(result.errors[0]?.message).toMatch(/1500|1\.5/)
    expect(processesOf(temporary)).toEqual([])
  })

  it('of processor time end a file that spins', async () => {
    const project = sandboxProject({ 'bad.ts': `while (true);` })
    const result = await project.run(['bad.ts'], { cpuSeconds: 1 })
    expect(result.errors).toMatchObject([{ file: '', type: 'import', code: 'sandbox_cpu_limit' }])
    expect(result.errors[0]?.message).toMatch(/sandbox:run.*SIG(XCPU|KILL)/s)
  })

  it('of memory end a file that fills the heap', async () => {
    const project = sandboxProject({
      'bad.ts': `const kept = []; for (;;) kept.push(new Array(100_000).fill(kept.length))`,
      'good.ts': GOOD,
    })
    const result = await project.run(['bad.ts', 'good.ts'], { memoryLimitMb: 256 })
    expect(result.errors).toMatchObject([{ file: '', type: 'import', code: 'sandbox_memory_limit' }])
    expect(result.errors[0]?.message).toMatch(/sandbox:run.*(SIGABRT|SIGTRAP|SIGKILL|exit code).*heap/s)
  })

  it('of memory end a file that fills memory beside the heap', async () => {
    const project = sandboxProject({
      'bad.ts': `const kept = []; for (;;) kept.push(Buffer.alloc(32 * 1024 ** 2, 1))`,
    })
    const result = await project.run(['bad.ts'], { memoryLimitMb: 256 })
    expect(result.errors).toHaveLength(1)
    expect(['', project.file('bad.ts')]).toContain(result.errors[0]?.file)
    expect(result.errors[0]?.type).toBe('import')
  })

  it('of the result refuse a larger one, naming the option', async () => {
    const project = sandboxProject({ 'a.ts': declaring('a', `{ text: 'x'.repeat(10_000) }`) })
    const result = await project.run(['a.ts'], { maxResultBytes: 5000 })
    expect(result.errors).toMatchObject([{ file: '', type: 'import', code: 'sandbox_result_limit' }])
    expect(result.errors[0]?.message).toContain('maxResultBytes=5000')
    // The code is no part of what is reported as data.
    expect(result.errors[0]?.toJSON()).not.toHaveProperty('code')
    expect(result.entities.size).toBe(0)
    expect((await project.run(['a.ts'], { maxResultBytes: 20_000 })).errors).toEqual([])
  })
})

describe('the signal', () => {
  const reason = new Error('called off')

  it('that is aborted already lets nothing begin', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    const made = vi.spyOn(fs, 'mkdtempSync')
    expect(await refusal(project.run(['good.ts'], { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await refusal(project.run([], { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(made).not.toHaveBeenCalled()
    made.mockRestore()
  })

  it('ends a run whenever it comes: while the child boots, while the bundler works, while the project runs', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    for (let delay = 0; delay < 60; delay += 4) {
      const controller = new AbortController()
      const running = project.run(['good.ts'], { signal: controller.signal }).catch((error: unknown) => error)
      await new Promise((resolve) => setTimeout(resolve, delay))
      controller.abort(reason)
      const outcome = await running
      // No Node has started and reported by then.
      if (delay < 20) expect(outcome).toBe(reason)
      else if (outcome !== reason) expect(outcome).toMatchObject({ errors: [] })
      expect({ bundles: bundlesIn(temporary), processes: processesOf(temporary) }).toEqual({
        bundles: [],
        processes: [],
      })
    }
  })

  it('ends a project that runs, and the child is dead when the promise settles', async () => {
    const project = sandboxProject({ 'bad.ts': `console.log('running'); while (true);` })
    const controller = new AbortController()
    const onOutput = (line: string) => line === 'running' && controller.abort(reason)
    expect(await refusal(project.run(['bad.ts'], { signal: controller.signal, onOutput }))).toBe(reason)
    expect(processesOf(temporary)).toEqual([])
    expect(bundlesIn(temporary)).toEqual([])
  })

  it('is let go of after a run', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    expect((await project.run(['good.ts'], { signal })).errors).toEqual([])
    expect(added.mock.calls.length).toBeGreaterThan(0)
    expect(removed.mock.calls.length).toBeGreaterThanOrEqual(added.mock.calls.length)
  })
})

describe('output', () => {
  const writes = `console.log('to stdout'); console.error('to stderr'); process.stdout.write('no newline'); process.stderr.write('neither')\n${GOOD}`

  async function written(work: () => Promise<unknown>): Promise<string[]> {
    const spy = vi.spyOn(process.stderr, 'write').mockImplementation(() => true)
    try {
      await work()
      return spy.mock.calls.map(([text]) => String(text))
    } finally {
      spy.mockRestore()
    }
  }

  it('goes line by line to process.stderr.write, with a prefix, and the last line is not lost', async () => {
    const project = sandboxProject({ 'a.ts': writes })
    const lines = await written(() => runFallbackFilesSandboxed([project.file('a.ts')], project.root))
    expect(lines.sort()).toEqual(
      ['neither', 'no newline', 'to stderr', 'to stdout'].map((line) => `[sandbox:run] ${line}\n`),
    )
  })

  it('has the prefix of the call, or the one that is given', async () => {
    const project = sandboxProject({ 'a.ts': `console.log('here')\nexport default 1` })
    const file = project.file('a.ts')
    const prefixed = async (outputPrefix?: string) => {
      const options: SandboxOptions = outputPrefix === undefined ? {} : { outputPrefix }
      return written(async () => {
        await runFallbackFilesSandboxed([file], project.root, options)
        await evaluateConfigSandboxed(file, project.root, options)
      })
    }
    expect(await prefixed()).toEqual(['[sandbox:run] here\n', '[sandbox:config] here\n'])
    expect(await prefixed('> ')).toEqual(['> here\n', '> here\n'])
    expect(await prefixed('')).toEqual(['here\n', 'here\n'])
  })

  it('goes to onOutput instead, with its stream, in the order of the stream', async () => {
    const project = sandboxProject({ 'a.ts': writes })
    const lines: string[][] = []
    const quiet = await written(() => project.run(['a.ts'], { onOutput: (...line) => void lines.push(line.reverse()) }))
    expect(quiet).toEqual([])
    expect(lines.filter(([stream]) => stream === 'stdout')).toEqual([
      ['stdout', 'to stdout'],
      ['stdout', 'no newline'],
    ])
    expect(lines.filter(([stream]) => stream === 'stderr')).toEqual([
      ['stderr', 'to stderr'],
      ['stderr', 'neither'],
    ])
  })

  it('calls the run off where onOutput throws', async () => {
    const project = sandboxProject({ 'a.ts': `console.log('here'); while (true);` })
    const thrown = new Error('from onOutput')
    const failing = project.run(['a.ts'], {
      onOutput: () => {
        throw thrown
      },
    })
    expect(await refusal(failing)).toBe(thrown)
  })

  it('of a child that dies is in the error, however it died', async () => {
    const project = sandboxProject({
      'bad.ts': `console.error('the last words'); process.abort()`,
    })
    const result = await project.run()
    expect(result.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(result.errors[0]?.message).toMatch(/sandbox:run.*SIGABRT.*the last words/s)
  })
})

describe('the level of isolation', () => {
  const levels = ['kernel', 'partial', 'node']

  it('is told in the result, with what holds each guarantee', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    for (const isolation of [undefined, 'best-effort', 'node'] as const) {
      const result = await project.run(['good.ts'], isolation === undefined ? {} : { isolation })
      expect(result.errors).toEqual([])
      const { level, guarantees, kernel, node, landlockAbi } = result.isolation
      expect(levels).toContain(level)
      expect(Object.keys(guarantees).sort()).toEqual(['files', 'memory', 'network', 'processes', 'signals'])
      for (const { held, by, reason } of Object.values(guarantees)) {
        if (held) expect(by.length).toBeGreaterThan(0)
        else expect(reason).toMatch(/\w/)
      }
      const held = Object.values(guarantees).filter((guarantee) => guarantee.held).length
      expect(held === 5 ? ['kernel'] : held === 0 ? ['node', 'partial'] : ['partial']).toContain(level)
      if (isolation === 'node') expect(level).toBe('node')
      expect(kernel).toBe(os.release())
      expect(node).toBe(process.versions.node)
      expect(landlockAbi === null || landlockAbi > 0).toBe(true)
    }
  })

  it('that asks for the kernel holds, or refuses to run and names what is missing', async () => {
    const project = sandboxProject({ 'a.ts': `console.log('ran')\n${GOOD}` })
    const lines: string[] = []
    const outcome = await project
      .run(['a.ts'], { isolation: 'kernel', onOutput: (line) => void lines.push(line) })
      .catch((error: Error & { code?: string }) => error)
    if (outcome instanceof Error) {
      expect(outcome.code).toBe('sandbox_isolation_unavailable')
      expect(outcome.message).toMatch(/kernel/)
      expect(lines).toEqual([])
    } else {
      expect(outcome.isolation.level).toBe('kernel')
      expect(Object.values(outcome.isolation.guarantees).every(({ held }) => held)).toBe(true)
      expect(namesOf(outcome)).toEqual(['good'])
    }
  })
})

describe('what a project leaves open', () => {
  it('is not waited for: an interval, a listener on a pipe, a promise and a signal handler', async () => {
    const project = sandboxProject({
      'a.ts': `setInterval(() => {}, 1000); process.stdin.resume(); process.on('SIGTERM', () => { for (;;); }); new Promise(() => {})\n${GOOD}`,
    })
    const result = await project.run(['a.ts'], { timeoutMs: 100_000 })
    expect(result.errors).toEqual([])
    expect(namesOf(result)).toEqual(['good'])
    expect(processesOf(temporary)).toEqual([])
  })

  it('is not waited for: a server, where the child may open one', async () => {
    const project = sandboxProject({
      // Node 25 and later throw what nobody can catch here.
      'a.ts': `import net from 'node:net'
        const listening = () => new Promise((yes, no) => net.createServer().on('error', no).listen(0, '127.0.0.1', yes as () => void))
        if (Number(process.versions.node.split('.')[0]) < 25) await listening().catch(() => undefined)
        ${GOOD}`,
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(namesOf(result)).toEqual(['good'])
  })

  it('and the network is denied where the report says that it is', async () => {
    const server = net.createServer((socket) => socket.end(SECRET))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as net.AddressInfo
    try {
      const project = sandboxProject({
        'a.ts': `import net from 'node:net'\nawait new Promise((yes, no) => net.connect(${port}, '127.0.0.1').on('error', no).on('connect', yes))`,
        'b.ts': `await fetch('http://127.0.0.1:${port}/')`,
        'c.ts': `import net from 'node:net'\nawait new Promise((yes, no) => net.createServer().on('error', no).listen(0, '127.0.0.1', yes))`,
      })
      const result = await project.run(['a.ts', 'b.ts'])
      const listened = await project.run(['c.ts'])
      const restricted = result.isolation.guarantees.network.held || Number(process.versions.node.split('.')[0]) >= 25
      if (restricted) {
        for (const name of ['a.ts', 'b.ts']) {
          expect(errorOf(result, project.file(name))?.type, name).toBe('permission')
          expect(errorOf(result, project.file(name))?.message, name).toMatch(/^sandbox denied Net/)
        }
        expect(listened.errors).toMatchObject([{ file: project.file('c.ts'), type: 'permission' }])
        expect(listened.errors[0]?.message).toMatch(/^sandbox denied Net/)
      } else {
        expect(result.isolation.guarantees.network.reason).toContain('network')
      }
    } finally {
      server.close()
    }
  })
})
