// Puts all of `runtime/` that a driver imports into one file, `runtime/prebuilt.mjs`: a dozen small files would be read,
// crossed over to esbuild and parsed for each bundle. The child of a run loads it beside its bundle, as a module: Node 20 takes
// 20 ms to see what a CommonJS file exports to one. Fails with esbuild's own words.

import path from 'node:path'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import { build } from 'esbuild'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const require = createRequire(import.meta.url)
const { OWN_MODULES, PREBUILT_RUNTIME } = require('../js/sandbox/runtime-modules.js')

const everything = Object.values(OWN_MODULES).map(
  (module) => `export { ${Object.keys(require(module)).join(', ')} } from ${JSON.stringify(module)}`,
)
await build({
  stdin: { contents: everything.join('\n'), resolveDir: root, sourcefile: 'prebuilt.mjs' },
  absWorkingDir: root,
  // For Node's own modules alone, so it does not matter from where.
  banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire('/')" },
  bundle: true,
  format: 'esm',
  logLevel: 'warning',
  outfile: PREBUILT_RUNTIME,
  platform: 'node',
  target: 'node20',
})
