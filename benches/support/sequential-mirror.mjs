// A plain mirror in JavaScript, one file at a time, written for this benchmark from the description of the reference in
// contract/mirror.md: the source is read and hashed, copied with every file forced to the disk, read and hashed again,
// and so is the copy; all readings must agree. It stands in for the reference, which is not part of this package. It has
// no Git rules, no protected roots and no limits, so it does less than the reference. Throws where the readings differ.

import { createHash } from 'node:crypto'
import { lstat, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join } from 'node:path'

const CHUNK = 64 * 1024

function sha256(text) {
  return createHash('sha256').update(text).digest('hex')
}

function changed(path) {
  return new Error(`sequential mirror: ${path} changed`)
}

function sameIdentity(left, right) {
  return ['dev', 'ino', 'mode', 'size', 'mtimeNs', 'ctimeNs'].every((field) => left[field] === right[field])
}

/** Reads a file through one descriptor, with a look before and after, and hands on each chunk. Gives the content hash. */
async function readWhole(path, before, onChunk) {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!sameIdentity(before, await handle.stat({ bigint: true }))) throw changed(path)
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(CHUNK)
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK, null)
      if (bytesRead === 0) break
      const chunk = buffer.subarray(0, bytesRead)
      hash.update(chunk)
      await onChunk(chunk)
    }
    if (!sameIdentity(before, await handle.stat({ bigint: true }))) throw changed(path)
    return hash.digest('hex')
  } finally {
    await handle.close()
  }
}

async function walk(root, visit, relative = '') {
  const names = (await readdir(join(root, relative))).sort()
  for (const name of names) {
    const path = relative === '' ? name : `${relative}/${name}`
    const metadata = await lstat(join(root, path), { bigint: true })
    await visit(path, metadata)
    if (metadata.isDirectory()) await walk(root, visit, path)
  }
}

/** One complete reading of a tree: its tree hash. */
async function readTree(root) {
  const entries = []
  await walk(root, async (path, metadata) => {
    const permissions = Number(metadata.mode) & 0o777
    if (metadata.isDirectory()) entries.push([path, sha256(`directory:${permissions}`)])
    else if (metadata.isSymbolicLink()) entries.push([path, sha256(`symlink:${await readlink(join(root, path))}`)])
    else {
      const content = await readWhole(join(root, path), metadata, () => {})
      entries.push([path, sha256(`file:${permissions}:${content}`)])
    }
  })
  entries.sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)))
  return sha256(entries.map(([path, hash]) => `${path}\0${hash}\0`).join(''))
}

async function copyFile(source, destination, metadata) {
  const handle = await open(destination, 'wx', 0o600)
  try {
    await readWhole(source, metadata, async (chunk) => {
      await handle.write(chunk)
    })
    await handle.chmod(Number(metadata.mode) & 0o777)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes a verified copy of `source` at `destination`, which must not exist. Gives the tree hash. */
export async function sequentialMirror(source, destination) {
  const first = await readTree(source)
  await mkdir(destination, { mode: 0o700 })
  await walk(source, async (path, metadata) => {
    if (metadata.isDirectory()) await mkdir(join(destination, path), { mode: Number(metadata.mode) & 0o777 })
    else if (metadata.isSymbolicLink()) await symlink(await readlink(join(source, path)), join(destination, path))
    else await copyFile(join(source, path), join(destination, path), metadata)
  })
  const second = await readTree(source)
  const copy = await readTree(destination)
  if (first !== second || first !== copy) throw changed(source)
  return first
}
