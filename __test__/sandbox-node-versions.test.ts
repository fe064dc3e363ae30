// Every supported Node as the child, whichever Node runs the tests, and build roots whose paths are hard to pass on:
// what is granted must be that directory and nothing else, on every version.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { callSandboxed, evaluateConfigSandboxed, runFallbackFilesSandboxed } from '../index.mjs'
import { refusal } from './support/refusal'
import { declaring, errorOf, GOOD, namesOf, propsOf, protocolSource, sandboxProject } from './support/sandbox'
import { versions } from './support/versions'

it('the versions that count are here', () => {
  expect(versions.map(([major]) => major).sort()).toEqual(['20', '22', '24', '26'])
})

// Node 20 has no SQLite.
it.each(versions.filter(([major]) => Number(major) >= 22))(
  'Node %s as the child reads a database of the project that another process has open, with its log',
  async (_major, nodePath) => {
    const project = sandboxProject({
      'read.ts': `import { DatabaseSync } from 'node:sqlite'
        export default () => {
          const database = new DatabaseSync(import.meta.dirname + '/live.db', { readOnly: true })
          return { ...database.prepare('select count(*) as count from t').get() }
        }`,
    })
    const script = `
      const { DatabaseSync } = require('node:sqlite')
      const database = new DatabaseSync(process.argv[1])
      database.exec('pragma journal_mode = wal; create table t (a); insert into t values (1)')
      process.stdout.write('ready')
      process.stdin.resume()`
    const program = ['--no-warnings', '--experimental-sqlite', '-e', script, project.file('live.db')]
    const writer = spawn(nodePath, program, { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = once(writer, 'exit')
    try {
      await Promise.race([once(writer.stdout, 'data'), ended])
      expect(fs.existsSync(project.file('live.db-shm'))).toBe(true)
      const call = { file: project.file('read.ts'), buildRoot: project.root }
      expect((await callSandboxed(call, { nodePath })).value).toEqual({ count: 1 })
    } finally {
      writer.kill()
      await ended
    }
  },
)

describe.each(versions)('Node %s as the child', (major, nodePath) => {
  it('runs a project, and denies what is denied', async () => {
    const project = sandboxProject(
      {
        'lib/protocol.ts': protocolSource,
        'a.ts': `import { createResource } from './lib/protocol'
          export const bucket = createResource('Bucket', 'cloud', ['arn'])({ version: process.versions.node, env: Object.keys(process.env) })
          export const user = createResource('User')({ of: bucket.arn })`,
        'own.ts': declaring(
          'own',
          `{ text: fs.readFileSync(new URL('./data.txt', import.meta.url), 'utf8'), dirname: import.meta.dirname }`,
          `import fs from 'node:fs'`,
        ),
        'data.txt': 'inside',
        'read.ts': `import fs from 'node:fs'; fs.readFileSync(new URL('../secret.txt', import.meta.url))`,
        'write.ts': `import fs from 'node:fs'; fs.writeFileSync(new URL('./new.txt', import.meta.url), '')`,
        'spawn.ts': `import { execSync } from 'node:child_process'; execSync('true')`,
        'worker.ts': `import { Worker } from 'node:worker_threads'; new Worker('', { eval: true })`,
        'throws.ts': `throw new Error('on purpose')`,
      },
      { around: { 'secret.txt': 'hunter2' } },
    )
    const result = await project.run(undefined, { nodePath })
    expect(result.isolation.node.split('.')[0]).toBe(major)
    expect(namesOf(result).sort()).toEqual(['bucket', 'own', 'user'])
    expect(propsOf(result, 'bucket')).toEqual({ version: result.isolation.node, env: ['PATH'] })
    expect(propsOf(result, 'own')).toEqual({ text: 'inside', dirname: project.root })
    expect(propsOf(result, 'user')).toEqual({ of: { __attrRef: { entity: 'bucket', attribute: 'arn' } } })
    const error = (name: string) => errorOf(result, project.file(name))
    for (const [name, operation] of [
      ['read.ts', 'FileSystemRead'],
      ['write.ts', 'FileSystemWrite'],
      ['spawn.ts', 'ChildProcess'],
      ['worker.ts', 'WorkerThreads'],
    ] as const) {
      expect(error(name)?.type, name).toBe('permission')
      expect(error(name)?.message, name).toContain(`sandbox denied ${operation}`)
    }
    expect(error('throws.ts')).toMatchObject({ type: 'import', message: 'on purpose' })
    expect(result.errors).toHaveLength(5)
    expect(fs.existsSync(project.file('new.txt'))).toBe(false)
  })

  it('tells of a child that exits, dies, spins, or fills its memory', async () => {
    const project = sandboxProject({
      'good.ts': GOOD,
      'exits.ts': `process.exit(0)`,
      'waits.ts': `await new Promise(() => {})`,
      'dies.ts': `console.error('last words'); process.abort()`,
      'spins.ts': `for (;;);`,
      'fills.ts': `const kept = []; for (;;) kept.push(new Array(100_000).fill(kept.length))`,
    })
    const ended = async (name: string, options = {}) =>
      (await project.run(['good.ts', name], { nodePath, ...options })).errors
    expect(await ended('exits.ts')).toMatchObject([{ file: project.file('exits.ts') }])
    expect(await ended('waits.ts')).toMatchObject([{ file: project.file('waits.ts') }])
    expect(await ended('dies.ts')).toMatchObject([{ file: '', message: expect.stringMatching(/SIGABRT.*last words/s) }])
    expect(await ended('spins.ts', { timeoutMs: 1500 })).toMatchObject([{ file: '' }])
    expect(await ended('fills.ts', { memoryLimitMb: 256 })).toMatchObject([{ file: '' }])
  })

  it('says nothing of its own on stderr', async () => {
    const project = sandboxProject({ 'good.ts': GOOD })
    const lines: string[] = []
    const result = await project.run(['good.ts'], { nodePath, onOutput: (line) => void lines.push(line) })
    expect(result.errors).toEqual([])
    expect(lines).toEqual([])
  })

  it('evaluates a configuration and calls a function', async () => {
    const project = sandboxProject({ 'a.ts': `export const config = { a: 1 }; export default (n: number) => n + 1` })
    const file = project.file('a.ts')
    const called = await callSandboxed({ file, args: [1], buildRoot: project.root }, { nodePath })
    expect(called.value).toBe(2)
    const error = await refusal(evaluateConfigSandboxed(file, project.root, { nodePath }))
    expect(error.message).toContain('<root>: a function')
  })

  const names: [string, string][] = [
    ['a space', 'a b'],
    ['a comma', 'a,b'],
    ['only a comma', ','],
    ['quotes', `a'b"c\`d`],
    ['a hash', 'a#b'],
    ['a question mark', 'a?b'],
    ['percent signs', 'a%b%20c%'],
    ['a backslash', 'a\\b'],
    ['Unicode', 'é😀漢\u0301'],
    ['a newline', 'a\nb'],
    ['a dollar, a brace and a backtick', 'a${b}`'],
    ['a leading dash', '-a'],
    ['an equals sign', '--allow-fs-read=b'],
    ['a colon', 'a:b'],
    ['a tab', 'a\tb'],
  ]

  it.each(names)('takes a build root with %s, and grants that one only', async (_what, name) => {
    const secret = { 'secret.txt': 'hunter2' }
    // What a grant that is cut at the odd character would lead to.
    const neighbours = Object.fromEntries(
      [...new Set(name.split(/[^a-z]/i).concat(`${name}x`))]
        .filter((part) => part !== '' && part !== name)
        .map((part) => [`${part}/secret.txt`, 'hunter2']),
    )
    const reads = (target: string) =>
      `try { fs.readFileSync(${JSON.stringify(target)}); read.push(${JSON.stringify(target)}) } catch {}`
    const project = sandboxProject({}, { rootPath: name, around: { ...secret, ...neighbours } })
    const targets = ['secret.txt', ...Object.keys(neighbours)].map((target) => path.join(project.base, target))
    fs.writeFileSync(project.file('data,1.txt'), 'inside')
    fs.mkdirSync(project.file('sub'))
    fs.writeFileSync(project.file('sub/shared.ts'), `export const shared = 'shared'`)
    fs.writeFileSync(
      project.file('a.ts'),
      declaring(
        'a',
        `{ shared, text: fs.readFileSync(new URL('./data,1.txt', import.meta.url), 'utf8'), dirname: __dirname, read }`,
        `import fs from 'node:fs'; import { shared } from './sub/shared'\nconst read: string[] = []\n${targets.map(reads).join('\n')}`,
      ),
    )
    // By Node's Permission Model alone, which reads the grants as text, and with whatever else holds here.
    for (const isolation of ['node', 'best-effort'] as const) {
      const options = { nodePath, isolation }
      const result = await runFallbackFilesSandboxed([project.file('a.ts')], project.root, options)
      expect(result.errors).toEqual([])
      expect(propsOf(result, 'a')).toEqual({ shared: 'shared', text: 'inside', dirname: project.root, read: [] })
      expect(result.provenanceByName).toEqual({ a: project.file('a.ts') })
    }
  })

  it('does not take a build root with a star for its neighbours', async () => {
    const project = sandboxProject(
      {},
      { rootPath: 'a*', around: { 'ab/secret.txt': 'hunter2', 'a/secret.txt': 'hunter2' } },
    )
    const targets = ['ab/secret.txt', 'a/secret.txt'].map((target) => path.join(project.base, target))
    const reads = targets.map(
      (target) => `try { fs.readFileSync(${JSON.stringify(target)}); read.push(${JSON.stringify(target)}) } catch {}`,
    )
    fs.writeFileSync(
      project.file('a.ts'),
      declaring('a', '{ read }', `import fs from 'node:fs'\nconst read: string[] = []\n${reads.join('\n')}`),
    )
    const outcome = await runFallbackFilesSandboxed([project.file('a.ts')], project.root, { nodePath }).catch(
      (error: Error & { code?: string }) => error,
    )
    if (outcome instanceof Error) {
      expect(outcome).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' })
      expect(outcome.message).toContain(`'buildRoot'`)
      expect(outcome.message).toContain('*')
    } else {
      expect(outcome.isolation.guarantees.files.held).toBe(true)
      expect(outcome.errors).toEqual([])
      expect(propsOf(outcome, 'a')).toEqual({ read: [] })
    }
    // Without the kernel it is always refused; a link to it is no way around.
    fs.symlinkSync('a*', path.join(project.base, 'link'))
    for (const root of [project.root, path.join(project.base, 'link')]) {
      const error = await refusal(
        runFallbackFilesSandboxed([path.join(root, 'a.ts')], root, { nodePath, isolation: 'node' }),
      )
      expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
    }
    const plain = sandboxProject({ 'good.ts': GOOD }, { around: { 'star*/file.txt': '' } })
    const readRoots = [path.join(plain.base, 'star*')]
    const error = await refusal(plain.run(['good.ts'], { nodePath, readRoots, isolation: 'node' }))
    expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
    expect(error.message).toContain(`'options.readRoots[0]'`)
  })
})
