// The inputs of public bug reports against sandboxed evaluation: each row of the "Sandboxed run" table in cases.md by
// its id, with every value in it.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { evaluateConfigSandboxed } from '../index.mjs'
import { packageFiles, packageRoot } from './support/projects'
import { refusal } from './support/refusal'
import { declaring, errorOf, GOOD, namesOf, propsOf, sandboxProject } from './support/sandbox'

describe('cjs-require', () => {
  it('a package whose CommonJS file requires fs works', async () => {
    const project = sandboxProject({
      ...packageFiles('cj', `const fs = require('fs'); exports.read = (name) => fs.readFileSync(name, 'utf8')`),
      'data.txt': 'inside',
      'a.ts': declaring('a', `{ text: cj.read(new URL('./data.txt', import.meta.url)) }`, `import cj from 'cj'`),
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ text: 'inside' })
  })

  it('typescript is the same one path from import and require, and never the project’s own', async () => {
    const decoy = packageFiles(
      'typescript',
      `exports.version = 'decoy'; exports.sys = { getExecutingFilePath: () => 'decoy' }`,
    )
    const project = sandboxProject({
      ...decoy,
      ...packageFiles('uses-typescript', `exports.ts = require('typescript')`),
      'a.ts': declaring(
        'a',
        `{ same: required.ts === imported && named === imported.version, place: imported.sys.getExecutingFilePath() }`,
        `import imported, { version as named } from 'typescript'; import required from 'uses-typescript'`,
      ),
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    const place = fs.realpathSync(path.join(packageRoot, 'node_modules', 'typescript', 'lib', 'typescript.js'))
    expect(propsOf(result, 'a')).toEqual({ same: true, place })
  })
})

describe('own-location', () => {
  it('each file sees its own place, and reading outside is still denied', async () => {
    const reads = (name: string, place: string) =>
      declaring(
        name,
        `JSON.parse(fs.readFileSync(${place}, 'utf8'))`,
        `import fs from 'node:fs'; import path from 'node:path'`,
      )
    const project = sandboxProject(
      {
        'one/data.json': { json: { of: 'one' } },
        'two/data.json': { json: { of: 'two' } },
        'one/a.ts': reads('byUrl', `new URL('./data.json', import.meta.url)`),
        'two/b.ts': reads('byDirname', `path.join(__dirname, 'data.json')`),
        'two/c.ts': declaring(
          'told',
          '{ dirname: import.meta.dirname, filename: import.meta.filename, url: import.meta.url, __dirname, __filename }',
        ),
        'two/d.ts': `import fs from 'node:fs'; fs.readFileSync(__dirname + '/../../secret')`,
        'two/e.ts': `import fs from 'node:fs'; fs.readFileSync(new URL('../../secret', import.meta.url))`,
      },
      { around: { secret: 'hunter2' } },
    )
    const result = await project.run(['one/a.ts', 'two/b.ts', 'two/c.ts', 'two/d.ts', 'two/e.ts'])
    // The same names in different directories would be prefixed; these differ.
    expect(propsOf(result, 'byUrl')).toEqual({ of: 'one' })
    expect(propsOf(result, 'byDirname')).toEqual({ of: 'two' })
    const filename = project.file('two/c.ts')
    const dirname = path.dirname(filename)
    expect(propsOf(result, 'told')).toEqual({
      dirname,
      filename,
      url: `file://${filename}`,
      __dirname: dirname,
      __filename: filename,
    })
    for (const name of ['two/d.ts', 'two/e.ts']) {
      const error = errorOf(result, project.file(name))
      expect(error?.type).toBe('permission')
      expect(error?.message).toMatch(/^sandbox denied FileSystemRead \(.*secret\)/)
    }
    expect(result.errors).toHaveLength(2)
  })
})

describe('native-dep', () => {
  it('a fallback is used; without one an error names file and addon; the others are unharmed', async () => {
    const project = sandboxProject({
      ...packageFiles('with-addon', `module.exports = require('./b.node')`),
      'node_modules/with-addon/b.node': Buffer.from([0x7f, 0x45, 0x4c, 0x46]),
      ...packageFiles(
        'with-fallback',
        `try { module.exports = require('./b.node') } catch { module.exports = 'fallback' }`,
      ),
      'node_modules/with-fallback/b.node': Buffer.from([0x7f, 0x45, 0x4c, 0x46]),
      'needs.ts': `import addon from 'with-addon'; console.log(addon)`,
      'falls-back.ts': declaring('fell', '{ back }', `import back from 'with-fallback'`),
      'good.ts': GOOD,
    })
    const result = await project.run()
    expect(result.errors).toMatchObject([{ file: project.file('needs.ts'), type: 'permission' }])
    expect(result.errors[0]?.message).toMatch(/^sandbox denied Addons \(/)
    expect(result.errors[0]?.message).toContain(project.file('node_modules/with-addon/b.node'))
    expect(result.errors[0]?.message).toContain(project.file('needs.ts'))
    expect(propsOf(result, 'fell')).toEqual({ back: 'fallback' })
    expect(namesOf(result).sort()).toEqual(['fell', 'good'])
  })
})

describe('no-report', () => {
  it.each([
    ['calls process.exit(0)', `console.error('leaving'); process.exit(0)`, '(exit code 0)\nleaving'],
    ['calls process.exit() in an import of its own', `import './exits'`, 'leaving'],
    ['calls process.reallyExit(0)', `(process as any).reallyExit(0)`, ''],
    ['sets an exit code and exits with it', `process.exitCode = 3; process.exit()`, '(exit code 3)'],
    ['has a top-level await that never settles', `await new Promise(() => {})`, 'before the file was imported'],
    ['awaits a timer that nothing waits for', `await new Promise((done) => setTimeout(done, 1e6).unref())`, ''],
    ['calls process.disconnect()', `process.disconnect()`, ''],
    ['takes away the listeners and exits', `process.removeAllListeners(); process.exit(0)`, ''],
  ])('a file that %s is an error that names it, and never an empty success', async (_how, source, said) => {
    const project = sandboxProject({
      'before.ts': declaring('before'),
      'bad.ts': source,
      'after.ts': declaring('after'),
      'exits.ts': `console.error('leaving'); process.exit(0)`,
    })
    const result = await project.run(['before.ts', 'bad.ts', 'after.ts'])
    expect(result.errors).toMatchObject([{ file: project.file('bad.ts'), type: 'import' }])
    expect(result.errors[0]?.message).toContain(said)
    expect(namesOf(result)).toContain('before')
    // Alone it is the same.
    const alone = await project.run(['bad.ts'])
    expect(alone.errors).toMatchObject([{ file: project.file('bad.ts') }])
    expect(alone.entities.size).toBe(0)
  })

  it.each([
    ['kills itself', `console.error('dying'); process.kill(process.pid, 'SIGKILL')`, /SIGKILL/],
    ['aborts', `console.error('dying'); process.abort()`, /SIGABRT/],
  ])('a file that %s is one error of the run, with what it had said', async (_how, source, signal) => {
    const project = sandboxProject({ 'good.ts': GOOD, 'bad.ts': source })
    const result = await project.run(['good.ts', 'bad.ts'])
    expect(result.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(result.errors[0]?.message).toMatch(signal)
    expect(result.errors[0]?.message).toContain('dying')
  })

  it('a configuration that does it is an error too', async () => {
    for (const source of [`process.exit(0)`, `await new Promise(() => {})`]) {
      const project = sandboxProject({ 'config.ts': source })
      const error = await refusal(evaluateConfigSandboxed(project.file('config.ts'), project.root))
      expect(error.message).toContain(`Failed to evaluate ${project.file('config.ts')} inside the --sandbox boundary: `)
      expect(error.message).toContain('the process ended')
    }
  })
})

describe('bundle-semantics', () => {
  it('names of classes are kept, and an import for its side effect runs', async () => {
    const project = sandboxProject({
      ...packageFiles('effect', `globalThis.effects = (globalThis.effects ?? 0) + 1`, { sideEffects: false }),
      'one.ts': `class Cfg {}; export const instance = new Cfg(); export const named = class Other {}; export function original() {}`,
      'two.ts': `class Cfg {}; export const instance = new Cfg()`,
      'a.ts': declaring(
        'a',
        '{ one: one.instance.constructor.name, two: two.instance.constructor.name, other: one.named.name, original: one.original.name, effects: (globalThis as any).effects }',
        `import 'effect'; import * as one from './one'; import * as two from './two'`,
      ),
    })
    const result = await project.run(['one.ts', 'two.ts', 'a.ts'])
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'a')).toEqual({ one: 'Cfg', two: 'Cfg', other: 'Other', original: 'original', effects: 1 })
  })
})

describe('big-message', () => {
  const sized = (megabytes: number, after = '') =>
    declaring('big', `{ text: 'é'.repeat(${megabytes} * 512 * 1024) }`) + after

  it('5 MB followed by an exit arrive whole', async () => {
    const project = sandboxProject({
      'a.ts': sized(5, `\nsetImmediate(() => process.exit(0)); process.on('exit', () => process.exit(1))`),
    })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'big').text === 'é'.repeat(5 * 512 * 1024)).toBe(true)
  })

  it('50 MB arrive whole', async () => {
    const project = sandboxProject({ 'a.ts': sized(50) })
    const result = await project.run()
    expect(result.errors).toEqual([])
    expect(propsOf(result, 'big').text === 'é'.repeat(50 * 512 * 1024)).toBe(true)
  })

  it('300 MB are over the cap: one error, in words', async () => {
    const project = sandboxProject({ 'a.ts': sized(300) })
    const result = await project.run()
    expect(result.errors).toMatchObject([{ file: '', type: 'import' }])
    expect(result.errors[0]?.message).toContain(`maxResultBytes=${256 * 1024 ** 2}`)
    expect(result.entities.size).toBe(0)
  })

  it('an error with 20 MB of text is cut with a mark', async () => {
    const project = sandboxProject({
      'throws.ts': `throw new Error('x'.repeat(20 * 1024 ** 2))`,
      'text.ts': `throw 'y'.repeat(20 * 1024 ** 2)`,
      'cause.ts': `throw new Error('short', { cause: new Error('z'.repeat(20 * 1024 ** 2)) })`,
      'good.ts': GOOD,
    })
    const result = await project.run()
    expect(errorOf(result, project.file('throws.ts'))?.message).toMatch(/^x+… \[cut\]$/)
    expect(errorOf(result, project.file('text.ts'))?.message).toMatch(/^y+… \[cut\]$/)
    expect(errorOf(result, project.file('cause.ts'))?.message).toBe('short')
    for (const { message } of result.errors) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(64 * 1024 + 16)
    expect(namesOf(result)).toEqual(['good'])
  })

  it('BigInt and cycles are named by path', async () => {
    const cases: [string, string, string][] = [
      ['{ list: [{ size: 1n }] }', 'list[0].size', 'a bigint'],
      ['{ inner: loop }', 'inner.self', 'a circular reference'],
    ]
    for (const [props, place, word] of cases) {
      const project = sandboxProject({
        'a.ts': declaring('a', props, 'const loop: any = {}; loop.self = loop'),
        'config.ts': `const loop: any = {}; loop.self = loop; export default ${props}`,
      })
      const result = await project.run(['a.ts'])
      expect(result.errors).toMatchObject([{ file: '', type: 'resolution' }])
      expect(result.errors[0]?.message).toContain(place)
      expect(result.errors[0]?.message).toContain(word)
      expect(result.entitySet).toEqual({ entities: [] })
      const error = await refusal(evaluateConfigSandboxed(project.file('config.ts'), project.root))
      expect(error.message).toContain(`${place}: ${word}`)
    }
  })
})

describe('relay-text', () => {
  const ESCAPE = '\u001b'

  async function relayed(source: string): Promise<string[]> {
    const project = sandboxProject({ 'a.ts': `${source}\n${GOOD}` })
    const lines: string[] = []
    const result = await project.run(['a.ts'], { onOutput: (line) => void lines.push(line) })
    expect(result.errors).toEqual([])
    expect(namesOf(result)).toEqual(['good'])
    return lines
  }

  it('65,535 ASCII bytes and then é arrive without a broken character', async () => {
    const lines = await relayed(`process.stdout.write('a'.repeat(65_535) + 'é\\n')`)
    expect(lines.join('\n').includes('\ufffd')).toBe(false)
    expect(lines.join('') === `${'a'.repeat(65_535)}é`).toBe(true)
  })

  it('so they do in lines, on both streams', async () => {
    const text = `${'a'.repeat(127)}\n`.repeat(511) + 'a'.repeat(127)
    const lines = await relayed(
      `const text = ${JSON.stringify(text)} + 'é\\n'; process.stdout.write(text); process.stderr.write(text)`,
    )
    expect(lines.filter((line) => line.endsWith('é'))).toHaveLength(2)
    expect(lines.some((line) => line.includes('\ufffd'))).toBe(false)
  })

  it('control sequences are made harmless except tab and newline', async () => {
    const sequences = [
      `${ESCAPE}]0;title\u0007`,
      `${ESCAPE}[2J${ESCAPE}[H`,
      `${ESCAPE}]52;c;aHVudGVyMg==\u0007`,
      'a\ttab',
      'back\b\bspace',
      'over\rwritten',
      '\u009b2J',
      'nul\0',
      '\u007f',
    ]
    const lines = await relayed(
      `for (const text of ${JSON.stringify(sequences)}) { console.log(text); console.error(text) }`,
    )
    expect(lines).toHaveLength(2 * sequences.length)
    for (const line of lines) {
      expect(line).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/)
    }
    const said = lines.join('\n')
    for (const text of [
      'a\ttab',
      '\\x1b]0;title\\x07',
      '\\x1b[2J\\x1b[H',
      '\\x1b]52;c;aHVudGVyMg==\\x07',
      '\\x9b2J',
      'nul\\x00',
    ]) {
      expect(said).toContain(text)
    }
  })

  it('the same holds for what an error tells of stderr', async () => {
    const project = sandboxProject({
      'a.ts': `console.error(${JSON.stringify(`${ESCAPE}]0;title\u0007`)}); process.abort()`,
    })
    const result = await project.run()
    expect(result.errors[0]?.message).toContain('\\x1b]0;title\\x07')
    expect(result.errors[0]?.message).not.toContain(ESCAPE)
  })

  it('a last line without a newline is there', async () => {
    expect(await relayed(`process.stdout.write('one\\ntwo')`)).toEqual(['one', 'two'])
  })

  it('so is what is written just before the result', async () => {
    const project = sandboxProject({
      'a.ts': GOOD,
      'z.ts': `for (let line = 0; line < 200; line += 1) console.log('line ' + line)`,
    })
    const lines: string[] = []
    await project.run(['a.ts', 'z.ts'], { onOutput: (line) => void lines.push(line) })
    expect(lines).toEqual(Array.from({ length: 200 }, (_, line) => `line ${line}`))
  })
})
