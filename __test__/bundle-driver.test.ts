// The call itself (contract/sandbox.md, "Bundling"; contract/surface.md): what it gives, where `typescript` comes from,
// what it does with bad arguments and with a signal, and that nothing of it keeps a process alive.

import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildBundle,
  bundleAndRun,
  bundleDriver,
  createProject,
  packageFiles,
  packageRoot,
  permissionSwitches,
  reportingDriver,
  resolveExternalPackages,
  runNode,
} from './support/projects'
import { refusal } from './support/refusal'
import { createWorkspace, removeTree } from './support/workspace'

const temp = fs.realpathSync(os.tmpdir())

function foldersNamed(prefix: string): string[] {
  return fs.readdirSync(temp).filter((name) => name.startsWith(prefix))
}

describe('a bundle', () => {
  it('is one file in a fresh private folder for each call', async () => {
    const project = createProject({ 'a.ts': 'export const a = 1' })
    const driver = reportingDriver([project.file('a.ts')])
    const bundles = await Promise.all(
      Array.from({ length: 8 }, () => bundleDriver(driver, { buildRoot: project.root })),
    )
    expect(new Set(bundles.map(({ bundleDir }) => bundleDir)).size).toBe(8)
    for (const { bundlePath, bundleDir, bytes, durationMs } of bundles) {
      expect(path.dirname(bundleDir)).toBe(temp)
      expect(path.basename(bundleDir)).toMatch(/^chant-sandbox-.{6}$/)
      expect(fs.realpathSync(bundleDir)).toBe(bundleDir)
      expect(fs.statSync(bundleDir).mode & 0o7777).toBe(0o700)
      expect(path.dirname(bundlePath)).toBe(bundleDir)
      expect(bundlePath).toMatch(/\.mjs$/)
      expect(fs.readdirSync(bundleDir)).toEqual([path.basename(bundlePath)])
      expect(bytes).toBe(fs.statSync(bundlePath).size)
      expect(durationMs).toBeGreaterThan(0)
      removeTree(bundleDir)
    }
  })

  it('is in a folder of the name that was asked for', async () => {
    const { bundleDir } = await bundleDriver('', { tempPrefix: 'sallyport-named-' })
    expect(path.basename(bundleDir)).toMatch(/^sallyport-named-.{6}$/)
    removeTree(bundleDir)
  })

  it('needs no build root, and takes the driver as TypeScript', async () => {
    const { bundleDir, bundlePath } = await bundleDriver('const n: number = 6; console.log(JSON.stringify(n))')
    expect(await runNode([bundlePath])).toBe('6\n')
    removeTree(bundleDir)
  })

  it('holds the event loop for no part of reading a project', async () => {
    const names = Array.from({ length: 400 }, (_, index) => `file-${index}`)
    const project = createProject(
      Object.fromEntries(names.map((name) => [`${name}.ts`, `export const value = ${JSON.stringify(name)}`])),
    )
    let turns = 0
    const ticking = setInterval(() => (turns += 1), 1)
    const reports = await bundleAndRun(
      project,
      names.map((name) => `${name}.ts`),
    )
    clearInterval(ticking)
    expect(reports).toEqual(names.map((name) => ({ exports: { value: name } })))
    expect(turns).toBeGreaterThan(5)
  })
})

describe('typescript', () => {
  const ours = fs.realpathSync(path.join(packageRoot, 'node_modules/typescript/lib/typescript.js'))

  it('stays outside, is one path from import and require, and loads under the grants', async () => {
    const project = createProject({
      ...packageFiles('typescript', "exports.version = 'of the project'"),
      ...packageFiles('requires', "module.exports = require('typescript')"),
      'a.ts': `
        import ts from 'typescript'
        import { version } from 'typescript'
        import * as all from 'typescript'
        import required from 'requires'
        export const same = [ts === required, ts.version === version, all.version === version, (await import('typescript')).default === ts]
        export const found = ts.version
      `,
    })
    const { version } = JSON.parse(
      fs.readFileSync(path.join(packageRoot, 'node_modules/typescript/package.json'), 'utf8'),
    )
    const driver = reportingDriver([project.file('a.ts')])
    const { bundleDir, bundlePath, externalReadPaths, bytes } = await bundleDriver(driver, { buildRoot: project.root })
    expect(externalReadPaths).toEqual([path.dirname(ours)])
    expect(bytes).toBeLessThan(100_000)
    expect(fs.readFileSync(bundlePath, 'utf8')).toContain(JSON.stringify(ours))
    const switches = permissionSwitches([bundleDir, project.root, ...externalReadPaths])
    expect(JSON.parse(await runNode([...switches, bundlePath]))).toEqual([
      { exports: { same: [true, true, true, true], found: version } },
    ])
    removeTree(bundleDir)
  })

  it('comes from the tool root, else from the package of the modules', async () => {
    const tool = createProject({
      ...packageFiles('typescript', "exports.version = 'of the tool'"),
      'lib/collect.js': '',
      'package.json': { json: { name: 'tool' } },
    })
    const project = createProject({ 'a.ts': "import ts from 'typescript'; export const { version } = ts" })
    const collect = tool.file('lib/collect.js')
    const modules = { collect, resolve: collect, entityWireCodec: collect, provenance: collect }
    const expected = [{ exports: { version: 'of the tool' } }]
    expect(await bundleAndRun(project, ['a.ts'], { toolRoot: tool.root })).toEqual(expected)
    expect(await bundleAndRun(project, ['a.ts'], { modules })).toEqual(expected)
    expect(await resolveExternalPackages({ modules })).toMatchObject({
      packages: [{ name: 'typescript', path: tool.file('node_modules/typescript/index.js') }],
      readPaths: [tool.file('node_modules/typescript')],
    })
  })

  it('is an error of the file that needs it where the tool has none, and the miss is kept', async () => {
    const tool = createProject({})
    const project = createProject({
      ...packageFiles('typescript', "exports.version = 'of the project'"),
      'a.ts': "import ts from 'typescript'; export const { version } = ts",
      'b.ts': "export let found; try { found = require('typescript') } catch (error) { found = 'none' }",
      'good.ts': 'export const good = 1',
    })
    const options = { toolRoot: tool.root }
    const [a, b, good] = await bundleAndRun(project, ['a.ts', 'b.ts', 'good.ts'], options)
    expect(a?.error?.message).toContain(`${project.file('a.ts')}:1:16: Could not resolve "typescript"`)
    expect(a?.error?.message).toContain(tool.root)
    expect([b, good]).toEqual([{ exports: { found: 'none' } }, { exports: { good: 1 } }])
    tool.write(
      Object.fromEntries(
        Object.entries(packageFiles('typescript', '')).map(([name, text]) => [`project/${name}`, text]),
      ),
    )
    expect(await resolveExternalPackages(options)).toMatchObject({ packages: [], readPaths: [] })
  })

  it('is told where it is there and has no file to be required, as TypeScript 7', async () => {
    const tool = createProject({
      'node_modules/typescript/package.json': { json: { name: 'typescript', exports: { './unstable': './a.js' } } },
    })
    const project = createProject({ 'a.ts': "import ts from 'typescript'; export const { version } = ts" })
    const [a] = await bundleAndRun(project, ['a.ts'], { toolRoot: tool.root })
    expect(a?.error?.message).toContain('has no file that can be required')
    expect(a?.error?.message).toContain(tool.file('node_modules/typescript'))
  })
})

describe('a signal', () => {
  it('ends the bundling with its reason, before and during, and leaves no folder', async () => {
    const prefix = 'sallyport-aborted-'
    const reason = new Error('enough')
    const options = { tempPrefix: prefix }
    await expect(bundleDriver('', { ...options, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const names = Array.from({ length: 300 }, (_, index) => `f${index}.ts`)
    const project = createProject(Object.fromEntries(names.map((name) => [name, 'export const x = 1'])))
    for (const delay of [0, 1, 3, 10]) {
      const controller = new AbortController()
      setTimeout(() => controller.abort(reason), delay)
      const driver = reportingDriver(names.map(project.file))
      const settled = await bundleDriver(driver, { ...options, signal: controller.signal }).then(
        ({ bundleDir }) => removeTree(bundleDir),
        (error: unknown) => error,
      )
      expect([undefined, reason]).toContain(settled)
    }
    expect(foldersNamed(prefix)).toEqual([])
  })

  it('is taken from a build that would go on', async () => {
    const { base: bundleDir } = createWorkspace()
    const project = createProject({ 'a.ts': 'export const a = 1' })
    const controller = new AbortController()
    const building = buildBundle({
      driverSource: reportingDriver([project.file('a.ts')]),
      bundleDir,
      buildRoot: project.root,
      signal: controller.signal,
    })
    controller.abort('a reason that is no error')
    await expect(building).rejects.toBe('a reason that is no error')
  })
})

describe('a project that esbuild hangs on', () => {
  it('is given up on with the signal, and the builds beside it go on', async () => {
    const project = createProject({ 'sub/a.ts': 'export const a = 1' })
    const other = createProject({ 'a.ts': 'export const a = 1' })
    execFileSync('mkfifo', [project.file('sub/package.json')])
    const script = `
      const { bundleDriver } = require(${JSON.stringify(path.join(packageRoot, 'js/bundle.js'))})
      const { rmSync } = require('node:fs')
      const drivers = ${JSON.stringify([project.file('sub/a.ts'), other.file('a.ts')].map((file) => reportingDriver([file])))}
      const controller = new AbortController()
      setTimeout(() => controller.abort(new Error('enough')), 300)
      bundleDriver(drivers[0], { signal: controller.signal }).catch(async (error) => {
        const bundle = await bundleDriver(drivers[1])
        rmSync(bundle.bundleDir, { recursive: true })
        console.log(JSON.stringify(error.message))
      })
    `
    expect(await runNode(['-e', script])).toBe('"enough"\n')
  })
})

describe('a process', () => {
  it("exits by itself after bundling, loads esbuild only for it, and leaves the caller's as it is", async () => {
    const project = createProject({ 'a.ts': 'export const a = 1', 'b.ts': 'const = 1' })
    const script = `
      const Module = require('node:module')
      const { rmSync } = require('node:fs')
      const { bundleDriver } = require(${JSON.stringify(path.join(packageRoot, 'js/bundle.js'))})
      const compile = Module.prototype._compile
      let loaded = 0
      Module.prototype._compile = function (content, filename, ...rest) {
        if (/[\\/]esbuild[\\/]/.test(filename)) loaded += 1
        return compile.call(this, content, filename, ...rest)
      }
      const bundle = async () => {
        const { bundleDir } = await bundleDriver(${JSON.stringify(reportingDriver([project.file('a.ts'), project.file('b.ts')]))})
        rmSync(bundleDir, { recursive: true })
      }
      const isCached = () => Object.keys(require.cache).some((name) => /[\\/]esbuild[\\/]/.test(name))
      const main = async () => {
        const before = loaded
        await bundle()
        const after = [loaded, isCached()]
        const own = Module.createRequire(${JSON.stringify(path.join(packageRoot, 'index.js'))})('esbuild')
        await bundle()
        const kept = Module.createRequire(${JSON.stringify(path.join(packageRoot, 'index.js'))})('esbuild') === own
        console.log(JSON.stringify([before, ...after, loaded, kept]))
      }
      main()
    `
    expect(JSON.parse(await runNode(['-e', script]))).toEqual([0, 1, false, 2, true])
  })
})

describe('bad arguments', () => {
  const modules = { collect: '/a', resolve: '/a', entityWireCodec: '/a', provenance: '/a' }
  it.each<[string, string, unknown[]]>([
    ['driverSource', 'ERR_INVALID_ARG_TYPE', [undefined]],
    ['driverSource', 'ERR_INVALID_ARG_TYPE', [Buffer.from('')]],
    ['options', 'ERR_INVALID_ARG_TYPE', ['', null]],
    ['options', 'ERR_INVALID_ARG_TYPE', ['', []]],
    ['options.buildRoot', 'ERR_INVALID_ARG_TYPE', ['', { buildRoot: 1 }]],
    ['options.buildRoot', 'ERR_INVALID_ARG_VALUE', ['', { buildRoot: '' }]],
    ['options.buildRoot', 'ERR_INVALID_ARG_VALUE', ['', { buildRoot: '/a\0' }]],
    ['options.readRoots', 'ERR_INVALID_ARG_TYPE', ['', { readRoots: '/a' }]],
    ['options.readRoots[1]', 'ERR_INVALID_ARG_TYPE', ['', { readRoots: ['/a', 1] }]],
    ['options.readRoots[0]', 'ERR_INVALID_ARG_VALUE', ['', { readRoots: [''] }]],
    ['options.modules', 'ERR_INVALID_ARG_TYPE', ['', { modules: 'x' }]],
    ['options.modules.resolve', 'ERR_INVALID_ARG_TYPE', ['', { modules: { ...modules, resolve: undefined } }]],
    ['options.modules.collect', 'ERR_INVALID_ARG_VALUE', ['', { modules: { ...modules, collect: 'relative' } }]],
    ['options.modules.params', 'ERR_INVALID_ARG_VALUE', ['', { modules: { ...modules, params: '' } }]],
    ['options.toolRoot', 'ERR_INVALID_ARG_TYPE', ['', { toolRoot: {} }]],
    ['options.tempPrefix', 'ERR_INVALID_ARG_TYPE', ['', { tempPrefix: 1 }]],
    ['options.tempPrefix', 'ERR_INVALID_ARG_VALUE', ['', { tempPrefix: '' }]],
    ['options.tempPrefix', 'ERR_INVALID_ARG_VALUE', ['', { tempPrefix: '../x' }]],
    ['options.signal', 'ERR_INVALID_ARG_TYPE', ['', { signal: {} }]],
  ])('%s is refused with %s', async (name, code, values) => {
    const error = await refusal((bundleDriver as (...values: unknown[]) => Promise<unknown>)(...values))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe(code)
    expect(error.message).toContain(name)
  })
})
