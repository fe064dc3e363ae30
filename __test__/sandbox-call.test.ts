// Calling a function of a project file (contract/surface.md, `callSandboxed`): data in, data out, and everything that
// is not data named by its path on both ways.

import { describe, expect, it } from 'vitest'

import { callSandboxed, type SandboxOptions } from '../index.mjs'
import { type Refusal, refusal } from './support/refusal'
import { sandboxProject } from './support/sandbox'

function calling(source: string, call: { export?: string; args?: unknown[] } = {}, options: SandboxOptions = {}) {
  const project = sandboxProject({ 'policy.ts': source })
  const file = project.file('policy.ts')
  const called = callSandboxed({ file, buildRoot: project.root, ...call }, { onOutput: () => undefined, ...options })
  return { file, called }
}

async function value(...given: Parameters<typeof calling>): Promise<unknown> {
  return (await calling(...given).called).value
}

describe('a call', () => {
  it('gives what the function gives, with its arguments', async () => {
    const args = [{ text: 'é "\u2028', list: [1, null, true] }, 'b', 0.5]
    expect(await value(`export default (...all: unknown[]) => ({ all, count: all.length })`, { args })).toEqual({
      all: args,
      count: 3,
    })
    expect(await value(`export default function () { return arguments.length }`)).toBe(0)
  })

  it('is of the export that is named, waited for', async () => {
    const source = `export const check = async (n: number) => { await new Promise((done) => setTimeout(done, 1)); return n + 1 }
      export default () => 'default'; const hidden = (): string => 'odd'; export { hidden as 'odd name' }`
    expect(await value(source, { export: 'check', args: [1] })).toBe(2)
    expect(await value(source)).toBe('default')
    expect(await value(source, { export: 'odd name' })).toBe('odd')
  })

  it.each([
    ['null', null],
    ['false', false],
    ['0', 0],
    [`''`, ''],
    ['[]', []],
    ['undefined', undefined],
  ])('may give %s', async (text, expected) => {
    expect(await value(`export default () => (${text})`)).toEqual(expected)
  })

  it('that never comes back is told from a file that does not', async () => {
    const never = await refusal(calling(`export default () => new Promise(() => {})`).called)
    expect(never.message).toContain('ended before the call gave its result: it exits, or waits for what can never come')
    const exits = await refusal(calling(`process.exit(7)`).called)
    expect(exits.message).toContain('ended before the file was evaluated: it exits, or waits')
    expect(exits.message).toContain('(exit code 7)')
  })

  it('comes with what held the child', async () => {
    const result = await calling(`export default () => 1`).called
    expect(Object.keys(result).sort()).toEqual(['isolation', 'value'])
    expect(['kernel', 'partial', 'node']).toContain(result.isolation.level)
  })

  it('sees its parameters, and arguments that are the child’s own copy', async () => {
    const args = [{ a: 1 }]
    const source = `const bound = { ...(globalThis as any)[Symbol.for('sallyport.buildParams')] }; export default (given: any) => { given.a = 2; return bound }`
    expect(await value(source, { args }, { params: { stage: 'test' } })).toEqual({ stage: 'test' })
    expect(args).toEqual([{ a: 1 }])
  })

  it('takes arguments that look like code, and keys that reach for prototypes', async () => {
    const args = ['`${process.exit(1)}`', '</script>', '\\', JSON.parse('{"__proto__":{"polluted":true}}') as object]
    const result = (await value(
      `export default (...all: any[]) => [all, ({} as any).polluted ?? 'clean', Object.keys(all[3])]`,
      { args },
    )) as unknown[]
    expect((result[0] as unknown[]).slice(0, 3)).toEqual(args.slice(0, 3))
    expect(result.slice(1)).toEqual(['clean', ['__proto__']])
  })

  it('takes large arguments', async () => {
    const text = 'x'.repeat(5 * 1024 ** 2)
    expect(await value(`export default (text: string) => text.length`, { args: [text] })).toBe(text.length)
  })
})

describe('a call that fails', () => {
  const failed = (name: string, file: string) => `Failed to call ${name} of ${file} inside the sandbox: `

  it('because the function throws is an error with the reason', async () => {
    const { file, called } = calling(`export default () => { throw new RangeError('too far') }`)
    const error = await refusal(called)
    expect(error.message).toBe(`${failed('default', file)}too far`)
    expect(error.cause).toMatchObject({ name: 'DiscoveryError', file, type: 'import', message: 'too far' })
  })

  it('because it was denied something names the operation', async () => {
    const { file, called } = calling(
      `import { execSync } from 'node:child_process'; export const check = () => execSync('true')`,
      { export: 'check' },
    )
    const error = await refusal(called)
    expect(error.message).toMatch(/sandbox denied ChildProcess/)
    expect(error.message).toContain(failed('check', file))
    expect(error.cause).toMatchObject({ type: 'permission' })
  })

  it.each([
    ['nothing', undefined, `export const other = 1`],
    ['something else', 'check', `export const check = 1`],
    ['only what every object has', 'toString', `export const check = 1`],
  ])('because the file exports %s by that name says so', async (_what, name, source) => {
    const { file, called } = calling(source, name === undefined ? {} : { export: name })
    const error = await refusal(called)
    expect(error.message).toContain(failed(name ?? 'default', file))
    expect(error.message).toContain(`"${name ?? 'default'}"`)
  })

  it('because the result is not data names each path', async () => {
    const { file, called } = calling(`export default () => ({ check: () => 1, list: [1n, new Date()] })`)
    const error = (await refusal(called)) as Refusal & { refused?: unknown }
    expect(error.message.split('\n').map((line) => line.trim())).toEqual([
      `Cannot take the result of default of ${file}: it holds values that are not data.`,
      'check: a function',
      'list[0]: a bigint',
      'list[1]: a Date',
    ])
    expect(error.refused).toHaveLength(3)
  })

  it('because an argument is not data names each path, and nothing is started', async () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const { called } = calling(`export default () => 1`, {
      args: [() => 1, { at: [new Map()] }, undefined, cyclic, 1n],
    })
    const error = await refusal(called)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_INVALID_ARG_TYPE')
    for (const line of [
      '[0]: a function',
      '[1].at[0]: a Map',
      '[2]: undefined',
      '[3].self: a circular reference',
      '[4]: a bigint',
    ]) {
      expect(error.message).toContain(line)
    }
    expect(error.message).toContain('"call.args"')
  })

  it('because it never ends, exits or dies', async () => {
    const slow = calling(`export default () => { for (;;); }`, {}, { timeoutMs: 1000 })
    expect((await refusal(slow.called)).message).toContain('sandbox:call')
    const waits = calling(`export default () => new Promise(() => {})`)
    expect((await refusal(waits.called)).message).toContain(failed('default', waits.file))
    const exits = calling(`export default () => process.exit(0)`)
    expect((await refusal(exits.called)).message).toContain(failed('default', exits.file))
  })

  it('because its result is too large names the option', async () => {
    const { called } = calling(`export default () => 'x'.repeat(10_000)`, {}, { maxResultBytes: 1000 })
    expect((await refusal(called)).message).toContain('maxResultBytes=1000')
  })

  it('because the signal called it off rejects with the reason', async () => {
    const controller = new AbortController()
    const { called } = calling(
      `console.log('here'); export default () => { for (;;); }`,
      {},
      {
        signal: controller.signal,
        onOutput: () => controller.abort('enough'),
      },
    )
    expect(await called.catch((error: unknown) => error)).toBe('enough')
  })
})
