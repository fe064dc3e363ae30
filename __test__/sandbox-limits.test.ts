// What a child cannot take from the machine and from its caller beyond memory and time (docs/threat-model.md, "Layers"),
// and what it cannot put before a person's eyes.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { callSandboxed, probeIsolation, runFallbackFilesSandboxed } from '../index.mjs'
import { createWorkspace } from './support/workspace'

const { level } = await probeIsolation()

function projectWith(source: string): { root: string; file: string } {
  const { base: root } = createWorkspace()
  const file = path.join(root, 'a.ts')
  fs.writeFileSync(file, source)
  return { root, file }
}

async function run(source: string, options = {}) {
  const { root, file } = projectWith(source)
  const lines: string[] = []
  const onOutput = (line: string) => void lines.push(line)
  const result = await runFallbackFilesSandboxed([file], root, { onOutput, timeoutMs: 60_000, ...options })
  return { ...result, file, lines }
}

/** Sends a frame of its own before the driver does. */
const forging = (frame: string) => `
  import fs from 'node:fs'
  const body = Buffer.from(${frame})
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  fs.writeSync(3, head)
  for (let at = 0; at < body.length; ) at += fs.writeSync(3, body, at)
  fs.closeSync(3)
  await new Promise(() => setInterval(() => {}, 1000))`

describe('descriptors', () => {
  it('are few enough that the caller keeps its own', async () => {
    const { lines, errors } = await run(`
      import fs from 'node:fs'
      let opened = 0
      try { for (;;) { fs.openSync(import.meta.filename, 'r'); opened += 1 } } catch (error) { console.log(error.code) }
      console.log(opened)`)
    expect(errors).toEqual([])
    expect(lines[0]).toBe('EMFILE')
    expect(Number(lines[1])).toBeGreaterThan(500)
    expect(Number(lines[1])).toBeLessThan(1024)
  })
})

describe('a Node that the kernel would untie from its parent', () => {
  it('is refused where the kernel is demanded, and the message says what to do', async () => {
    const { base } = createWorkspace()
    const nodePath = path.join(base, 'node')
    fs.copyFileSync(fs.realpathSync(process.execPath), nodePath)
    // Its owner's group: what file capabilities do too, and needs no rights.
    fs.chmodSync(nodePath, 0o2755)
    const source = 'export const a = 1'
    await expect(run(source, { nodePath, isolation: 'kernel' })).rejects.toMatchObject({
      code: 'sandbox_isolation_unavailable',
      message: level === 'kernel' ? expect.stringMatching(/set-id bits.*chmod ug-s/) : expect.any(String),
      // It was never started, so nothing was held.
      ...(level === 'kernel' && {
        isolation: {
          level: 'node',
          guarantees: { files: { held: false, by: [], reason: expect.stringContaining('set-id bits') } },
        },
      }),
    })
    expect((await run(source, { nodePath, isolation: 'node' })).errors).toEqual([])
  })
})

describe('a forged result', () => {
  it('brings no control characters, in any field', async () => {
    const evil = JSON.stringify('\u001b]0;owned\u0007\u202eeslaf')
    const errors = `[{ file: ${evil}, message: ${evil}, type: 'import' }]`
    const frame = `JSON.stringify({ kind: 'run', entitySet: { entities: [] }, errors: ${errors}, provenanceByName: {} })`
    const { errors: told } = await run(forging(frame))
    expect(told).toHaveLength(1)
    expect(JSON.stringify(told.map((error) => error.toJSON()))).not.toMatch(/\\u001b|\\u0007|\u202e/)
    expect(told[0]?.file).toBe('\\x1b]0;owned\\x07\\u{202e}eslaf')
  })

  it('is quoted within bounds where it cannot be read', async () => {
    const type = `'\\u001b[2J' + 'x'.repeat(5_000_000)`
    const errors = `[{ file: '', message: '', type: ${type} }]`
    const frame = `JSON.stringify({ kind: 'run', entitySet: { entities: [] }, errors: ${errors}, provenanceByName: {} })`
    const { errors: told } = await run(forging(frame))
    expect(told).toHaveLength(1)
    expect(told[0]?.message.length).toBeLessThan(300_000)
    expect(told[0]?.message).not.toContain('\u001b')
  })

  it('brings no more errors than a person reads', async () => {
    const errors = `Array.from({ length: 50_000 }, (_, index) => ({ file: '', message: '', type: 'import',
      raw: { isError: true, code: 'EACCES', syscall: 'open', path: '/p' + '/x'.repeat(2000) + index } }))`
    const frame = `JSON.stringify({ kind: 'run', entitySet: { entities: [] }, errors: ${errors}, provenanceByName: {} })`
    const told = (await run(forging(frame))).errors
    expect(told).toHaveLength(1001)
    expect(told.at(-1)?.message).toContain('more errors were reported than are handed on')
  })
})

describe('what is refused by a layer and asked for by the way', () => {
  it.each([
    ['os.homedir()', "import os from 'node:os'; os.homedir()", 'FileSystemRead'],
    ['watching the project', "import fs from 'node:fs'; fs.watch(import.meta.dirname).close()", 'FileSystemRead'],
  ])('is told as a denial: %s', async (_, source, operation) => {
    const { errors } = await run(source)
    if (level !== 'kernel') return expect(errors.length).toBeLessThan(2)
    expect(errors.map(({ type }) => type)).toEqual(['permission'])
    expect(errors[0]?.message).toContain(`sandbox denied ${operation}`)
  })
})

describe('an option that is misspelt', () => {
  it.each([
    [{ isolationLevel: 'kernel' }, 'options.isolationLevel', 'options.isolation'],
    [{ timeoutMS: 5 }, 'options.timeoutMS', 'options.timeoutMs'],
    [{ timeout: 5 }, 'options.timeout', 'options.timeoutMs'],
    [{ isolaton: 'kernel' }, 'options.isolaton', 'options.isolation'],
    [{ memoryLimitMB: 300 }, 'options.memoryLimitMB', 'options.memoryLimitMb'],
  ])('is refused and says what was meant: %j', async (options, given, meant) => {
    await expect(run('export const a = 1', { timeoutMs: undefined, ...options })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(new RegExp(`'${given}' must be called ${meant}\\.`)),
    })
  })

  const honest = Object.fromEntries(
    ['lexicon', 'envFile', 'environment', 'models', 'module', 'signals', 'memory', 'output', 'decode', 'exports']
      .concat(['paramSchema', 'modulesDir', 'bootRoot', 'x'.repeat(3_000_000)])
      .map((name) => [name, 'x']),
  )

  it('is left alone where it resembles none, and where the level is among the arguments it is told', async () => {
    expect((await run('export const a = 1', { ...honest, timeout: undefined })).errors).toEqual([])
    const { root: buildRoot, file } = projectWith('export default () => 1')
    for (const [name, value] of Object.entries({ isolation: 'kernel', timeoutMs: 5, memoryLimitMb: 300, env: {} })) {
      const call = { file, buildRoot, [name]: value }
      await expect(callSandboxed(call)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringContaining(`'call.${name}' must be among the options, the second argument`),
      })
    }
  })
})

describe('memory of the engine', () => {
  it('is what the message says, with the option that bounds it', async () => {
    const source = 'const all: unknown[] = []; for (;;) all.push(new Array(1e5).fill(all.length + 0.5))'
    const { errors } = await run(source, { memoryLimitMb: 256 })
    expect(errors).toHaveLength(1)
    expect(errors[0]?.message).toMatch(/ran out of memory \(memoryLimitMb\)|memoryLimitMb allows/)
  })
})
