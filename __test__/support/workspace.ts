// Trees on disk for the tests: a folder of their own with a source, something outside it and a temp directory, removed
// after each test. Errors of the system are thrown as they are: a tree that could not be built proves nothing.

import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach } from 'vitest'

import type { ContainedExecutionMirrorOptions } from '../../index.mjs'

export const isRoot = process.getuid?.() === 0

/** A node in the form of `vectors/mirror.json`. */
export interface TreeNode {
  path: string
  type: 'file' | 'dir' | 'symlink' | 'hardlink' | 'fifo' | 'socket'
  text?: string
  base64?: string
  repeat?: { byte: number; length: number }
  target?: string
  mode?: string
}

export interface Workspace {
  /** Holds everything below; canonical, mode 0755. */
  base: string
  source: string
  outside: string
  /** The temp directory that `options` names, so that what is left behind can be seen. */
  temp: string
  options(overrides?: Partial<ContainedExecutionMirrorOptions>): ContainedExecutionMirrorOptions
  /** What is in the temp directory now. */
  leftovers(): string[]
}

export const generousLimits = {
  maxFiles: 100_000,
  maxSourceBytes: 4 * 1024 ** 3,
  maxWorkspaceBytes: 4 * 1024 ** 3,
  prepareTimeoutMs: 120_000,
}

const openServers: net.Server[] = []
const openBases: string[] = []

afterEach(() => {
  for (const server of openServers.splice(0)) server.close()
  for (const base of openBases.splice(0)) removeTree(base)
})

/** Removes a tree of any depth, whatever its modes and the lengths of its paths are. */
export function removeTree(root: string): void {
  if (!isRoot) execFileSync('chmod', ['-R', 'u+rwX', root])
  execFileSync('rm', ['-rf', root])
}

/** A fresh workspace; `keep` leaves its removal to the caller (for `beforeAll`). */
export function createWorkspace({ keep = false } = {}): Workspace {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-test-')))
  if (!keep) openBases.push(base)
  fs.chmodSync(base, 0o755)
  const [source, outside, temp] = ['src', 'outside', 'temp'].map((name) => path.join(base, name)) as [
    string,
    string,
    string,
  ]
  for (const folder of [source, outside, temp]) {
    fs.mkdirSync(folder)
    fs.chmodSync(folder, 0o755)
  }
  fs.writeFileSync(path.join(outside, 'o.txt'), 'outside\n')
  return {
    base,
    source,
    outside,
    temp,
    options: (overrides = {}) => ({
      sourceRoot: source,
      controlPlaneRoots: [],
      limits: generousLimits,
      tempDirectory: temp,
      ...overrides,
    }),
    leftovers: () => fs.readdirSync(temp),
  }
}

/** A file; `mode` 0644 unless given. */
export function file(relativePath: string, text = 'x', mode = '0644'): TreeNode {
  return { path: relativePath, type: 'file', text, mode }
}

/** A directory; `mode` 0755 unless given. */
export function directory(relativePath: string, mode = '0755'): TreeNode {
  return { path: relativePath, type: 'dir', mode }
}

export function symlink(relativePath: string, target: string): TreeNode {
  return { path: relativePath, type: 'symlink', target }
}

export function hardlink(relativePath: string, target: string): TreeNode {
  return { path: relativePath, type: 'hardlink', target }
}

export function fifo(relativePath: string, mode = '0644'): TreeNode {
  return { path: relativePath, type: 'fifo', mode }
}

export function socket(relativePath: string): TreeNode {
  return { path: relativePath, type: 'socket' }
}

/** The nodes of a repository's own data: a structurally valid Git directory at `relativePath`. */
export function gitDirectory(relativePath: string): TreeNode[] {
  return [
    file(`${relativePath}/HEAD`, 'ref: refs/heads/main\n'),
    file(`${relativePath}/config`, '[core]\n\trepositoryformatversion = 0\n'),
    directory(`${relativePath}/objects`),
    directory(`${relativePath}/refs`),
  ]
}

/** Builds `nodes` below `workspace.source` with a umask of 0, as `vectors/README.md` says. */
export async function buildTree(
  { base, source }: Pick<Workspace, 'base' | 'source'>,
  nodes: TreeNode[],
): Promise<void> {
  const previous = process.umask(0)
  try {
    for (const node of nodes) await buildNode(base, source, node)
    for (const node of [...nodes].reverse()) {
      if (node.mode !== undefined) fs.chmodSync(path.join(source, node.path), Number.parseInt(node.mode, 8))
    }
  } finally {
    process.umask(previous)
  }
}

async function buildNode(base: string, source: string, node: TreeNode): Promise<void> {
  const absolute = path.join(source, node.path)
  fs.mkdirSync(path.dirname(absolute), { recursive: true, mode: 0o755 })
  const target = (node.target ?? '').replaceAll('${base}', base)
  switch (node.type) {
    case 'file':
      fs.writeFileSync(absolute, contentOf(node))
      break
    case 'dir':
      fs.mkdirSync(absolute, { recursive: true })
      break
    case 'symlink':
      fs.symlinkSync(target, absolute)
      break
    case 'hardlink':
      fs.linkSync(path.resolve(source, target), absolute)
      break
    case 'fifo':
      execFileSync('mkfifo', [absolute])
      break
    case 'socket':
      await listen(absolute)
      break
  }
}

export function contentOf(node: TreeNode): Buffer {
  if (node.base64 !== undefined) return Buffer.from(node.base64, 'base64')
  if (node.repeat !== undefined) return Buffer.alloc(node.repeat.length, node.repeat.byte)
  return Buffer.from(node.text ?? '', 'utf8')
}

/** A socket stays only as long as its server does, so the server lives until the test is over. */
async function listen(absolute: string): Promise<void> {
  const server = net.createServer()
  openServers.push(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(absolute, resolve)
  })
}

/** A file of `bytes` zero bytes that takes no space on disk. */
export function sparseFile(absolute: string, bytes: number): void {
  fs.closeSync(fs.openSync(absolute, 'w'))
  fs.truncateSync(absolute, bytes)
}
