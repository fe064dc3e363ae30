// The tree hash, written a second time and as plainly as possible, to check the addon's against: reads a tree by
// ordinary calls and hashes it by the table in the contract. Follows no link. Errors of the system are thrown.

import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'

export interface ReferenceEntry {
  rawPath: Buffer
  relativePath: string
  kind: 'file' | 'directory' | 'symlink'
  /** Permission bits; undefined for a link. */
  mode?: number
  size?: number
  target?: string
  content?: Buffer
  hash: string
}

export function sha256(...parts: (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** Every entry below `root`, in the order of the tree hash. */
export function readTree(root: string): ReferenceEntry[] {
  const entries: ReferenceEntry[] = []
  const visit = (folder: Buffer, prefix: Buffer): void => {
    for (const name of fs.readdirSync(folder, { encoding: 'buffer' })) {
      const absolute = Buffer.concat([folder, Buffer.from('/'), name])
      const rawPath = prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name])
      const stats = fs.lstatSync(absolute)
      const relativePath = rawPath.toString('utf8')
      const mode = stats.mode & 0o777
      if (stats.isSymbolicLink()) {
        const target = fs.readlinkSync(absolute, { encoding: 'buffer' })
        const hash = sha256('symlink:', target)
        entries.push({ rawPath, relativePath, kind: 'symlink', target: target.toString('utf8'), hash })
      } else if (stats.isDirectory()) {
        entries.push({ rawPath, relativePath, kind: 'directory', mode, hash: sha256(`directory:${mode}`) })
        visit(absolute, rawPath)
      } else if (stats.isFile()) {
        const content = fs.readFileSync(absolute)
        const hash = sha256(`file:${mode}:${sha256(content)}`)
        entries.push({ rawPath, relativePath, kind: 'file', mode, size: content.length, content, hash })
      } else {
        throw new Error(`${relativePath} is neither file, directory nor link`)
      }
    }
  }
  visit(Buffer.from(path.resolve(root)), Buffer.alloc(0))
  return entries.sort((left, right) => Buffer.compare(left.rawPath, right.rawPath))
}

export function hashTree(entries: ReferenceEntry[]): string {
  return sha256(...entries.flatMap(({ rawPath, hash }) => [rawPath, Buffer.from([0]), hash, Buffer.from([0])]))
}

/** The tree hash of what is below `root`. */
export function treeHashOf(root: string): string {
  return hashTree(readTree(root))
}

/** The relative paths below `root`, in order. */
export function pathsOf(root: string): string[] {
  return readTree(root).map(({ relativePath }) => relativePath)
}
