// Builds the launcher, the small static program that confines itself and becomes the sandboxed child, and puts it
// beside the addon. Fails with cargo's own words.
//
// It is built without the `binding` feature, so without Node, and for a named target, so that the flag that links it
// statically does not reach build scripts and macros, which cannot be linked so.

import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, renameSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const TARGETS = { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' }

if (process.platform !== 'linux') {
  console.log('The launcher is built on Linux only; elsewhere there is no sandboxed run.')
  process.exit(0)
}
const target = TARGETS[process.arch]
if (target === undefined) {
  console.error(`There is no launcher for ${process.arch}; build on ${Object.keys(TARGETS).join(' or ')}.`)
  process.exit(1)
}
// A directory of its own: with other flags than the addon's, each build would make the other start over.
const targetDirectory = path.join(process.env.CARGO_TARGET_DIR ?? path.join(root, 'target'), 'launcher')
const arguments_ = [
  'build',
  '--release',
  '--locked',
  '--no-default-features',
  '--bin',
  'sallyport-launch',
  '--target',
  target,
  '--target-dir',
  targetDirectory,
]
const build = spawnSync('cargo', arguments_, {
  cwd: root,
  stdio: 'inherit',
  env: {
    ...process.env,
    RUSTFLAGS: `${process.env.RUSTFLAGS ?? ''} -C target-feature=+crt-static -C relocation-model=static`.trim(),
  },
})
if (build.status !== 0) {
  console.error(`The launcher could not be built: ${build.error?.message ?? `cargo ended with ${build.status}`}`)
  process.exit(1)
}
const place = path.join(root, 'sallyport-launch')
// A launcher that is running cannot be written to, but its name can be given to another file.
copyFileSync(path.join(targetDirectory, target, 'release', 'sallyport-launch'), `${place}.new`)
chmodSync(`${place}.new`, 0o755)
renameSync(`${place}.new`, place)
