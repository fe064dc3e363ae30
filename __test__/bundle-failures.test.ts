// One bad file is one bad file (contract/sandbox.md, "Bundling"): it throws an error with the place where it is bad, and
// the files beside it are as they would be without it.

import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildBundle,
  bundleAndRun,
  bundleDriver,
  createProject,
  packageFiles,
  reportingDriver,
  runNode,
} from './support/projects'
import { createWorkspace, isRoot } from './support/workspace'

const good = { 'good.ts': 'export const good = 1' }
const isGood = { exports: { good: 1 } }

describe('one bad file', () => {
  it('is one bad file, with line and column', async () => {
    const project = createProject({
      ...good,
      'syntax.ts': "const text = 'ü'; const x = ;\n",
      'second.ts': 'export const a = 1\n  export const = 2',
      'located.ts': 'export const at = import.meta.url, x = ;',
      'hashbang.mjs': '#!/usr/bin/env node\nexport const at = import.meta.url, x = ;',
      'missing.ts': "\nimport { x } from 'no-such-package'\nexport { x }",
      'missing-file.ts': "export * from './no-such-file'",
      'missing-name.ts': "import { nothing } from './good'; export const x = nothing",
      'unknown.ts': "import picture from './picture.png'; export { picture }",
      'picture.png': 'png',
      'broken.json': '{ "a": 1, }',
      'json.ts': "import data from './broken.json'; export { data }",
      'attribute.ts': "import data from './broken.json' with { type: 'json' }; export { data }",
      'wrong-attribute.ts': "import data from './good' with { kind: 'json' }; export { data }",
      'url.ts': "import data from 'https://example.invalid/x.js'; export { data }",
      'data-url.ts': "import data from 'data:text/plain,hello'; export { data }",
      'sloppy.cjs': 'with ({}) { exports.x = 1 }',
      'deep.ts': "import { x } from './syntax'; export { x }",
      'deep.mts': "import x, { y } from './syntax.ts'; export { x, y }",
      'deep.cjs': "exports.x = require('./syntax.ts')",
      'caught.ts': "export const caught = await import('./syntax').then(() => 'none', (error) => error.message)",
      'optional.ts':
        "export let found; try { found = require('no-such-package') } catch (error) { found = error.code }",
    })
    const places: Record<string, string> = {
      'syntax.ts': 'syntax.ts:1:29: Unexpected ";"',
      'second.ts': 'second.ts:2:16: ',
      'located.ts': 'located.ts:1:40: Unexpected ";"',
      'hashbang.mjs': 'hashbang.mjs:2:40: Unexpected ";"',
      'missing.ts': 'missing.ts:2:19: Could not resolve "no-such-package"',
      'missing-file.ts': 'missing-file.ts:1:15: Could not resolve "./no-such-file"',
      'missing-name.ts': 'missing-name.ts:1:10: No matching export',
      'unknown.ts': 'unknown.ts:1:21: No loader is configured for ".png" files',
      'json.ts': 'broken.json:1:9: ',
      'attribute.ts': 'broken.json:1:9: ',
      'wrong-attribute.ts': 'wrong-attribute.ts:1:',
      'url.ts': 'url.ts:1:18: "https://example.invalid/x.js"',
      'data-url.ts': 'data-url.ts:1:18: "data:text/plain,hello"',
      'sloppy.cjs': 'sloppy.cjs:1:1: With statements',
      'deep.ts': 'syntax.ts:1:29: Unexpected ";"',
      'deep.mts': 'syntax.ts:1:29: Unexpected ";"',
      'deep.cjs': 'syntax.ts:1:29: Unexpected ";"',
    }
    const names = [...Object.keys(places), 'caught.ts', 'optional.ts', 'good.ts']
    const reports = await bundleAndRun(project, names)
    for (const [index, name] of names.slice(0, -3).entries()) {
      expect(reports[index]?.error?.message, name).toContain(`${project.root}/${places[name]}`)
    }
    expect(reports[0]?.error).toMatchObject({
      code: 'ERR_BUNDLE_FAILED',
      file: project.file('syntax.ts'),
      line: 1,
      column: 29,
    })
    expect(reports.slice(-3)).toEqual([
      { exports: { caught: expect.stringContaining('syntax.ts:1:29') } },
      { exports: { found: 'MODULE_NOT_FOUND' } },
      isGood,
    ])
  })

  it('may be a FIFO, a huge file, a folder, or not there', async () => {
    const project = createProject({ ...good, 'imports-fifo.ts': "import x from './pipe.json'; export { x }" })
    execFileSync('mkfifo', [project.file('pipe.json')])
    fs.closeSync(fs.openSync(project.file('huge.ts'), 'w'))
    fs.truncateSync(project.file('huge.ts'), 1024 ** 4)
    fs.mkdirSync(project.file('folder.ts'))
    const names = ['imports-fifo.ts', 'huge.ts', 'folder.ts', 'absent.ts', 'good.ts']
    const [fifo, huge, folder, absent, last] = await bundleAndRun(project, names)
    expect(fifo?.error?.message).toContain('imports-fifo.ts:1:15: ')
    expect(fifo?.error?.message).toContain(`"${project.file('pipe.json')}" is not a regular file`)
    expect(huge?.error?.message).toContain(`"${project.file('huge.ts')}" has 1099511627776 bytes`)
    expect(folder?.error).toBeDefined()
    expect(absent?.error).toBeDefined()
    expect(last).toEqual(isGood)
  })

  it('may be the manifest of a package', async () => {
    const project = createProject({
      ...good,
      ...packageFiles('broken', 'exports.x = 1'),
      'a.ts': "import { x } from 'broken'; export { x }",
      'b.ts': "import { x } from './a'; export { x }",
    })
    fs.writeFileSync(project.file('node_modules/broken/package.json'), '{\n broken')
    const [a, b, last] = await bundleAndRun(project, ['a.ts', 'b.ts', 'good.ts'])
    for (const report of [a, b]) {
      expect(report?.error?.message).toContain(`${project.file('node_modules/broken/package.json')}:2:2: `)
    }
    expect(last).toEqual(isGood)
  })

  it('may be a tsconfig.json, and is reported beside the files', async () => {
    const project = createProject({ ...good, 'tsconfig.json': '{\n  "compilerOptions": { bad }\n}' })
    const { base: bundleDir } = createWorkspace()
    const { bundlePath, fileErrors } = await buildBundle({
      driverSource: reportingDriver([project.file('good.ts')]),
      bundleDir,
      buildRoot: project.root,
    })
    const file = project.file('tsconfig.json')
    expect(fileErrors).toEqual([
      { file, type: 'import', line: 2, column: 24, message: expect.stringContaining(`${file}:2:24: `) },
    ])
    expect(JSON.parse(await runNode([bundlePath]))).toEqual([isGood])
  })

  it('may be one of very many, all bad', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `bad-${index}.ts`)
    const project = createProject({
      ...good,
      ...Object.fromEntries(names.map((name, index) => [name, index % 2 ? 'const = 1' : "import 'absent'"])),
    })
    const reports = await bundleAndRun(project, [...names, 'good.ts'])
    expect(reports.filter(({ error }) => error?.code === 'ERR_BUNDLE_FAILED')).toHaveLength(200)
    expect(reports.at(-1)).toEqual(isGood)
  })
})

describe('a file that the caller may not read', () => {
  it('is an error of the file that imports it, unless the caller is root and may', async () => {
    const project = createProject({
      ...good,
      'a.ts': "import { x } from './b'; export { x }",
      'b.ts': 'export const x = 1',
    })
    fs.chmodSync(project.file('b.ts'), 0)
    const [a, last] = await bundleAndRun(project, ['a.ts', 'good.ts'])
    const message = `${project.file('a.ts')}:1:19: "${project.file('b.ts')}" cannot be read: EACCES`
    expect(a).toEqual(isRoot ? { exports: { x: 1 } } : { error: expect.objectContaining({ message }) })
    expect(last).toEqual(isGood)
  })
})

describe('a driver', () => {
  it('that cannot be bundled rejects with the messages of esbuild, and leaves no folder', async () => {
    const project = createProject({
      'broken.ts': '\nconst = 1',
      'through.ts': "import './broken'",
      'good.ts': '',
    })
    const before = fs.readdirSync(path.dirname(project.base)).filter((name) => name.startsWith('sallyport-gone-'))
    const attempts: Record<string, object> = {
      'const = 1': { file: expect.stringMatching(/driver\.mts$/), line: 1, column: 6 },
      "\nimport 'no-such-package'": { file: expect.stringMatching(/driver\.mts$/), line: 2 },
      [`import ${JSON.stringify(project.file('broken.ts'))}`]: { file: project.file('broken.ts'), line: 2, column: 6 },
      [`import ${JSON.stringify(project.file('through.ts'))}`]: { file: project.file('broken.ts'), line: 2 },
    }
    for (const [source, location] of Object.entries(attempts)) {
      const rejected = bundleDriver(source, { tempPrefix: 'sallyport-gone-' })
      await expect(rejected).rejects.toMatchObject({
        errors: [{ text: expect.any(String), location: expect.objectContaining(location) }],
      })
    }
    const after = fs.readdirSync(path.dirname(project.base)).filter((name) => name.startsWith('sallyport-gone-'))
    expect(after).toEqual(before)
  })
})
