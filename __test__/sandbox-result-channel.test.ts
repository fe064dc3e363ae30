// The way from the child to the parent under attack: a folder per attack in fixtures/result-channel, with the project's
// file `attack.ts` and `expected.json` beside it. The attack is imported between two good files. Whatever it does, the
// run ends, within bounded memory, with one of the outcomes that are right for it; what a program in the same process
// can forge is said in docs/threat-model.md. Programs that are no Node, or one that is not held, are here too.

import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

import { callSandboxed, evaluateConfigSandboxed, type SandboxOptions, type SandboxRunResult } from '../index.mjs'
import { refusal } from './support/refusal'
import { declaring, GOOD, namesOf, RESOURCE, sandboxProject } from './support/sandbox'

interface Outcome {
  /** `file` is relative to the project; `message` is a pattern. */
  errors: { file: string; type: string; message: string }[]
  /** The entities that are there, by name. */
  entities: string[]
}

interface Expected {
  what: string
  options?: SandboxOptions
  /** The forwarded output is bounded, and what was cut is marked. */
  boundedOutput?: boolean
  /** Any of these is right. */
  outcomes: Outcome[]
}

const fixtures = path.join(path.dirname(fileURLToPath(import.meta.url)), 'fixtures', 'result-channel')

const attacks = fs
  .readdirSync(fixtures)
  .sort()
  .map((name): [string, Expected] => [
    name,
    JSON.parse(fs.readFileSync(path.join(fixtures, name, 'expected.json'), 'utf8')) as Expected,
  ])

const MEBIBYTE = 1024 ** 2

/** What the parent may grow by: the largest result that it is made to take, some copies of it, and room to breathe. */
const MOST_GROWTH = 256 * MEBIBYTE

function matches(result: SandboxRunResult, root: string, { errors, entities }: Outcome): boolean {
  const sameErrors =
    result.errors.length === errors.length &&
    errors.every(({ file, type, message }, index) => {
      const error = result.errors[index]
      return (
        error?.name === 'DiscoveryError' &&
        error.file === (file === '' ? '' : path.join(root, file)) &&
        error.type === type &&
        new RegExp(message, 's').test(error.message)
      )
    })
  return sameErrors && namesOf(result).sort().join() === [...entities].sort().join()
}

/** The result, the lines that were forwarded, and by how much this process grew meanwhile. */
async function watched(work: (onOutput: (line: string) => void) => Promise<SandboxRunResult>) {
  const lines: string[] = []
  const before = process.memoryUsage().rss
  let most = before
  const look = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 5)
  try {
    const result = await work((line) => void lines.push(line))
    most = Math.max(most, process.memoryUsage().rss)
    return { result, lines, growth: most - before }
  } finally {
    clearInterval(look)
  }
}

describe('an attack on the result channel', () => {
  it.each(attacks)('%s', async (name, { what, options = {}, boundedOutput = false, outcomes }) => {
    const project = sandboxProject({
      // Made before the attack, so that what is patched is not needed to make them.
      'library.ts': `${RESOURCE}\nexport const good = resource({ list: [1, { a: 'b' }] })\nexport const later = resource({ of: good })`,
      'good.ts': `export { good } from './library'`,
      'later.ts': `export { later } from './library'`,
      'attack.ts': fs.readFileSync(path.join(fixtures, name, 'project', 'attack.ts')),
    })
    const files = ['good.ts', 'attack.ts', 'later.ts']
    const { result, lines, growth } = await watched((onOutput) => project.run(files, { ...options, onOutput }))
    const seen = {
      errors: result.errors.map(({ file, type, message }) => ({ file, type, message: message.slice(0, 1000) })),
      entities: namesOf(result),
    }
    expect(
      outcomes.some((outcome) => matches(result, project.root, outcome)),
      `${what} ${JSON.stringify(seen, null, 2)}`,
    ).toBe(true)
    expect(growth, what).toBeLessThan(MOST_GROWTH)
    expect(({} as Record<string, unknown>).polluted, what).toBeUndefined()
    for (const { message } of result.errors) expect(Buffer.byteLength(message)).toBeLessThan(300 * 1024)
    if (boundedOutput) {
      // Two streams of a mebibyte each; a control character is shown in four.
      expect(lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0)).toBeLessThan(10 * MEBIBYTE)
      expect(lines.some((line) => line.includes('cut'))).toBe(true)
    }
  })

  /** A file that sends a frame of its own making and ends. */
  const forging = (frame: string): string => `import fs from 'node:fs'
    const body = Buffer.from(${frame})
    const header = Buffer.alloc(4)
    header.writeUInt32BE(body.length)
    for (let piece of [header, body]) while (piece.length > 0) piece = piece.subarray(fs.writeSync(3, piece))
    process.kill(process.pid, 'SIGKILL')`

  it('cannot make the report longer than a string can be', async () => {
    // Each character is shown in eight, and what is denied names the file as well.
    const project = sandboxProject({
      'a.ts': forging(`(() => {
        const text = '\u202e'.repeat(65_000)
        const raw = { isError: true, code: 'ERR_ACCESS_DENIED', permission: 'Net', resource: text }
        const error = JSON.stringify({ file: text, message: text, type: 'import', raw })
        const errors = new Array(400).fill(error).join()
        return '{"kind":"run","entitySet":{"entities":[]},"provenanceByName":{},"errors":[' + errors + ']}'
      })()`),
    })
    const { errors } = await project.run()
    expect(errors.length).toBeGreaterThan(10)
    expect(errors.length).toBeLessThan(100)
    expect(errors.at(-1)?.message).toBe(
      `more errors were reported than are handed on; these are the first ${errors.length - 1}`,
    )
    expect(errors.reduce((sum, { file, message }) => sum + file.length + message.length, 0)).toBeLessThan(20 * MEBIBYTE)
  })

  it.each([
    ['errors within an error', `{"file":"","message":"m","type":"import","raw":{"errors":[`, `]}}`, '{}'],
    ['a field of an error', `{"file":"","message":"m","type":"import","raw":{"text":"t","path":[`, `]}}`, '{}'],
    ['errors', '', '', '{"file":"","message":"","type":"import"}'],
  ])('cannot make a small frame large: %s', async (_what, before, after, element) => {
    const count = Math.floor(1_900_000 / element.length)
    const project = sandboxProject({
      'a.ts': forging(`'{"kind":"run","entitySet":{"entities":[]},"provenanceByName":{},"errors":[${before}' +
        new Array(${count}).fill('${element}').join() + '${after}]}'`),
    })
    const { result, growth } = await watched((onOutput) =>
      project.run(undefined, { maxResultBytes: 2 ** 22, onOutput }),
    )
    expect(result.errors.length).toBe(before === '' ? 1001 : 1)
    expect(growth).toBeLessThan(64 * MEBIBYTE)
  })

  it('gives a configuration or a call the same errors', async () => {
    const value = `import fs from 'node:fs'
      const body = Buffer.from(JSON.stringify({ kind: 'run', entitySet: { entities: [] }, errors: [], provenanceByName: {} }))
      const header = Buffer.alloc(4)
      header.writeUInt32BE(body.length)
      fs.writeSync(3, Buffer.concat([header, body]))
      process.kill(process.pid, 'SIGKILL')`
    const project = sandboxProject({
      'kind.ts': value,
      'huge.ts': `import fs from 'node:fs'; fs.writeSync(3, Buffer.alloc(4, 0xff)); for (;;);`,
      'closed.ts': `import fs from 'node:fs'; fs.closeSync(3); export default 1`,
      'twice.ts': `import fs from 'node:fs'; fs.writeSync(3, Buffer.from([0, 0, 0, 2, 0x7b, 0x7d])); export default () => 1`,
    })
    for (const name of ['kind.ts', 'huge.ts', 'closed.ts', 'twice.ts']) {
      const file = project.file(name)
      const evaluated = await refusal(evaluateConfigSandboxed(file, project.root))
      expect(evaluated.message, name).toContain(`Failed to evaluate ${file} inside the --sandbox boundary: `)
      const called = await refusal(callSandboxed({ file, buildRoot: project.root }))
      expect(called.message, name).toContain(file)
    }
  })
})

describe('a program given as nodePath', () => {
  const RAN = `console.log('project code ran')\n${GOOD}`

  function script(project: { base: string }, text: string): string {
    const program = path.join(project.base, 'program')
    fs.writeFileSync(program, `#!/bin/sh\n${text}\n`)
    fs.chmodSync(program, 0o755)
    return program
  }

  const node = JSON.stringify(process.execPath)

  it('that ignores the permission switch is a failed run, and no project code runs', async () => {
    const project = sandboxProject({ 'a.ts': RAN })
    const nodePath = script(
      project,
      `for argument; do
        shift
        case "$argument" in --permission|--experimental-permission|--allow-*) ;; *) set -- "$@" "$argument" ;; esac
      done
      exec ${node} "$@"`,
    )
    const lines: string[] = []
    const result = await project.run(['a.ts'], { nodePath, onOutput: (line) => void lines.push(line) })
    expect(result.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(lines).not.toContain('project code ran')
    expect(result.entities.size).toBe(0)
    const file = project.file('a.ts')
    const config = await refusal(
      evaluateConfigSandboxed(file, project.root, { nodePath, onOutput: (line) => void lines.push(line) }),
    )
    expect(config.message).toContain(`Failed to evaluate ${file} inside the --sandbox boundary: `)
    const call = await refusal(
      callSandboxed({ file, buildRoot: project.root }, { nodePath, onOutput: (line) => void lines.push(line) }),
    )
    expect(call.message).toContain(file)
    expect(lines).not.toContain('project code ran')
  })

  it.each([
    ['permits writing', '--allow-fs-write=*'],
    ['permits reading everything', '--allow-fs-read=*'],
    ['permits other programs', '--allow-child-process'],
    ['permits workers', '--allow-worker'],
  ])('that %s is a failed run, and no project code runs', async (_what, flag) => {
    const project = sandboxProject({ 'a.ts': RAN })
    const nodePath = script(project, `exec ${node} '${flag}' "$@"`)
    const lines: string[] = []
    const result = await project.run(['a.ts'], { nodePath, onOutput: (line) => void lines.push(line) })
    expect(result.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(lines).not.toContain('project code ran')
    expect(result.entities.size).toBe(0)
  })

  it.each<[string, string | ((project: { base: string; root: string }) => string)]>([
    ['is missing', '/nowhere/node'],
    ['is a directory', ({ root }) => root],
    [
      'is no program',
      (project) => {
        const file = path.join(project.base, 'text')
        fs.writeFileSync(file, 'no program')
        return file
      },
    ],
    ['says nothing', '/bin/true'],
    ['fails', '/bin/false'],
    ['tells another version', '/bin/cat'],
    ['is too old', (project) => script(project, 'echo v18.20.8')],
    ['is far too old', (project) => script(project, 'echo v0.10.48')],
    ['claims a version that is none', (project) => script(project, 'echo v22')],
    ['never ends to tell its version', (project) => script(project, 'yes v22.1.0')],
  ])('that %s is a wrong argument, and nothing is created', async (_what, given) => {
    const project = sandboxProject({ 'a.ts': RAN })
    const nodePath = typeof given === 'string' ? given : given(project)
    const error = await refusal(project.run(['a.ts'], { nodePath }))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
    expect(error.message).toContain(`'options.nodePath'`)
    expect(error.message).toContain(nodePath)
  })

  it.each([
    ['ends at once', 'exit 0', 'ended before any of its files was evaluated .exit code 0.', 'sandbox_exited'],
    ['fails with words', 'echo "I am no Node" >&2; exit 7', 'exit code 7.*I am no Node', 'sandbox_exited'],
    ['waits for ever', 'exec sleep 1000', '1500|1\\.5', 'sandbox_timeout'],
    ['writes to the result', 'echo garbage >&3', 'maxResultBytes', 'sandbox_result_limit'],
    ['ends within the length', 'printf x >&3', 'within the four bytes', 'sandbox_result_invalid'],
    ['copies its input', 'exec cat', 'ended before any of its files was evaluated', 'sandbox_exited'],
  ])('that claims to be a Node but %s is a failed run', async (_what, text, said, code) => {
    const project = sandboxProject({ 'a.ts': RAN })
    const nodePath = script(project, `if [ "$1" = --version ]; then echo v22.20.0; exit; fi\n${text}`)
    for (const isolation of ['best-effort', 'node'] as const) {
      const { errors } = await project.run(['a.ts'], { nodePath, isolation, timeoutMs: 1500 })
      expect(errors).toMatchObject([{ file: '', type: 'import' }])
      expect(errors[0]?.message).toContain('sandbox:run')
      // The filters let a shell start nothing.
      if (isolation === 'best-effort') continue
      expect(errors[0]?.code).toBe(code)
      expect(errors[0]?.message).toMatch(new RegExp(said, 's'))
    }
    // Its code is that of the error of a call, too.
    const call = { file: project.file('a.ts'), buildRoot: project.root }
    const outcome = await refusal(callSandboxed(call, { nodePath, isolation: 'node', timeoutMs: 1500, onOutput() {} }))
    expect(outcome).toMatchObject({ file: '', type: 'import', code })
  })

  it('is the one that is told in the report', async () => {
    const project = sandboxProject({ 'a.ts': declaring('a', '{ version: process.versions.node }') })
    const result = await project.run(['a.ts'], { nodePath: process.execPath })
    expect(result.isolation.node).toBe(process.versions.node)
    expect(result.entitySet.entities[0]).toMatchObject({ props: { version: process.versions.node } })
  })
})
