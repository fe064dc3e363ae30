// Laws that hold for every tree: the hash does not depend on the order of creation, a mirror is its source, a tree does
// not differ from itself, and applying a difference undoes it. Random trees; a failing one is printed by fast-check.

import fc from 'fast-check'
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import {
  buildFileTreeIndex,
  compareRelativePathsBytewise,
  computeTreeHash,
  describeContainedExecutionMirror,
  diffFileTreeIndices,
  prepareContainedExecutionMirror,
  type FileTreeEntry,
} from '../index.mjs'
import { rounds } from './support/effort'
import { treeHashOf } from './support/reference'
import { createWorkspace, removeTree, type Workspace } from './support/workspace'

type Node =
  | { kind: 'file'; content: Uint8Array; mode: number }
  | { kind: 'directory'; mode: number }
  | { kind: 'link'; target: string }

/** Relative path to node. A path is only in it where everything above it is a directory. */
type Tree = Map<string, Node>

// Few names, so that trees meet each other; among them what is sorted differently as text, UTF-16 and bytes.
const name = fc.constantFrom(
  'a',
  'b',
  'A',
  'a-',
  'a.',
  'a0',
  '-',
  'é',
  'e\u0301',
  '\uFF61',
  '\u{1F600}',
  ' ',
  '\n',
  'git',
)
// Owners must be able to read and enter, or the test would need root.
const fileMode = fc.constantFrom(0o644, 0o600, 0o755, 0o444, 0o777)
const directoryMode = fc.constantFrom(0o755, 0o700, 0o777)
const node: fc.Arbitrary<Node> = fc.oneof(
  fc.record({ kind: fc.constant('file' as const), content: fc.uint8Array({ maxLength: 40 }), mode: fileMode }),
  fc.record({ kind: fc.constant('directory' as const), mode: directoryMode }),
  fc.record({ kind: fc.constant('link' as const), target: fc.constantFrom('.', './', '././.') }),
)

const tree: fc.Arbitrary<Tree> = fc
  .array(fc.tuple(fc.array(name, { minLength: 1, maxLength: 4 }), node), { maxLength: 25 })
  .map((pairs) => {
    const nodes: Tree = new Map()
    for (const [segments, value] of pairs) {
      const parents = segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('/'))
      if (parents.some((parent) => (nodes.get(parent)?.kind ?? 'directory') !== 'directory')) continue
      const relativePath = segments.join('/')
      if (nodes.has(relativePath)) continue
      for (const parent of parents) if (!nodes.has(parent)) nodes.set(parent, { kind: 'directory', mode: 0o755 })
      nodes.set(relativePath, value)
    }
    return nodes
  })

function create(root: string, nodes: Tree, relativePath: string): void {
  const absolute = path.join(root, relativePath)
  const value = nodes.get(relativePath) as Node
  if (value.kind === 'directory') fs.mkdirSync(absolute, { recursive: true })
  else fs.mkdirSync(path.dirname(absolute), { recursive: true })
  if (value.kind === 'file') fs.writeFileSync(absolute, value.content)
  if (value.kind === 'link') fs.symlinkSync(value.target, absolute)
}

/** Makes the tree in the given order, and gives modes at the end. */
function build(root: string, nodes: Tree, order: string[] = [...nodes.keys()]): void {
  fs.mkdirSync(root)
  for (const relativePath of order) create(root, nodes, relativePath)
  for (const [relativePath, value] of nodes) {
    if (value.kind !== 'link') fs.chmodSync(path.join(root, relativePath), value.mode)
  }
}

let workspace: Workspace
let count = 0

beforeAll(() => {
  workspace = createWorkspace({ keep: true })
})

afterAll(() => {
  expect(workspace.leftovers()).toEqual([])
  removeTree(workspace.base)
})

/** A name that was never used: an emptied folder would not be the same to the file system. */
async function inFreshFolder<T>(use: (root: string) => Promise<T>): Promise<T> {
  const root = path.join(workspace.base, `tree-${(count += 1)}`)
  try {
    return await use(root)
  } finally {
    removeTree(root)
  }
}

const numRuns = rounds(150, 40)

describe('every tree', () => {
  it('has one hash whatever the order of creation, and it is the one of the definition', async () => {
    const treeAndOrder = tree.chain((nodes) =>
      fc.tuple(fc.constant(nodes), fc.shuffledSubarray([...nodes.keys()], { minLength: nodes.size })),
    )
    await fc.assert(
      fc.asyncProperty(treeAndOrder, async ([nodes, order]) => {
        const hashes = [[...nodes.keys()], order].map((names) =>
          inFreshFolder(async (root) => {
            build(root, nodes, names)
            const { treeHash } = await buildFileTreeIndex({ resourceRoot: root })
            expect(treeHash).toBe(treeHashOf(root))
            return treeHash
          }),
        )
        const [first, second] = await Promise.all(hashes)
        expect(first).toBe(second)
      }),
      { numRuns },
    )
  })

  it('is mirrored as it is where nothing is excluded', async () => {
    await fc.assert(
      fc.asyncProperty(tree, (nodes) =>
        inFreshFolder(async (root) => {
          build(root, nodes)
          const source = await buildFileTreeIndex({ resourceRoot: root })
          const mirror = await prepareContainedExecutionMirror(workspace.options({ sourceRoot: root }))
          try {
            const copy = await buildFileTreeIndex({ resourceRoot: mirror.hostMirrorRoot })
            expect(copy).toEqual(source)
            expect(diffFileTreeIndices(source, copy)).toEqual([])
            expect(describeContainedExecutionMirror(mirror)).toMatchObject({ treeHash: source.treeHash, skipped: [] })
          } finally {
            await mirror.cleanup()
          }
        }),
      ),
      { numRuns },
    )
  })

  it('does not differ from itself, and is what it was after a difference is applied', async () => {
    await fc.assert(
      fc.asyncProperty(tree, tree, async (before, after) => {
        const [baseline, observed] = await Promise.all(
          [before, after].map((nodes) =>
            inFreshFolder((root) => {
              build(root, nodes)
              return buildFileTreeIndex({ resourceRoot: root })
            }),
          ),
        )
        if (!baseline || !observed) throw new Error('two trees give two indices')
        expect(diffFileTreeIndices(baseline, baseline)).toEqual([])

        const changes = diffFileTreeIndices(baseline, observed)
        const entries = new Map(baseline.entries.map((entry) => [entry.relativePath, entry.node]))
        for (const { relativePath, kind, before: left, after: right } of changes) {
          expect(entries.get(relativePath) ?? { kind: 'absent' }).toEqual(left)
          expect(kind).toBe(left.kind === 'absent' ? 'added' : right.kind === 'absent' ? 'deleted' : 'modified')
          if (right.kind === 'absent') entries.delete(relativePath)
          else entries.set(relativePath, right)
        }
        const applied: FileTreeEntry[] = [...entries].map(([relativePath, value]) => ({ relativePath, node: value }))
        expect(computeTreeHash(applied)).toBe(observed.treeHash)
        const paths = changes.map(({ relativePath }) => relativePath)
        expect(paths).toEqual([...paths].sort(compareRelativePathsBytewise))

        const inverse = changes.map(({ relativePath, kind, before: left, after: right }) => ({
          relativePath,
          kind: kind === 'added' ? 'deleted' : kind === 'deleted' ? 'added' : kind,
          before: right,
          after: left,
        }))
        expect(diffFileTreeIndices(observed, baseline)).toEqual(inverse)
      }),
      { numRuns },
    )
  })
})

describe('the order of paths', () => {
  it('is the order of their bytes, for any text', () => {
    // Through a Buffer, because half a surrogate pair has no bytes of its own; no path holds a NUL.
    const text = fc.string({ unit: 'binary' }).map((value) => Buffer.from(value).toString().replaceAll('\0', ''))
    fc.assert(
      fc.property(text, text, (left, right) => {
        const expected = Buffer.compare(Buffer.from(left), Buffer.from(right))
        expect(Math.sign(compareRelativePathsBytewise(left, right))).toBe(expected)
      }),
    )
  })
})
