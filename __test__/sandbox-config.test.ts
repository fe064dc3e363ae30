// Evaluating a configuration file (contract/sandbox.md, "Config"): which of its exports is taken, that only data
// crosses, every word and every form of path by which what is not data is named, and the messages, to the letter.

import { describe, expect, it, vi } from 'vitest'

import { evaluateConfigSandboxed, type SandboxOptions } from '../index.mjs'
import { type Refusal, refusal } from './support/refusal'
import { sandboxProject } from './support/sandbox'

function configured(source: string, options: SandboxOptions = {}) {
  const project = sandboxProject({ 'chant.config.ts': source })
  const file = project.file('chant.config.ts')
  return {
    project,
    file,
    evaluated: evaluateConfigSandboxed(file, project.root, { onOutput: () => undefined, ...options }),
  }
}

const config = async (source: string, options?: SandboxOptions): Promise<unknown> =>
  (await configured(source, options).evaluated).config

describe('what is taken', () => {
  it.each<[string, string, unknown]>([
    [
      'the default export',
      `export const config = 1; export const other = 2; export default { of: 'default' }`,
      { of: 'default' },
    ],
    ['else config', `export const other = 2; export const config = { of: 'config' }`, { of: 'config' }],
    ['else all exports', `export const one = 1; export const two = [2]`, { one: 1, two: [2] }],
    ['a default that is null', `export const config = 1; export default null`, null],
    ['a default that is false', `export const config = 1; export default false`, false],
    ['a default that is empty text', `export default ''`, ''],
    ['nothing where nothing is exported', `export {}`, {}],
    ['what CommonJS exports', `module.exports = { of: 'module' }`, { of: 'module' }],
  ])('is %s', async (_what, source, expected) => {
    expect(await config(source)).toEqual(expected)
  })

  it('may depend on the parameters of the caller', async () => {
    const source = `export default (globalThis as any)[Symbol.for('sallyport.buildParams')]`
    expect(await config(source, { params: { stage: 'test', count: 2 } })).toEqual({ stage: 'test', count: 2 })
  })

  it('is any data, unchanged', async () => {
    const data = {
      text: 'é \u2028 "quoted" \\ \0 😀',
      numbers: [0, 1.5, -1e300, Number.MAX_SAFE_INTEGER],
      flags: [true, false, null],
      empty: { list: [], record: {}, text: '' },
      'odd key': { '': 1, __proto: 2, constructor: 3, toJSON: 4 },
    }
    expect(await config(`export default ${JSON.stringify(data)}`)).toEqual(data)
  })

  it('keeps a key that is called __proto__ a key', async () => {
    const value = (await config(`export default JSON.parse('{"__proto__":{"polluted":true}}')`)) as object
    expect(Object.keys(value)).toEqual(['__proto__'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('drops properties that are undefined, and keeps the order of the others', async () => {
    const value = await config(`export default { b: undefined, a: 1, c: { d: undefined }, e: null }`)
    expect(JSON.stringify(value)).toBe('{"a":1,"c":{},"e":null}')
  })

  it('is shared parts twice, objects without a prototype, and 64 levels', async () => {
    expect(await config(`const part = { a: 1 }; export default { one: part, two: [part, part] }`)).toEqual({
      one: { a: 1 },
      two: [{ a: 1 }, { a: 1 }],
    })
    expect(await config(`export default Object.assign(Object.create(null), { a: 1 })`)).toEqual({ a: 1 })
    const deep = (levels: number) =>
      `let value: any = 'deep'; for (let level = 0; level < ${levels}; level += 1) value = { a: value }; export default value`
    let value = await config(deep(64))
    for (let level = 0; level < 64; level += 1) value = (value as { a: unknown }).a
    expect(value).toBe('deep')
  })

  it('comes with the size and time of the bundle and what held the child', async () => {
    const result = await configured(`export default 1`).evaluated
    expect(Object.keys(result).sort()).toEqual(['bundleBytes', 'bundleMs', 'config', 'isolation'])
    expect(result.bundleBytes).toBeGreaterThan(0)
    expect(result.bundleMs).toBeGreaterThan(0)
    expect(['kernel', 'partial', 'node']).toContain(result.isolation.level)
  })
})

async function refused(
  value: string,
): Promise<{ error: Refusal & { refused?: unknown }; lines: string[]; heading: string }> {
  const { file, evaluated } = configured(`export default ${value}`)
  const error = await refusal(evaluated)
  const [heading = '', ...lines] = error.message.split('\n')
  expect(heading).toBe(`Cannot evaluate ${file} inside the --sandbox boundary: it holds values that are not data.`)
  return { error, lines: lines.map((line) => line.trim()), heading }
}

describe('what is not data', () => {
  it.each<[string, string]>([
    ['() => 1', 'a function'],
    ['class A {}', 'a function'],
    ['Symbol("s")', 'a symbol'],
    ['1n', 'a bigint'],
    ['NaN', 'NaN'],
    ['Infinity', 'a non-finite number'],
    ['-Infinity', 'a non-finite number'],
    ['new Date(0)', 'a Date'],
    ['/a/', 'a RegExp'],
    ['new Map()', 'a Map'],
    ['new Set()', 'a Set'],
    ['Promise.resolve(1)', 'a Promise'],
    ['new Error("e")', 'an Error'],
    ['new TypeError("e")', 'an Error'],
    ['new (class Stack { a = 1 })()', 'a Stack instance'],
    ['new Uint8Array(1)', 'a Uint8Array instance'],
    ['new URL("http://a")', 'a URL instance'],
    ['Object.create({ a: 1 })', 'a non-plain object'],
    ['new (class {})()', 'a non-plain object'],
  ])('%s is named', async (value, word) => {
    expect((await refused(`{ at: { here: ${value} } }`)).lines).toEqual([`at.here: ${word}`])
    expect((await refused(`[1, ${value}]`)).lines).toEqual([`[1]: ${word}`])
    expect((await refused(value)).lines).toEqual([`<root>: ${word}`])
  })

  it('a circular reference is named where it closes', async () => {
    expect((await refused(`(() => { const a: any = { b: { c: {} } }; a.b.c.d = a.b; return a })()`)).lines).toEqual([
      'b.c.d: a circular reference',
    ])
    expect((await refused(`(() => { const a: any[] = []; a.push([a]); return a })()`)).lines).toEqual([
      '[0][0]: a circular reference',
    ])
  })

  it('undefined is named in arrays only', async () => {
    expect((await refused(`{ list: [1, undefined, , 2], dropped: undefined }`)).lines).toEqual([
      'list[1]: undefined',
      'list[2]: undefined',
    ])
  })

  it('nesting of more than 64 levels is named', async () => {
    const { lines } = await refused(
      `(() => { let value: any = 1; for (let level = 0; level < 65; level += 1) value = { a: value }; return value })()`,
    )
    expect(lines).toEqual([`${Array(65).fill('a').join('.')}: nested more than 64 levels deep`])
  })

  it('is listed a line each, by paths as one would write them', async () => {
    const { lines, error } = await refused(`{
      hooks: { beforeBuild() {}, after: [() => 1, 2, { done: Symbol.iterator }] },
      stacks: [{ name: 1n }, { name: 'fine' }],
      'with space': NaN,
      'quo"te': [new Date()],
      '0': new Map(),
    }`)
    expect([...lines].sort()).toEqual(
      [
        'hooks.beforeBuild: a function',
        'hooks.after[0]: a function',
        'hooks.after[2].done: a symbol',
        'stacks[0].name: a bigint',
        '["with space"]: NaN',
        '["quo\\"te"][0]: a Date',
        '["0"]: a Map',
      ].sort(),
    )
    expect(error.refused).toHaveLength(7)
    expect(error.refused).toContainEqual({ path: 'stacks[0].name', found: 'a bigint' })
  })

  it('of which there is very much does not make a message without end', async () => {
    const { error } = await refused(`Array.from({ length: 200_000 }, () => () => 1)`)
    expect(Buffer.byteLength(error.message)).toBeLessThan(16 * 1024 ** 2)
  })
})

describe('a configuration that fails', () => {
  const start = (file: string) => `Failed to evaluate ${file} inside the --sandbox boundary: `

  it.each<[string, string, string, string]>([
    ['throws an error', `throw new Error('on purpose')`, 'on purpose', 'import'],
    ['throws text', `throw 'text'`, 'text', 'import'],
    [
      'throws in a getter',
      `export default { get a() { throw new Error('from the getter') } }`,
      'from the getter',
      'import',
    ],
    ['rejects', `await Promise.reject(new Error('awaited'))`, 'awaited', 'import'],
  ])('because it %s is an error with the reason', async (_how, source, reason, type) => {
    const { file, evaluated } = configured(source)
    const error = await refusal(evaluated)
    expect(error).toBeInstanceOf(Error)
    expect(error.message).toBe(start(file) + reason)
    expect(error.cause).toMatchObject({
      name: 'DiscoveryError',
      file,
      type,
      message: reason,
    })
  })

  it('because it was denied something names the operation', async () => {
    const { file, evaluated } = configured(
      `import fs from 'node:fs'; export default fs.readFileSync('/etc/passwd', 'utf8')`,
    )
    const error = await refusal(evaluated)
    expect(error.message).toBe(
      `${start(file)}sandbox denied FileSystemRead (/etc/passwd): "${file}" attempted an operation outside the sandbox's allowlist`,
    )
    expect(error.cause).toMatchObject({ type: 'permission' })
  })

  it('because it cannot be bundled tells line and column', async () => {
    const { file, evaluated } = configured(`export default {\n  a: ,\n}`)
    const error = await refusal(evaluated)
    expect(error.message.startsWith(start(file))).toBe(true)
    expect(error.message).toMatch(/2:\d+/)
  })

  it('because it takes too long or dies says so', async () => {
    const slow = configured(`for (;;);`, { timeoutMs: 1000 })
    expect((await refusal(slow.evaluated)).message).toMatch(/^Failed to evaluate .* boundary: .*sandbox:config/)
    const dead = configured(`console.error('last words'); process.abort()`)
    expect((await refusal(dead.evaluated)).message).toMatch(
      /^Failed to evaluate .* boundary: .*sandbox:config.*SIGABRT.*last words/s,
    )
  })

  it('because the signal called it off rejects with the reason', async () => {
    const reason = { called: 'off' }
    const controller = new AbortController()
    const { evaluated } = configured(`console.log('here'); for (;;);`, {
      signal: controller.signal,
      onOutput: () => controller.abort(reason),
    })
    expect(await evaluated.catch((error: unknown) => error)).toBe(reason)
    const aborted = configured(`export default 1`, { signal: AbortSignal.abort(reason) })
    expect(await aborted.evaluated.catch((error: unknown) => error)).toBe(reason)
  })
})

describe('the environment of a configuration', () => {
  it('has CHANT_ENV of the caller, and nothing else but PATH', async () => {
    vi.stubEnv('GITHUB_TOKEN', 'hunter2')
    try {
      vi.stubEnv('CHANT_ENV', 'production')
      expect(await config(`export default { ...process.env }`)).toEqual({
        PATH: process.env.PATH,
        CHANT_ENV: 'production',
      })
      expect(await config(`export default process.env.CHANT_ENV`, { env: { CHANT_ENV: 'test' } })).toBe('test')
      vi.stubEnv('CHANT_ENV', undefined)
      expect(await config(`export default { ...process.env }`)).toEqual({ PATH: process.env.PATH })
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('is told by a prefix of its own', async () => {
    const spy = vi.spyOn(process.stderr, 'write').mockImplementation(() => true)
    try {
      const project = sandboxProject({ 'a.ts': `console.log('hello'); export default 1` })
      await evaluateConfigSandboxed(project.file('a.ts'), project.root)
      expect(spy.mock.calls.map(([text]) => text)).toEqual(['[sandbox:config] hello\n'])
    } finally {
      spy.mockRestore()
    }
  })
})
