// The bundler is no way out (contract/sandbox.md, "Bundling"): what may enter a bundle and what is refused, as a
// permission error of the importing file that names specifier and target and quotes nothing; the other files go on.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildBundle,
  bundleAndRun,
  bundleDriver,
  createProject,
  packageFiles,
  permissionSwitches,
  reportingDriver,
  runNode,
  type Project,
  type ProjectFiles,
  type ImportReport,
} from './support/projects'
import { refusal } from './support/refusal'
import { createWorkspace } from './support/workspace'

const SECRET = 'hunter2-never-to-be-seen'

function expectRefused(report: ImportReport | undefined, target: string, specifier: string): void {
  expect(report?.error).toMatchObject({ code: 'ERR_ACCESS_DENIED', permission: 'FileSystemRead' })
  const { message = '', resource = '' } = report?.error ?? {}
  for (const text of [message, resource]) {
    expect(text).toContain(target)
    expect(text).toContain(specifier)
  }
  expect(JSON.stringify(report)).not.toContain(SECRET)
}

/** A project with a good file beside the others, and a secret outside. */
function projectWith(files: ProjectFiles, around: ProjectFiles = {}, rootPath = 'project'): Project {
  return createProject({ 'good.ts': 'export const good = 1', ...files }, { around, rootPath })
}

describe('a file outside', () => {
  it('is refused however it is asked for', async () => {
    const outside: ProjectFiles = {
      'outside/secret.ts': `export const secret = '${SECRET}'`,
      'outside/secret.json': { json: { secret: SECRET } },
      'outside/broken.json': `{ "secret": ${SECRET}`,
      'outside/secret.txt': SECRET,
      'outside/broken.ts': `const ${SECRET} = ;`,
      'outside/package/package.json': { json: { main: 'main.js' } },
      'outside/package/main.js': `module.exports = '${SECRET}'`,
    }
    const attempts: Record<string, [source: string, target: string, specifier: string]> = {
      'static.ts': ["import { secret } from '../outside/secret'; export { secret }", 'secret.ts', '../outside/secret'],
      'star.ts': ["export * from '../outside/secret'", 'secret.ts', '../outside/secret'],
      'dynamic.ts': ["export const s = await import('../outside/secret')", 'secret.ts', '../outside/secret'],
      'caught.ts': [
        "export let s; try { s = require('../outside/secret') } catch { s = 'caught' }",
        'secret.ts',
        '../outside/secret',
      ],
      'json.ts': ["import s from '../outside/secret.json'; export { s }", 'secret.json', '../outside/secret.json'],
      'attribute.ts': [
        "import s from '../outside/secret.json' with { type: 'json' }; export { s }",
        'secret.json',
        '../outside/secret.json',
      ],
      'text-attribute.ts': [
        "import s from '../outside/secret.ts' with { type: 'text' }; export { s }",
        'secret.ts',
        '../outside/secret.ts',
      ],
      'broken-json.ts': [
        "import s from '../outside/broken.json'; export { s }",
        'broken.json',
        '../outside/broken.json',
      ],
      'text.ts': ["import s from '../outside/secret.txt'; export { s }", 'secret.txt', '../outside/secret.txt'],
      'broken.ts': ["import s from '../outside/broken'; export { s }", 'broken.ts', '../outside/broken'],
      'directory.ts': ["import s from '../outside/package'; export { s }", 'package/main.js', '../outside/package'],
      'link.ts': ["import s from './linked.json'; export { s }", 'secret.json', './linked.json'],
      'folder-link.ts': ["import s from './folder/secret.json'; export { s }", 'secret.json', './folder/secret.json'],
      'pattern.ts': [
        'export const load = (name: string) => import(`../outside/${name}.json`)',
        '.json',
        '../outside/**/*.json',
      ],
      'module.mts': [
        "import { secret } from '../outside/secret.ts'; export { secret }",
        'secret.ts',
        '../outside/secret.ts',
      ],
      'common.cts': ["exports.s = require('../outside/secret')", 'secret.ts', '../outside/secret'],
      'deep.ts': ["import { s } from './json'; export { s }", 'secret.json', '../outside/secret.json'],
    }
    const project = projectWith(
      {
        ...Object.fromEntries(Object.entries(attempts).map(([name, [source]]) => [name, source])),
        'linked.json': { link: '../outside/secret.json' },
        folder: { link: '../outside' },
      },
      outside,
    )
    project.write({
      'project/absolute.ts': `import s from ${JSON.stringify(path.join(project.base, 'outside/secret.json'))}; export { s }`,
      'project/url.ts': `import s from ${JSON.stringify(`file://${project.base}/outside/secret.json`)}; export { s }`,
      'project/entry.ts': { link: '../outside/secret.ts' },
    })
    const names = [...Object.keys(attempts), 'absolute.ts', 'url.ts', 'entry.ts', 'good.ts']
    const reports = await bundleAndRun(project, names)
    const byName = Object.fromEntries(names.map((name, index) => [name, reports[index]]))
    for (const [name, [, target, specifier]] of Object.entries(attempts)) {
      const full = target.startsWith('.') ? target : path.join(project.base, 'outside', target)
      expectRefused(byName[name], full, specifier)
    }
    const json = path.join(project.base, 'outside/secret.json')
    expectRefused(byName['absolute.ts'], json, json)
    expectRefused(byName['url.ts'], json, 'file://')
    expectRefused(byName['entry.ts'], path.join(project.base, 'outside/secret.ts'), project.file('entry.ts'))
    expect(byName['json.ts']?.error).toMatchObject({ file: project.file('json.ts'), line: 1, column: 15 })
    expect(byName['good.ts']).toEqual({ exports: { good: 1 } })
  })

  it('leaves neither its text nor the names beside it in the bundle', async () => {
    const project = projectWith(
      {
        'a.ts': 'export const load = (name: string) => import(`../outside/${name}.json`)',
        'b.ts': "import s from '../outside/secret-name.json'; export { s }",
      },
      { 'outside/secret-name.json': { json: SECRET }, 'outside/other-name.json': { json: SECRET } },
    )
    const driver = reportingDriver(['a.ts', 'b.ts', 'good.ts'].map(project.file))
    const { bundlePath, bundleDir } = await bundleDriver(driver, { buildRoot: project.root })
    const text = fs.readFileSync(bundlePath, 'utf8')
    fs.rmSync(bundleDir, { recursive: true })
    expect(text).not.toContain(SECRET)
    expect(text).not.toContain('require_other_name')
    expect(text.split('other-name.json').length + text.split('secret-name.json').length).toBeLessThan(20)
  })

  it('is refused though a link is swapped in after esbuild has resolved it', async () => {
    const project = projectWith(
      { 'a.ts': "import s from './moving/data.json'; export { s }", 'real/data.json': '"inside"' },
      {
        'outside/data.json': { json: SECRET },
      },
    )
    // The directory is a link that changes while builds run: whatever is read must be what was checked.
    const link = project.file('moving')
    fs.symlinkSync('real', link)
    let swapping = true
    const swap = (async () => {
      for (let round = 0; swapping; round += 1) {
        fs.symlinkSync(round % 2 === 0 ? '../outside' : 'real', `${link}.new`)
        fs.renameSync(`${link}.new`, link)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    try {
      for (let round = 0; round < 12; round += 1) {
        const { bundlePath, bundleDir } = await bundleDriver(reportingDriver([project.file('a.ts')]), {
          buildRoot: project.root,
        })
        expect(fs.readFileSync(bundlePath, 'utf8')).not.toContain(SECRET)
        fs.rmSync(bundleDir, { recursive: true })
      }
    } finally {
      swapping = false
      await swap
    }
  })

  it('enters where it is a read root, or where there is no build root to check against', async () => {
    const project = projectWith(
      { 'a.ts': "import { shared } from '../outside/shared'; export { shared }" },
      { 'outside/shared.ts': 'export const shared = 1' },
    )
    const readRoots = [path.join(project.base, 'outside')]
    expect(await bundleAndRun(project, ['a.ts'], { readRoots })).toEqual([{ exports: { shared: 1 } }])
    expect(await bundleAndRun(project, ['a.ts'], { contained: false })).toEqual([{ exports: { shared: 1 } }])
  })

  it('ends the bundling where the driver itself asks for it', async () => {
    const project = projectWith({}, { 'outside/secret.ts': `export const secret = '${SECRET}'` })
    const secret = path.join(project.base, 'outside/secret.ts')
    const error = await refusal(
      bundleDriver(`import ${JSON.stringify(secret)}`, { buildRoot: project.root, tempPrefix: 'sallyport-refused-' }),
    )
    expect(error.message).toContain(secret)
    expect(error.message).not.toContain(SECRET)
  })
})

describe('a package', () => {
  it('may be in a node_modules above the build root, wherever its link leads', async () => {
    const project = projectWith(
      {
        'a.ts':
          "import a from 'hoisted'; import b from 'linked'; import c from '@scope/linked'; export const all = [a, b, c]",
        'b.ts': "import cache from '../../node_modules/.cache/secret.json'; export { cache }",
        'c.ts': "import lock from '../../node_modules/lock.json'; export { lock }",
        'd.ts': "import other from '../../other/index.js'; export { other }",
      },
      {
        ...packageFiles('hoisted', "module.exports = require('dependency')"),
        ...packageFiles(
          'dependency',
          "module.exports = 'dependency'",
          {},
          'node_modules/.pnpm/dependency@1/node_modules',
        ),
        'node_modules/dependency': { link: '.pnpm/dependency@1/node_modules/dependency' },
        ...packageFiles('linked', "module.exports = 'linked'", {}, 'elsewhere'),
        'node_modules/linked': { link: '../elsewhere/linked' },
        ...packageFiles('scoped', "module.exports = 'scoped'", {}, 'elsewhere'),
        'node_modules/@scope/linked': { link: '../../elsewhere/scoped' },
        'node_modules/.cache/secret.json': { json: SECRET },
        'node_modules/lock.json': { json: SECRET },
        'other/index.js': `module.exports = '${SECRET}'`,
        'package.json': { json: { name: 'above' } },
      },
      'packages/project',
    )
    const [a, b, c, d] = await bundleAndRun(project, ['a.ts', 'b.ts', 'c.ts', 'd.ts'])
    expect(a).toEqual({ exports: { all: ['dependency', 'linked', 'scoped'] } })
    expectRefused(
      b,
      path.join(project.base, 'node_modules/.cache/secret.json'),
      '../../node_modules/.cache/secret.json',
    )
    expectRefused(c, path.join(project.base, 'node_modules/lock.json'), '../../node_modules/lock.json')
    expectRefused(d, path.join(project.base, 'other/index.js'), '../../other/index.js')
  })

  it.each<[string, ProjectFiles]>([
    ['npm and yarn', { 'package.json': { json: { workspaces: ['packages/*'] } } }],
    ['pnpm', { 'package.json': { json: {} }, 'pnpm-workspace.yaml': 'packages: [packages/*]' }],
  ])('may be linked from the workspace of %s, and from nowhere else', async (_, root) => {
    const project = projectWith(
      {
        'node_modules/sibling': { link: '../../sibling' },
        'node_modules/stranger': { link: '../../../../stranger' },
        'node_modules/folder': { link: '../../../folder' },
        'a.ts': "import a from 'sibling'; export { a }",
        'b.ts': "import b from 'stranger'; export { b }",
        'c.ts': "import c from 'folder/secret.json'; export { c }",
        'd.ts': "import d from '../unlinked/index.js'; export { d }",
      },
      {
        ...Object.fromEntries(Object.entries(root).map(([name, content]) => [`workspace/${name}`, content])),
        ...packageFiles('sibling', "module.exports = 'sibling'", {}, 'workspace/packages'),
        ...packageFiles('unlinked', `module.exports = '${SECRET}'`, {}, 'workspace/packages'),
        ...packageFiles('stranger', `module.exports = '${SECRET}'`, {}, '.'),
        'workspace/folder/secret.json': { json: SECRET },
      },
      'workspace/packages/project',
    )
    const [a, b, c, d] = await bundleAndRun(project, ['a.ts', 'b.ts', 'c.ts', 'd.ts'])
    expect(a).toEqual({ exports: { a: 'sibling' } })
    expectRefused(b, path.join(project.base, 'stranger/index.js'), 'stranger')
    expectRefused(c, path.join(project.base, 'workspace/folder/secret.json'), 'folder/secret.json')
    expectRefused(d, path.join(project.base, 'workspace/packages/unlinked/index.js'), '../unlinked/index.js')
  })

  it('may be that of a trusted module', async () => {
    const tool = {
      ...packageFiles('tool', "module.exports = { collect: 'tool' }", {}, 'elsewhere'),
      'elsewhere/tool/lib/collect.js': "exports.collect = require('../index.js').collect",
      'elsewhere/secret.json': { json: SECRET },
    }
    const project = projectWith(
      {
        'a.ts': "import t from '../elsewhere/tool/lib/collect.js'; export { t }",
        'b.ts': "import t from '../elsewhere/secret.json'; export { t }",
      },
      tool,
    )
    const collect = path.join(project.base, 'elsewhere/tool/lib/collect.js')
    const modules = { collect, resolve: collect, entityWireCodec: collect, provenance: collect }
    const [a, b] = await bundleAndRun(project, ['a.ts', 'b.ts'], { modules })
    expect(a).toEqual({ exports: { t: { collect: 'tool' } } })
    expectRefused(b, path.join(project.base, 'elsewhere/secret.json'), '../elsewhere/secret.json')
  })

  it('is not looked for in NODE_PATH or by a Plug’n’Play manifest', async () => {
    const project = projectWith(
      {
        'a.ts': "import a from 'hidden'; export { a }",
        '.pnp.data.json': '{ broken',
        '.pnp.cjs': 'broken',
      },
      packageFiles('hidden', `module.exports = '${SECRET}'`, {}, 'elsewhere'),
    )
    const before = process.env.NODE_PATH
    process.env.NODE_PATH = path.join(project.base, 'elsewhere')
    try {
      const [a, good] = await bundleAndRun(project, ['a.ts', 'good.ts'])
      expect(a?.error?.message).toContain('Could not resolve "hidden"')
      expect(good).toEqual({ exports: { good: 1 } })
    } finally {
      if (before === undefined) delete process.env.NODE_PATH
      else process.env.NODE_PATH = before
    }
  })
})

describe('a configuration file', () => {
  async function bundled(project: Project, files: string[]) {
    const { base: bundleDir } = createWorkspace()
    const { bundlePath, fileErrors } = await buildBundle({
      driverSource: reportingDriver(files.map(project.file)),
      bundleDir,
      buildRoot: project.root,
    })
    const output = await runNode([...permissionSwitches([bundleDir, project.root]), bundlePath])
    return { reports: JSON.parse(output), fileErrors, text: fs.readFileSync(bundlePath, 'utf8') }
  }

  it.each([
    ['text that is no JSON', `${SECRET}: 1`],
    ['compiler options', `{ "compilerOptions": { "jsx": "react", "jsxFactory": "hunter2" } }`],
  ])('is not extended from outside, where there is %s', async (_, content) => {
    const project = projectWith(
      { 'a.tsx': 'export const a = () => <p />', 'tsconfig.json': '{ "extends": "../outside/secret", }' },
      { 'outside/secret.json': content },
    )
    const { reports, fileErrors, text } = await bundled(project, ['a.tsx', 'good.ts'])
    expect(fileErrors).toEqual([
      {
        file: project.file('tsconfig.json'),
        type: 'permission',
        message: expect.stringContaining(path.join(project.base, 'outside/secret.json')),
      },
    ])
    expect(fileErrors[0]?.message).toContain('"../outside/secret"')
    expect(JSON.stringify([reports, fileErrors]) + text).not.toContain('hunter2')
    expect(reports).toEqual([{ exports: { a: '[function]' } }, { exports: { good: 1 } }])
  })

  it('is no link to the outside', async () => {
    const project = projectWith({ 'tsconfig.json': { link: '../outside/secret' } }, { 'outside/secret': SECRET })
    const { reports, fileErrors } = await bundled(project, ['good.ts'])
    expect(reports).toEqual([{ exports: { good: 1 } }])
    expect(fileErrors).toEqual([expect.objectContaining({ file: project.file('tsconfig.json'), type: 'permission' })])
    expect(JSON.stringify(fileErrors)).not.toContain(SECRET)
  })

  it('may extend what the workspace shares, a package, and what is above', async () => {
    const project = projectWith(
      {
        'a.ts': "import { b } from '@/b'; export { b }",
        'lib/b.ts': 'export const b = 1',
        'tsconfig.json':
          '{ /* shared */ "extends": ["../tsconfig.base", "shared-config"], "compilerOptions": { "paths": { "@/*": ["./lib/*"], } } }',
        ...packageFiles('shared-config', ''),
        'node_modules/shared-config/tsconfig.json': '{ "compilerOptions": {} }',
      },
      { 'tsconfig.base.json': '{ "compilerOptions": {} }' },
    )
    const { reports, fileErrors } = await bundled(project, ['a.ts'])
    expect([reports, fileErrors]).toEqual([[{ exports: { b: 1 } }], []])
  })

  it('that is a manifest is not quoted from outside', async () => {
    const project = projectWith(
      {
        'sub/a.ts': 'export const a = 1',
        'sub/package.json': { link: '../../outside/secret' },
      },
      { 'outside/secret': `${SECRET}` },
    )
    const { reports } = await bundled(project, ['sub/a.ts', 'good.ts'])
    expectRefused(reports[0], path.join(project.base, 'outside/secret'), 'package.json')
    expect(reports[1]).toEqual({ exports: { good: 1 } })
  })
})
