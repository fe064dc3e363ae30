// Puts all of `runtime/` that a driver imports into one file, `runtime/prebuilt.cjs`: a bundle is made for every run, and
// a dozen small files would be read, crossed over to esbuild and parsed each time. Fails with esbuild's own words.

import path from 'node:path'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import { build } from 'esbuild'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const { OWN_MODULES, PREBUILT_RUNTIME } = createRequire(import.meta.url)('../js/sandbox/runtime-modules.js')

const everything = Object.values(OWN_MODULES).map((module) => `export * from ${JSON.stringify(module)}`)
await build({
  stdin: { contents: everything.join('\n'), resolveDir: root, sourcefile: 'prebuilt.mjs' },
  absWorkingDir: root,
  bundle: true,
  format: 'cjs',
  logLevel: 'warning',
  outfile: PREBUILT_RUNTIME,
  platform: 'node',
  target: 'node20',
})
