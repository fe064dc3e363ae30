// What the sandboxed run is measured against: the same work by what Node and esbuild offer, one after the other. It
// bundles with esbuild's JavaScript interface, forks under Node's Permission Model, takes the result by Node's own channel,
// kills the child and removes the bundle. The steps inside the child are the same modules that sallyport runs there. It
// has none of the rules: a bad file fails the whole run, the bundler takes in what it likes, nothing bounds the child.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { build } from 'esbuild'

import { PERMISSION_FLAG } from './permission.mjs'

const runtime = fileURLToPath(new URL('../../runtime/', import.meta.url))

function driver(files, root) {
  const text = JSON.stringify
  const imports = files.map((file) => `{ file: ${text(file)}, exports: await import(${text(file)}) }`)
  return `
import { collectEntities } from ${text(join(runtime, 'collect.js'))}
import { resolveAttrRefs } from ${text(join(runtime, 'resolve.js'))}
import { encodeEntitySet } from ${text(join(runtime, 'entity-wire-codec.js'))}
const entities = collectEntities([${imports.join(', ')}], ${text(root)})
resolveAttrRefs(entities)
process.send(encodeEntitySet(entities))
`
}

/** Runs the files and gives the entities as they crossed. */
export async function runByFork(files, root) {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'sallyport-bench-peer-'))
  try {
    const bundle = join(directory, 'child.mjs')
    await build({
      stdin: { contents: driver(files, root), resolveDir: root, sourcefile: 'driver.mts', loader: 'ts' },
      outfile: bundle,
      bundle: true,
      format: 'esm',
      platform: 'node',
      external: ['typescript'],
      logLevel: 'silent',
      // Without it, a CommonJS package that requires a builtin fails in a module.
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    })
    const child = fork(bundle, [], {
      execArgv: [PERMISSION_FLAG, `--allow-fs-read=${directory}`, `--allow-fs-read=${root}`, '--no-warnings'],
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const exited = once(child, 'exit')
    const [result] = await Promise.race([
      once(child, 'message'),
      exited.then(([code, signal]) => {
        throw new Error(`benchmark: the child of the fork ended with ${signal ?? code}`)
      }),
    ])
    child.kill('SIGKILL')
    await exited
    return result
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
