// Does one piece of work in a process of its own and prints, as JSON, how long it took and by how much it raised the
// most memory that the process ever held (`VmHWM` of /proc/self/status against `VmRSS` before, in bytes).
//
//   node memory-child.mjs mirror|index <source> <temp directory> <small source, to warm up with>

import { readFileSync, writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

import { buildFileTreeIndex, prepareContainedExecutionMirror } from '../../index.mjs'
import { LIMITS } from './limits.mjs'

const [work, source, tempDirectory, warmUp] = process.argv.slice(2)

function statusBytes(field) {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))
  if (found === null) throw new Error(`benchmark: /proc/self/status has no ${field}`)
  return Number(found[1]) * 1024
}

async function run(resourceRoot) {
  const start = performance.now()
  if (work === 'index') {
    // Held until the memory is looked at, as a caller would hold it.
    const index = await buildFileTreeIndex({ resourceRoot })
    return { milliseconds: performance.now() - start, index }
  }
  // The mirror stays: the caller removes it with all else, when nothing is measured any more.
  await prepareContainedExecutionMirror({
    sourceRoot: resourceRoot,
    controlPlaneRoots: [],
    limits: LIMITS,
    tempDirectory,
  })
  return { milliseconds: performance.now() - start }
}

await run(warmUp)
// Sets the high-water mark back to what is held now: proc(5), clear_refs.
writeFileSync('/proc/self/clear_refs', '5')
const before = statusBytes('VmRSS')
const { milliseconds } = await run(source)
process.stdout.write(JSON.stringify({ milliseconds, growthBytes: statusBytes('VmHWM') - before }))
