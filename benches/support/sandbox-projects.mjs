// The projects whose evaluation is measured: three small files, and the same with large packages of this repository's own
// development dependencies. Fails with the system's error, where the packages are not installed for instance.

import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const installed = fileURLToPath(new URL('../../node_modules/', import.meta.url))

const LIBRARY = `
export function resource(props: Record<string, unknown>): object {
  const entity = {}
  const fields = { lexicon: 'bench', entityType: 'Thing', kind: 'resource', props }
  for (const [key, value] of Object.entries(fields)) Object.defineProperty(entity, key, { value, configurable: true })
  return Object.defineProperty(entity, Symbol.for('chant.declarable'), { value: true })
}
`
const SMALL = {
  'library.ts': LIBRARY,
  'first.ts': "import { resource } from './library'\nexport const first = resource({ size: 1 })\n",
  'second.ts':
    "import { first } from './first'\nimport { resource } from './library'\nexport const second = resource({ after: first })\n",
}
const LARGE = {
  ...SMALL,
  'packages.ts': `
import fc from 'fast-check'
import { format } from 'prettier/standalone'
import estree from 'prettier/plugins/estree'
import typescript from 'prettier/plugins/typescript'
import { resource } from './library'
const text = await format('const a   =  1', { parser: 'typescript', plugins: [estree, typescript] })
export const packages = resource({ text, sample: fc.sample(fc.constant(1), 1) })
`,
}
const PACKAGES = ['fast-check', 'pure-rand', 'prettier']

function make(base, name, files) {
  const root = join(base, name)
  mkdirSync(root)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text)
  return { root, files: Object.keys(files).map((file) => join(root, file)) }
}

/** Makes both below `base`, which exists and is canonical. */
export function makeProjects(base) {
  for (const name of PACKAGES) {
    cpSync(join(installed, name), join(base, 'node_modules', name), { recursive: true, dereference: true })
  }
  return { small: make(base, 'small', SMALL), large: make(base, 'large', LARGE) }
}
