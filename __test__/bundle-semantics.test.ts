// A bundled file runs as it does unbundled (contract/sandbox.md, "Bundling"; cases cjs-require, own-location, native-dep
// and bundle-semantics). Each bundle is run by Node, under its permission switch.

import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

import { bundleAndRun, createProject, packageFiles } from './support/projects'

describe('CommonJS packages', () => {
  it('may require modules of Node, beside files that make a require of their own', async () => {
    const project = createProject({
      ...packageFiles('cj', "exports.read = require('fs').readFileSync; exports.os = require('node:os').EOL"),
      'a.ts': "import cj from 'cj'; export const kinds = [typeof cj.read, cj.os]",
      'b.ts': `
        import { createRequire } from 'node:module'
        const require = createRequire(import.meta.url)
        export const kind = typeof require('fs').readFileSync
        export const own = require('./data.json').own
      `,
      'c.cjs': "const require2 = require('path'); exports.base = require2.basename('/x/y')",
      'data.json': '{ "own": 7 }',
    })
    expect(await bundleAndRun(project, ['a.ts', 'b.ts', 'c.cjs'])).toEqual(
      [
        { exports: { kinds: ['function', '\n'] } },
        { exports: { kind: 'function', own: 7 } },
        { exports: { base: 'y', default: { base: 'y' }, 'module.exports': { base: 'y' } } },
      ].map((report, index) =>
        index === 2 ? expect.objectContaining({ exports: expect.objectContaining({ base: 'y' }) }) : report,
      ),
    )
  })

  it('evaluate again after they threw, and a module that threw throws the same again', async () => {
    const project = createProject({
      'boom.ts':
        'globalThis.count = (globalThis.count ?? 0) + 1; throw new Error(`boom ${globalThis.count}`); export const boom = 1',
      'a.ts': "import { boom } from './boom'; export const a = boom",
      'b.ts': "import { boom } from './boom'; export const b = boom",
      'good.ts': 'export const good = 1',
    })
    const [a, b, good] = await bundleAndRun(project, ['a.ts', 'b.ts', 'good.ts'])
    expect([a?.error?.message, b?.error?.message]).toEqual(['boom 1', 'boom 1'])
    expect(good).toEqual({ exports: { good: 1 } })
  })
})

describe("Node's own modules", () => {
  it('are those that are there, and one that is not is an error of the file that imports it', async () => {
    const project = createProject({
      'good.ts': `
        import fs, { readFileSync } from 'node:fs'
        import * as all from 'fs'
        import { readFile } from 'fs/promises'
        import EventEmitter, { once } from 'node:events'
        import process from 'node:process'
        export const same = [fs.readFileSync === readFileSync, all.readFileSync === readFileSync, all.default === fs]
        export const kinds = [typeof readFile, typeof EventEmitter, typeof once, typeof process.cwd]
        export const text = readFileSync(new URL('./x.txt', import.meta.url), 'utf8')
      `,
      'x.txt': 'x',
      'bad.ts': "import { x } from 'node:there-is-no-such-module'; export const y = x",
      'dynamic.ts': "export const caught = await import('node:no-such').then(() => 'none', (error) => error.code)",
    })
    const [good, bad, dynamic] = await bundleAndRun(project, ['good.ts', 'bad.ts', 'dynamic.ts'])
    expect(good).toEqual({
      exports: { same: [true, true, true], kinds: ['function', 'function', 'function', 'function'], text: 'x' },
    })
    expect(bad?.error).toMatchObject({ code: 'ERR_UNKNOWN_BUILTIN_MODULE' })
    expect(dynamic).toEqual({ exports: { caught: 'ERR_UNKNOWN_BUILTIN_MODULE' } })
  })
})

describe('the place of a file', () => {
  it('is its own, by every name it has', async () => {
    const project = createProject(
      {
        'one/data.json': '"one"',
        'one/a.ts': `
        import { readFileSync } from 'node:fs'
        export const data = JSON.parse(readFileSync(new URL('./data.json', import.meta.url), 'utf8'))
        export const { url, dirname, filename } = import.meta
        export const resolved = [import.meta.resolve('./data.json'), import.meta.resolve('fs'), import.meta.resolve('file:///x')]
      `,
        'two/data.json': '"two"',
        'two/b.cts': `
        'use strict'
        const fs = require('node:fs'), path = require('node:path')
        exports.data = JSON.parse(fs.readFileSync(path.join(__dirname, 'data.json'), 'utf8'))
        exports.places = [__dirname, __filename]
      `,
        'two/own.ts': `
        import { dirname } from 'node:path'
        import { fileURLToPath } from 'node:url'
        const __filename = fileURLToPath(import.meta.url), __dirname = dirname(__filename)
        export const places = [__dirname, __filename, typeof import.meta, (import.meta as any).main]
      `,
        'hash.mjs': '#!/usr/bin/env node\nexport const place = import.meta.filename',
        'mark.ts': '\uFEFFexport const place = import.meta.filename',
        'spaced.ts': 'export const place = import\n  . /* here */ meta.filename',
        'denied.ts': `
        import { readFileSync } from 'node:fs'
        export const secret = readFileSync(new URL('../outside.txt', import.meta.url), 'utf8')
      `,
      },
      { around: { 'outside.txt': 'secret' } },
    )
    const files = ['one/a.ts', 'two/b.cts', 'two/own.ts', 'hash.mjs', 'mark.ts', 'spaced.ts', 'denied.ts']
    const [a, b, own, hash, mark, spaced, denied] = await bundleAndRun(project, files)
    const one = project.file('one')
    const two = project.file('two')
    expect(a?.exports).toEqual({
      data: 'one',
      url: pathToFileURL(path.join(one, 'a.ts')).href,
      dirname: one,
      filename: path.join(one, 'a.ts'),
      resolved: [pathToFileURL(path.join(one, 'data.json')).href, 'node:fs', 'file:///x'],
    })
    expect(b?.exports).toMatchObject({ data: 'two', places: [two, path.join(two, 'b.cts')] })
    expect(own?.exports).toEqual({ places: [two, path.join(two, 'own.ts'), 'object', false] })
    expect(hash?.exports).toEqual({ place: project.file('hash.mjs') })
    expect(mark?.exports).toEqual({ place: project.file('mark.ts') })
    expect(spaced?.exports).toEqual({ place: project.file('spaced.ts') })
    expect(denied?.error).toMatchObject({ code: 'ERR_ACCESS_DENIED', resource: path.join(project.base, 'outside.txt') })
  })
})

describe('native addons', () => {
  it('leave a package its fallback, and are named where it has none', async () => {
    const project = createProject({
      ...packageFiles('native', "module.exports = require('./b.node')"),
      ...packageFiles('unsuffixed', "module.exports = require('./b')"),
      ...packageFiles(
        'tries',
        "try { module.exports = require('./b.node') } catch { module.exports = 'in JavaScript' }",
      ),
      ...packageFiles(
        'absent',
        "try { module.exports = require('./none.node') } catch { module.exports = 'in JavaScript' }",
      ),
      'node_modules/native/b.node': '\x7fELF',
      'node_modules/unsuffixed/b.node': '\x7fELF',
      'node_modules/tries/b.node': '\x7fELF',
      'a.ts': "import b from 'native'; export const a = b",
      'u.ts': "import b from 'unsuffixed'; export const a = b",
      'b.ts': "import b from 'tries'; import c from 'absent'; export const found = [b, c]",
      'good.ts': 'export const good = 1',
    })
    const [native, unsuffixed, tries, good] = await bundleAndRun(project, ['a.ts', 'u.ts', 'b.ts', 'good.ts'])
    expect(native?.error).toMatchObject({
      code: 'ERR_DLOPEN_DISABLED',
      message: expect.stringContaining(project.file('node_modules/native/b.node')),
    })
    expect(native?.error?.message).toContain(project.file('node_modules/native/index.js'))
    // Only Node itself finds an addon without its suffix.
    expect(unsuffixed?.error?.message).toContain(`${project.file('node_modules/unsuffixed/index.js')}:1:26: `)
    expect(unsuffixed?.error?.message).toContain('"./b"')
    expect(tries).toEqual({ exports: { found: ['in JavaScript', 'in JavaScript'] } })
    expect(good).toEqual({ exports: { good: 1 } })
  })
})

describe('names and effects', () => {
  it('are those of the source', async () => {
    const effect = 'globalThis.effects = (globalThis.effects ?? 0) + 1'
    const project = createProject({
      ...packageFiles('quiet', effect, { sideEffects: false }),
      'a.ts':
        'class Cfg {} export const name = new Cfg().constructor.name; export function helper() {} export const f = helper.name',
      'b.ts': 'class Cfg {} function helper() {} export const names = [new Cfg().constructor.name, helper.name]',
      'c.ts': "import 'quiet'; export const effects = globalThis.effects",
      'd.ts': "import { shared } from './shared'; shared.d = true; export { shared }",
      'e.ts': "import { shared } from './shared'; shared.e = true; export { shared }",
      'shared.ts': 'export const shared: Record<string, boolean> = {}',
      'pure.ts': "export const calls: string[] = []; /* @__PURE__ */ calls.push('pure')",
    })
    expect(await bundleAndRun(project, ['a.ts', 'b.ts', 'c.ts', 'd.ts', 'e.ts', 'pure.ts'])).toEqual([
      { exports: { name: 'Cfg', helper: '[function]', f: 'helper' } },
      { exports: { names: ['Cfg', 'helper'] } },
      { exports: { effects: 1 } },
      { exports: { shared: { d: true, e: true } } },
      { exports: { shared: { d: true, e: true } } },
      { exports: { calls: ['pure'] } },
    ])
  })

  it('are kept with JSON, text, decorators, top-level await and tsconfig paths', async () => {
    const project = createProject({
      'tsconfig.json': '{ "compilerOptions": { "paths": { "@/*": ["./lib/*"] } } } // as TypeScript has it',
      'lib/value.ts': 'export const value = await Promise.resolve(5)',
      'data.json': '{ "n": 1 }',
      'text.txt': 'plain',
      'a.ts': `
        import data from './data.json' with { type: 'json' }
        import text from './text.txt'
        import source from './lib/value.ts' with { type: 'text' }
        import { value } from '@/value'
        function seen(target: unknown, context: { name: string }) { names.push(context.name) }
        const names: string[] = []
        @seen class Decorated { @seen field = 1 }
        export { data, names, source, text, value }
      `,
    })
    expect(await bundleAndRun(project, ['a.ts'])).toEqual([
      {
        exports: {
          data: { n: 1 },
          names: ['field', 'Decorated'],
          source: 'export const value = await Promise.resolve(5)',
          text: 'plain',
          value: 5,
        },
      },
    ])
  })
})
