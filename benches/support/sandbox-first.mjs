// The first call in a process of its own: says in JSON how long loading took and how long the call, in milliseconds.
//
//   node sandbox-first.mjs <fork | node | best-effort | kernel> <root> <file>…

import { performance } from 'node:perf_hooks'

const [how, root, ...files] = process.argv.slice(2)

const start = performance.now()
const { run } =
  how === 'fork'
    ? { run: (await import('./sandbox-peer.mjs')).runByFork }
    : { run: (await import('../../index.mjs')).runFallbackFilesSandboxed }
const loaded = performance.now()
const { entities, errors = [] } = await run(files, root, how === 'fork' ? undefined : { isolation: how })
const done = performance.now()
const count = entities.size ?? entities.length
if (errors.length > 0 || count === 0) throw new Error(`benchmark: ${how} gave ${count} entities and ${errors}`)
console.log(JSON.stringify({ load: loaded - start, call: done - loaded }))
