// Makes the trees that are measured. Contents differ from file to file and cannot be compressed, so that no file system
// can save itself the work. Fails with the system's error, where there is no room for instance.

import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { randomFillSync } from 'node:crypto'
import { join } from 'node:path'

const MEBIBYTE = 1024 * 1024

/** `files` files of `bytes` bytes, spread evenly over `directories` directories. Gives the paths of the files. */
export function makeSmallFiles(root, { files, directories, bytes }) {
  const noise = randomFillSync(Buffer.alloc(bytes + 65_536))
  const paths = []
  mkdirSync(root, { recursive: true })
  for (let directory = 0; directory < directories; directory += 1) {
    const folder = join(root, `directory-${String(directory).padStart(5, '0')}`)
    mkdirSync(folder)
    const before = Math.floor((files * directory) / directories)
    const after = Math.floor((files * (directory + 1)) / directories)
    for (let file = before; file < after; file += 1) {
      const path = join(folder, `file-${String(file).padStart(6, '0')}.txt`)
      const offset = (file * 257) % 65_536
      const content = Buffer.from(noise.subarray(offset, offset + bytes))
      content.writeUInt32LE(file, 0)
      writeFileSync(path, content)
      paths.push(path)
    }
  }
  return paths
}

/** `files` files of `mebibytes` MiB each. Gives the paths of the files. */
export function makeLargeFiles(root, { files, mebibytes }) {
  const block = Buffer.alloc(MEBIBYTE)
  mkdirSync(root, { recursive: true })
  return Array.from({ length: files }, (_, file) => {
    const path = join(root, `large-${String(file).padStart(2, '0')}.bin`)
    const descriptor = openSync(path, 'wx')
    for (let written = 0; written < mebibytes; written += 1) writeSync(descriptor, randomFillSync(block))
    closeSync(descriptor)
    return path
  })
}
