// The golden vectors: what the mirror and the tree index give for known trees (see vectors/README.md).

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildFileTreeIndex,
  computeTreeHash,
  describeContainedExecutionMirror,
  hashDirectoryNode,
  hashFileNode,
  hashSymlinkTarget,
  prepareContainedExecutionMirror,
} from '../index.mjs'
import { readTree, treeHashOf } from './support/reference'
import { refusal, type Refusal } from './support/refusal'
import { buildTree, createWorkspace, isRoot, type TreeNode } from './support/workspace'
import vectors from './vectors/mirror.json' with { type: 'json' }

interface VectorEntry {
  path: string
  kind: string
  mode?: string
  size?: number
  target?: string
  hash: string
}

interface VectorFailure {
  ok: false
  errorName: string
  message: string
  code?: string
  phase?: string
  disposition?: string
  remediation?: string
  diagnostic?: string
}

interface Vector {
  name: string
  tree: TreeNode[]
  sourceRoot?: string
  controlPlaneRoots?: string[]
  limits?: Record<string, number>
  mirror: { ok: true; treeHash: string; entries: VectorEntry[] } | VectorFailure
  index:
    | { ok: true; treeHash: string; fileCount: number; directoryCount: number; totalFileBytes: number; paths: string[] }
    | VectorFailure
}

const cases = vectors.cases as unknown as Vector[]

/** A file without the owner's read bit, which only root can read. */
function unreadableFile(vector: Vector): TreeNode | undefined {
  return vector.tree.find(
    ({ type, mode }) => !isRoot && type === 'file' && mode !== undefined && (Number.parseInt(mode, 8) & 0o400) === 0,
  )
}

function isSystemCode(code: string | undefined): boolean {
  return code !== undefined && /^E[A-Z]+$/.test(code)
}

function expectFailure(error: Refusal, expected: VectorFailure): void {
  const { ok: _ok, errorName, message, ...fields } = expected
  expect(error.name).toBe(errorName)
  if (!isSystemCode(expected.code)) expect(error.message).toBe(message)
  expect(error).toMatchObject(fields)
}

async function setUp(vector: Vector) {
  const workspace = createWorkspace()
  await buildTree(workspace, vector.tree)
  const below = (relativePath: string): string => path.join(workspace.source, relativePath)
  return {
    workspace,
    sourceRoot: below(vector.sourceRoot ?? '.'),
    controlPlaneRoots: (vector.controlPlaneRoots ?? []).map(below),
  }
}

describe.each(cases.map((vector) => [vector.name, vector] as const))('%s', (_name, vector) => {
  it('as a mirror', async () => {
    const { workspace, sourceRoot, controlPlaneRoots } = await setUp(vector)
    const limits = { ...vectors.defaultLimits, ...vector.limits }
    const preparation = prepareContainedExecutionMirror(workspace.options({ sourceRoot, controlPlaneRoots, limits }))
    const unreadable = unreadableFile(vector)
    if (unreadable) {
      expect(await refusal(preparation)).toMatchObject({ code: 'EACCES', relativePath: unreadable.path })
    } else if (!vector.mirror.ok) {
      expectFailure(await refusal(preparation), vector.mirror)
    } else {
      const mirror = await preparation
      const entries = readTree(mirror.hostMirrorRoot)
      expect(
        entries.map(({ relativePath, kind, mode, size, target, hash }) => ({
          path: relativePath,
          kind,
          ...(mode !== undefined && { mode: mode.toString(8).padStart(4, '0') }),
          ...(size !== undefined && { size }),
          ...(target !== undefined && { target }),
          hash,
        })),
      ).toEqual(vector.mirror.entries)
      expect(describeContainedExecutionMirror(mirror).treeHash).toBe(vector.mirror.treeHash)
      expect(treeHashOf(mirror.hostMirrorRoot)).toBe(vector.mirror.treeHash)
      expect(fs.lstatSync(mirror.hostMirrorRoot).mode & 0o7777).toBe(0o700)
      await mirror.cleanup()
    }
    expect(workspace.leftovers()).toEqual([])
  })

  it('as an index', async () => {
    const { sourceRoot, controlPlaneRoots } = await setUp(vector)
    const building = buildFileTreeIndex({ resourceRoot: sourceRoot, excludedRoots: controlPlaneRoots })
    if (unreadableFile(vector)) {
      expect(await refusal(building)).toMatchObject({ code: 'EACCES' })
    } else if (!vector.index.ok) {
      expectFailure(await refusal(building), vector.index)
    } else {
      const index = await building
      const { ok: _ok, paths, treeHash: recorded, ...counts } = vector.index
      // Where a recorded link names its own base folder, the hash was that of another folder.
      const hasBase = vector.tree.some(({ type, target }) => type === 'symlink' && target?.includes('${base}'))
      const treeHash = hasBase ? treeHashOf(sourceRoot) : recorded
      expect(index).toMatchObject({ version: 1, treeHash, ...counts })
      expect(index.entries.map(({ relativePath }) => relativePath)).toEqual(paths)
      expect(computeTreeHash([...index.entries].reverse())).toBe(treeHash)
    }
  })
})

describe('node hashes', () => {
  it.each(vectors.nodeHashes.file)('file $mode', ({ mode, contentSha256, hash }) => {
    expect(hashFileNode(mode, contentSha256)).toBe(hash)
  })
  it.each(vectors.nodeHashes.directory)('directory $mode', ({ mode, hash }) => {
    expect(hashDirectoryNode(mode)).toBe(hash)
  })
  it.each(vectors.nodeHashes.symlink)('link to $target', ({ target, hash }) => {
    expect(hashSymlinkTarget(target)).toBe(hash)
  })
  it('the empty tree', () => {
    expect(computeTreeHash([])).toBe(vectors.emptyTreeHash)
  })
})
