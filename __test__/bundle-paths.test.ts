// Every path works (contract/sandbox.md, "Bundling"): as build root, as file name and as package name. A star is what
// Node's grants cannot hold and is no matter of bundling, so it is run without them.

import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { bundleAndRun, createProject, packageFiles } from './support/projects'

const NAMES = {
  space: 'a b',
  'single quote': "it's",
  'double quote': 'say "x"',
  backtick: 'back`${tick}`',
  hash: 'a#b',
  'question mark': 'a?b',
  'percent sign': '100%',
  'percent escape': 'a%20b%2f',
  comma: 'a,b',
  backslash: 'a\\b',
  'backslash and n': 'a\\nb',
  newline: 'a\nb',
  'carriage return': 'a\rb',
  'line separator': 'a\u2028b',
  'comments of HTML': '<!-- x -->',
  brackets: '[x]{y}(z)',
  'dollar and at': '$a@b+c=d&e',
  colon: 'a:b',
  'leading dash': '-x',
  Unicode: 'ünï-日本-😀',
  decomposed: 'u\u0308',
  'right to left': '\u202Eabc',
}

describe.each(Object.entries(NAMES))('%s', (_, name) => {
  it('works in the build root, in a file name and in a package name', async () => {
    const fileName = `${name}.ts`
    const project = createProject(
      {
        [fileName]: `
          import { readFileSync } from 'node:fs'
          import { inner } from ${JSON.stringify(`./${name}/${name}`)}
          export const data = JSON.parse(readFileSync(new URL('./data.json', import.meta.url), 'utf8'))
          export const places = [import.meta.filename, __dirname]
          export { inner }
        `,
        [`${name}/${fileName}`]: `export const inner = import.meta.dirname`,
        'data.json': '"beside"',
        ...packageFiles(name, 'exports.place = __filename'),
        'imports.ts': `import { place } from ${JSON.stringify(name)}; export { place }`,
        'bad.ts': 'const = 1',
      },
      { rootPath: `${name}/root ${name}` },
    )
    const [file, imports, bad] = await bundleAndRun(project, [fileName, 'imports.ts', 'bad.ts'])
    expect(file).toEqual({
      exports: {
        data: 'beside',
        places: [project.file(fileName), project.root],
        inner: path.join(project.root, name),
      },
    })
    expect(imports).toEqual({ exports: { place: project.file(`node_modules/${name}/index.js`) } })
    expect(bad?.error).toMatchObject({ file: project.file('bad.ts'), line: 1, column: 7 })
  })
})

describe('a star', () => {
  it('works too', async () => {
    const project = createProject(
      {
        'a*b.ts': "import { c } from './c*d'; import { e } from './e'; export { c, e }; export const a = __dirname",
        'c*d/index.ts': 'export const c = import.meta.dirname',
        'e.ts': 'export const e = __filename',
      },
      { rootPath: 'ro*ot' },
    )
    expect(await bundleAndRun(project, ['a*b.ts'], { permission: false })).toEqual([
      { exports: { a: project.root, c: project.file('c*d'), e: project.file('e.ts') } },
    ])
  })
})
