// Files that are made to confuse, stop or fill the bundler, which works with the caller's rights (docs/threat-model.md,
// "Around the child"): chains of configuration files that two readers follow differently, files of no kind or without an
// end, patterns that lead outside, and surroundings that a run must not depend on.

import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import * as esbuild from 'esbuild'
import { describe, expect, it } from 'vitest'

import { runFallbackFilesSandboxed } from '../index.mjs'
import { runChild } from './support/child'
import { createWorkspace } from './support/workspace'

const { readContained } = createRequire(import.meta.url)('../js/bundle/read.js') as {
  readContained(file: string, containment: undefined, options: { budget: { bytes: number } }): Promise<unknown>
}

type Files = Record<string, string | { link: string } | { fifo: true } | { bytes: number }>

/** A project in a folder of its own; keys that begin with `../` are beside it. */
function projectWith(files: Files): { root: string; base: string } {
  const { base } = createWorkspace()
  const root = path.join(base, 'project')
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    if (typeof content === 'string') fs.writeFileSync(file, content)
    else if ('link' in content) fs.symlinkSync(content.link, file)
    else if ('fifo' in content) execFileSync('mkfifo', [file])
    else {
      fs.writeFileSync(file, '')
      fs.truncateSync(file, content.bytes)
    }
  }
  return { root, base }
}

async function run(root: string, names: string[], options = {}) {
  const files = names.map((name) => path.join(root, name))
  return runFallbackFilesSandboxed(files, root, {
    isolation: 'node',
    timeoutMs: 30_000,
    onOutput: () => {},
    ...options,
  })
}

const OUTSIDE = '{ "compilerOptions": { "jsx": "react", "jsxFactory": "SECRETFACTORY" } }'
const NOTHING = '{ "compilerOptions": {} }'

describe('compiler options from outside', () => {
  const source = 'export const a = <p />'
  it.each<[string, Files]>([
    [
      'by the field "tsconfig" of a manifest',
      {
        'tsconfig.json': '{ "extends": "pkg" }',
        'node_modules/pkg/package.json': '{ "name": "pkg", "tsconfig": "../../../outside.json" }',
      },
    ],
    [
      'by a link that such a field names, beside a "main" that is fine',
      {
        'tsconfig.json': '{ "extends": "pkg" }',
        'node_modules/pkg/package.json': '{ "name": "pkg", "tsconfig": "y.json", "main": "ok.js" }',
        'node_modules/pkg/ok.js': NOTHING,
        'node_modules/pkg/y.json': { link: '../../../outside.json' },
      },
    ],
    [
      'by a condition of "exports" that only one of two readers takes',
      {
        'tsconfig.json': '{ "extends": "pkg/x" }',
        'node_modules/pkg/package.json':
          '{ "name": "pkg", "exports": { "./x": { "node-addons": "./ok.json", "module": "./y.json", "require": "./y.json" } } }',
        'node_modules/pkg/ok.json': NOTHING,
        'node_modules/pkg/y.json': { link: '../../../outside.json' },
      },
    ],
    [
      'by a pattern of "exports"',
      {
        'tsconfig.json': '{ "extends": "pkg/x" }',
        'node_modules/pkg/package.json': '{ "name": "pkg", "exports": { "./*": "./y-*.json" } }',
        'node_modules/pkg/y-x.json': { link: '../../../outside.json' },
      },
    ],
    [
      'by a key that is there twice',
      {
        'tsconfig.json': '{ "extends": "./b.json", "ext\\u0065nds": "./ok.json" }',
        'ok.json': NOTHING,
        'b.json': { link: '../outside.json' },
      },
    ],
    [
      'from the real place of a linked directory',
      {
        'tsconfig.json': '{ "extends": "./link/t.json" }',
        link: { link: 'deep/real' },
        'deep/real/t.json': '{ "extends": "../b.json" }',
        'deep/b.json': { link: '../../outside.json' },
        'b.json': NOTHING,
      },
    ],
    [
      'from the real place of a linked configuration',
      {
        'tsconfig.json': { link: 'deep/real.json' },
        'deep/real.json': '{ "extends": "./b.json" }',
        'deep/b.json': { link: '../../outside.json' },
        'b.json': NOTHING,
      },
    ],
    ...[
      ['carriage return', '\r'],
      ['line separator', '\u2028'],
      ['paragraph separator', '\u2029'],
    ].map(([name, end]): [string, Files] => [
      `behind a comment that ends with a ${name}`,
      {
        'tsconfig.json': `{ // c${end}"extends": "./b.json",\n "compilerOptions": {} }`,
        'b.json': { link: '../outside.json' },
      },
    ]),
    [
      'by a backslash that one reader takes for a separator',
      { 'tsconfig.json': '{ "extends": ".\\\\b.json" }', 'node_modules/.\\b.json': { link: '../../outside.json' } },
    ],
    [
      'by a target of "exports" that one reader decodes',
      {
        'tsconfig.json': '{ "extends": "pkg/x" }',
        'node_modules/pkg/package.json': '{ "name": "pkg", "exports": { "./x": "./%6cink.json" } }',
        'node_modules/pkg/link.json': { link: '../../../outside.json' },
      },
    ],
    ...[
      '{ "exports": { "./x": "./link.json" }, "exports": { "./x": "./ok.json" } }',
      '{ "exports": { "./x": "./link.json", "./x": "./ok.json" } }',
      '{ "exports": { "./": "./" } }',
    ].map((manifest): [string, Files] => [
      `by a manifest that says more than one thing: ${manifest}`,
      {
        'tsconfig.json': manifest.includes('./x') ? '{ "extends": "pkg/x" }' : '{ "extends": "pkg/link.json" }',
        'node_modules/pkg/package.json': manifest,
        'node_modules/pkg/ok.json': NOTHING,
        'node_modules/pkg/link.json': { link: '../../../outside.json' },
      },
    ]),
    [
      'by a field "tsconfig" that is there twice',
      {
        'tsconfig.json': '{ "extends": "pkg" }',
        'node_modules/pkg/package.json': '{ "tsconfig": "./link.json", "tsconfig": "./ok.json" }',
        'node_modules/pkg/ok.json': NOTHING,
        'node_modules/pkg/link.json': { link: '../../../outside.json' },
      },
    ],
    [
      'by a second kind of configuration, where names that differ in case hide the first',
      {
        'tsconfig.json': NOTHING,
        'jsconfig.json': '{ "extends": "./b.json" }',
        'b.json': { link: '../outside.json' },
        ...Object.fromEntries(
          ['TSCONFIG.JSON', 'Tsconfig.json', 'tSconfig.json', 'tsConfig.json', 'tsconfig.JSON', 'tsconfig.Json'].map(
            (name) => [`${name}/x`, ''],
          ),
        ),
      },
    ],
  ])('are refused: %s', async (_, files) => {
    const { root } = projectWith({ 'a.tsx': source, '../outside.json': OUTSIDE, ...files })
    const { errors } = await run(root, ['a.tsx'])
    expect(errors.filter(({ file }) => file.endsWith('.json'))).toHaveLength(1)
    expect(errors.join()).not.toContain('SECRETFACTORY')
  })

  it('are refused: by half of a surrogate pair, which two readers write as different bytes', async () => {
    const { root } = projectWith({ 'a.tsx': source, '../outside.json': OUTSIDE })
    const name = Buffer.concat([Buffer.from(`${root}/x`), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('.json')])
    fs.symlinkSync('../outside.json', name)
    fs.writeFileSync(path.join(root, 'tsconfig.json'), '{ "extends": "./x\\ud800.json" }')
    const { errors } = await run(root, ['a.tsx'])
    expect(errors.filter(({ file }) => file.endsWith('.json'))).toHaveLength(1)
    expect(errors.join()).not.toContain('SECRETFACTORY')
  })

  it('are refused at the end of a chain that is longer than any is followed', async () => {
    const files: Files = { 'a.tsx': source, '../outside.json': OUTSIDE, 'last.json': { link: '../outside.json' } }
    for (let at = 0; at < 70; at += 1) {
      const name = at === 0 ? 'tsconfig.json' : `t${at}.json`
      files[name] = `{ "extends": "./${at === 69 ? 'last' : `t${at + 1}`}.json" }`
    }
    const { root } = projectWith(files)
    const { errors } = await run(root, ['a.tsx'])
    expect(errors.join()).not.toContain('SECRETFACTORY')
    expect(errors[0]).toMatchObject({
      file: path.join(root, 't64.json'),
      message: expect.stringContaining('extends more than 64 files'),
    })
  })

  it('are refused where one configuration extends more files than anyone writes', async () => {
    const names = Array.from({ length: 65 }, (_, index) => `./b${index}.json`)
    const files = Object.fromEntries(names.map((name) => [name, NOTHING]))
    const { root } = projectWith({ ...files, 'a.ts': 'export const a = 1' })
    const configuration = path.join(root, 'tsconfig.json')
    // The same one very often is one.
    fs.writeFileSync(configuration, JSON.stringify({ extends: Array(10_000).fill('./b1.json') }))
    expect((await run(root, ['a.ts'])).errors).toEqual([])
    fs.writeFileSync(configuration, JSON.stringify({ extends: names }))
    expect((await run(root, ['a.ts'])).errors).toMatchObject([
      { file: configuration, message: expect.stringContaining('extends more than 64 files') },
    ])
  })

  it('are taken from a package inside, whatever way its manifest leads there', async () => {
    const { root } = projectWith({
      'a.ts':
        'const tag = (target: any, name: string) => { if (name !== "x") throw new Error(name) }\nclass A { @tag x = 1 }\nexport const a = [new A()].length',
      'tsconfig.json': '// comment\n{ "extends": ["one/base", "@two/config"], }',
      'node_modules/one/package.json': '{ "name": "one", "exports": { "./*": { "default": "./configs/*.json" } } }',
      'node_modules/one/configs/base.json': NOTHING,
      'node_modules/@two/config/package.json': '{ "name": "@two/config", "tsconfig": "./strict.json" }',
      'node_modules/@two/config/strict.json': '{ "compilerOptions": { "experimentalDecorators": true } }',
    })
    expect((await run(root, ['a.ts'])).errors).toEqual([])
  })
})

describe('a file without an end', () => {
  it.each<[string, Files]>([
    [
      'a FIFO in place of a manifest, where a configuration looks for a package',
      {
        'tsconfig.json': '{ "extends": "./sub/base.json" }',
        'sub/base.json': '{ "extends": "nope" }',
        'sub/package.json': { fifo: true },
      },
    ],
    ['a string that is never closed in a configuration', { 'tsconfig.json': `{} "${'\\"'.repeat(300_000)}` }],
    ['comments that are never closed in a configuration', { 'tsconfig.json': `{} ${'/*'.repeat(200_000)}` }],
    [
      'a configuration of gigabytes',
      { 'tsconfig.json': '{ "extends": "./large.json" }', 'large.json': { bytes: 3 * 2 ** 30 } },
    ],
  ])('ends no run: %s', async (_, files) => {
    const { root } = projectWith({ 'a.ts': 'export const a = 1', ...files })
    // Without the mend the event loop is held for minutes, or for ever.
    const { errors } = await run(root, ['a.ts'])
    for (const { file } of errors) expect(file).toMatch(/\.(?:json|ts)$/)
  })

  it('counts against what all files of a bundle may bring in', async () => {
    const { root } = projectWith({ 'a.txt': '12345678', 'b.txt': '123' })
    const budget = { bytes: 10 }
    await readContained(path.join(root, 'a.txt'), undefined, { budget })
    await expect(readContained(path.join(root, 'b.txt'), undefined, { budget })).rejects.toThrow('has 3 bytes')
    expect(budget.bytes).toBe(2)
  })

  it('takes no memory where its content is not needed, and is refused where it is', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `f${index}`)
    const { root } = projectWith({
      ...Object.fromEntries(names.map((name) => [`${name}.css`, { bytes: 250 * 1024 ** 2 }])),
      'styles.ts': names.map((name) => `import './${name}.css'`).join('\n'),
      'one.json': { bytes: 300 * 1024 ** 2 },
      'data.ts': "import './one.json'",
    })
    const before = process.memoryUsage.rss()
    expect((await run(root, ['styles.ts'])).errors).toEqual([])
    expect(process.memoryUsage.rss() - before).toBeLessThan(250 * 1024 ** 2)
    const { errors } = await run(root, ['data.ts'])
    expect(errors).toHaveLength(1)
    expect(errors[0]?.message).toContain('no more than 268435456 are bundled in all')
  })

  it('meets a bound on the memory of esbuild, which reads manifests of any size', async () => {
    const { base } = createWorkspace()
    fs.mkdirSync(path.join(base, 'project'))
    fs.writeFileSync(path.join(base, 'project', 'a.ts'), 'export const a = 1')
    const body = `
      const root = path.join(input, 'project')
      await sallyport.runFallbackFilesSandboxed([path.join(root, 'a.ts')], root, { isolation: 'node' })
      for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
        try {
          const parent = / \\(.*\\) \\S (\\d+) /s.exec(fs.readFileSync('/proc/' + pid + '/stat', 'utf8'))[1]
          if (Number(parent) === process.pid) send(fs.readFileSync('/proc/' + pid + '/limits', 'utf8'))
        } catch (error) {
          if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error
        }
      }
      process.exit(0)`
    const messages = await runChild(body, { workspace: createWorkspace(), input: base })
    expect(messages.join()).toMatch(/Max data size +2147483648 +2147483648/)
  })
})

describe('a long line of errors, each of which quotes all of it', () => {
  const hostile = Array.from({ length: 3000 }, (_, index) => `import "./missing${index}"`).join(';')

  it('is the error of its own file alone, and holds up no other build', async () => {
    const { root } = projectWith({ 'bad.ts': hostile, 'good.ts': 'console.log("good")', 'other.ts': 'export {}' })
    const lines: string[] = []
    const onOutput = (line: string) => lines.push(line)
    const runs = await Promise.all([
      run(root, ['bad.ts', 'good.ts'], { onOutput }),
      ...Array.from({ length: 4 }, () => run(root, ['other.ts'])),
    ])
    expect(runs.map(({ errors }) => errors.map(({ file, message }) => [path.basename(file), message]))).toEqual([
      [['bad.ts', expect.stringContaining('more than 32 MiB of messages')]],
      ...Array.from({ length: 4 }, () => []),
    ])
    expect(lines).toEqual(['good'])
  })

  it('is no error that only speaks like an esbuild that was stopped', async () => {
    const words = ['./The service was stopped', './The service is no longer running']
    const { root } = projectWith({
      'a.ts': `import "${words[0]}"`,
      'b.ts': `import "${words[1]}"`,
      'c.ts': 'export {}',
    })
    const { errors } = await run(root, ['a.ts', 'b.ts', 'c.ts'])
    expect(errors.map(({ file, message }) => [path.basename(file), message])).toEqual([
      ['a.ts', expect.stringContaining(`Could not resolve "${words[0]}"`)],
      ['b.ts', expect.stringContaining(`Could not resolve "${words[1]}"`)],
    ])
  })

  it("ends no build of the caller's own", async () => {
    const { root } = projectWith({ 'bad.ts': hostile })
    const context = await esbuild.context({
      stdin: { contents: 'await 1' },
      write: false,
      plugins: [
        {
          name: 'waits-for-the-run',
          setup: (build) => build.onStart(async () => void (await run(root, ['bad.ts']))),
        },
      ],
    })
    try {
      const { outputFiles } = await context.rebuild()
      expect(outputFiles[0]?.text).toBe('await 1;\n')
    } finally {
      await context.dispose()
    }
  })

  it('are no warnings of code that is right, as a minified file may have them', async () => {
    const warned = Array.from({ length: 4000 }, (_, index) => `typeof window === "strnig"&&a(${index})`).join(';')
    const { root } = projectWith({ 'a.js': `function a() {}${warned};console.log("a")` })
    const lines: string[] = []
    const { errors } = await run(root, ['a.js'], { onOutput: (line: string) => lines.push(line) })
    expect([errors, lines]).toEqual([[], ['a']])
  })
})

describe('a pattern that leads outside', () => {
  it('tells no names of what is there, and is the error of its own file alone', async () => {
    const { root } = projectWith({
      '../elsewhere/secret-name.js': 'module.exports = 1',
      'inside/x.js': 'module.exports = 1',
      'a.ts': 'export const load = (n: string) => require(`../elsewhere/secret${n}`)',
      'b.ts': 'export const load = (n: string) => require(`./inside/${n}`)',
    })
    const { errors } = await run(root, ['a.ts', 'b.ts'])
    expect(errors.map(({ file, type }) => [path.basename(file), type])).toEqual([['a.ts', 'permission']])
    expect(JSON.stringify(errors.map((error) => error.toJSON()))).not.toContain('secret-name')
  })
})

describe('surroundings', () => {
  it('may name a root twice', async () => {
    const { root } = projectWith({ 'a.ts': 'export const a = 1' })
    expect((await run(root, ['a.ts'], { readRoots: [root, root] })).errors).toEqual([])
  })

  it('may not grant everything', async () => {
    const { root } = projectWith({ 'a.ts': 'export const a = 1' })
    await expect(run(root, ['a.ts'], { readRoots: ['/'] })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(/options\.readRoots\[0\].*root of the file system/),
    })
  })

  it('may be a umask that takes everything, also as an ordinary user', async () => {
    const workspace = createWorkspace()
    const body = `
      process.umask(0o777)
      const { errors } = await sallyport.runFallbackFilesSandboxed([input.file], input.root)
      send(errors.map(String))
      process.exit(0)`
    const root = path.join(workspace.base, 'project')
    fs.mkdirSync(root)
    const file = path.join(root, 'a.ts')
    fs.writeFileSync(file, 'export const a = 1')
    fs.chmodSync(root, 0o755)
    expect(await runChild(body, { workspace, asOrdinaryUser: true, input: { root, file } })).toEqual([[]])
  })

  it.each([
    [
      'a configuration that leads elsewhere',
      'tsconfig.json',
      (root: string) => JSON.stringify({ compilerOptions: { paths: { [`${root}/a.ts`]: [`${root}/b.ts`] } } }),
    ],
    ['a broken manifest', 'package.json', () => '{'],
    ["a Plug'n'Play manifest", '.pnp.data.json', () => '{'],
  ])('may be a temp directory in which somebody else put %s', async (_, name, content) => {
    const workspace = createWorkspace()
    const { root } = projectWith({ 'a.ts': 'console.log("a")', 'b.ts': 'console.log("b")' })
    const temp = path.join(workspace.base, 'shared')
    fs.mkdirSync(temp)
    fs.writeFileSync(path.join(temp, name), content(root))
    const body = `
      process.env.TMPDIR = input.temp
      const lines = []
      const options = { isolation: 'node', onOutput: (line) => lines.push(line) }
      const { errors } = await sallyport.runFallbackFilesSandboxed([path.join(input.root, 'a.ts')], input.root, options)
      send({ lines, errors: errors.map(String) })
      process.exit(0)`
    expect(await runChild(body, { workspace, input: { temp, root } })).toEqual([{ lines: ['a'], errors: [] }])
  })

  it('may not be a temp directory whose name Node takes for a wildcard', async () => {
    const workspace = createWorkspace()
    const temp = path.join(workspace.base, 'a*b')
    fs.mkdirSync(temp)
    const { root } = projectWith({ 'a.ts': 'export const a = 1' })
    const body = `
      process.env.TMPDIR = input.temp
      try {
        await sallyport.runFallbackFilesSandboxed([path.join(input.root, 'a.ts')], input.root)
        send('ran')
      } catch (error) {
        send(describeError(error))
      }
      send(fs.readdirSync(input.temp))
      process.exit(0)`
    const messages = await runChild(body, { workspace, input: { temp, root } })
    expect(messages).toMatchObject([{ code: 'ERR_INVALID_ARG_VALUE', message: expect.stringContaining('TMPDIR') }, []])
  })
})
