// Where the benchmark works: one place in memory, one on a disk, each with the type of its file system as the kernel
// tells it. A kind of place that this machine does not have is left out, and the report says so.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

const IN_MEMORY = new Set(['tmpfs', 'ramfs'])

/** The file system that holds a path: the mount with the longest path above it, the last one where several are equal. */
export function fileSystemType(path) {
  let best = { mountPoint: '', type: 'unknown' }
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const [, mounted, type] = line.split(' ')
    if (type === undefined) continue
    const mountPoint = mounted.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
    const within = path === mountPoint || path.startsWith(mountPoint === '/' ? '/' : `${mountPoint}/`)
    if (within && mountPoint.length >= best.mountPoint.length) best = { mountPoint, type }
  }
  return best.type
}

function makePlace(label, parent) {
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(realpathSync(parent), 'sallyport-bench-'))
  return { label, folder, fileSystem: fileSystemType(folder) }
}

/** Fresh folders, with names that were never used before: ext4 is slow for a while where much was deleted. */
export function makePlaces() {
  const places = []
  const temporary = realpathSync(tmpdir())
  if (IN_MEMORY.has(fileSystemType('/dev/shm'))) places.push(makePlace('memory', '/dev/shm'))
  else if (IN_MEMORY.has(fileSystemType(temporary))) places.push(makePlace('memory', temporary))
  if (!IN_MEMORY.has(fileSystemType(temporary))) places.push(makePlace('disk', temporary))
  else if (!IN_MEMORY.has(fileSystemType(realpathSync(repository)))) {
    places.push(makePlace('disk', join(repository, '.cache')))
  }
  return places
}

/** Removes all that the benchmark made. */
export function removePlaces(places) {
  for (const { folder } of places) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
