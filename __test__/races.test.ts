// Mirrors of a source that somebody changes all the time, to trick it: thousands of rounds beside the mutator of
// fixtures/races. A mirror is either refused in a known way, or whole, consistent and free of anything from outside.

import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

import { buildFileTreeIndex, describeContainedExecutionMirror, prepareContainedExecutionMirror } from '../index.mjs'
import { rounds } from './support/effort'
import { hashTree, readTree } from './support/reference'
import type { Refusal } from './support/refusal'
import { createWorkspace, type Workspace } from './support/workspace'

const MUTATOR = path.join(path.dirname(fileURLToPath(import.meta.url)), 'fixtures', 'races', 'mutator.mjs')
const SECRET = 'the secret that is outside\n'

/** What may be refused here, as class, code and the facts that it must name. */
const KNOWN_REFUSALS = new Set([
  'ContainedExecutionFailureError contained_execution_source_changed',
  'ContainedExecutionFailureError contained_execution_unsafe_symlink',
  'Error file_checkpoint_hardlink_unsupported',
])

async function beside(workspace: Workspace, work: () => Promise<void>): Promise<void> {
  const mutator = spawn(process.execPath, [MUTATOR, workspace.source, workspace.outside], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  let errors = ''
  mutator.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
  const ended = new Promise<number | null>((resolve) => mutator.once('close', resolve))
  await new Promise<unknown>((resolve, reject) => {
    mutator.stdout.once('data', resolve)
    mutator.once('close', () => reject(new Error(`the mutator ended: ${errors}`)))
  })
  try {
    await work()
    expect(mutator.exitCode, errors).toBe(null)
  } finally {
    mutator.stdin.end()
    expect(await ended, errors).toBe(0)
  }
}

function checkContent(mirrorRoot: string, treeHash: string): void {
  const entries = readTree(mirrorRoot)
  expect(hashTree(entries)).toBe(treeHash)
  for (const { kind, content, relativePath } of entries) {
    expect(kind, relativePath).not.toBe('symlink')
    if (!content) continue
    expect(content.includes('secret that is outside'), relativePath).toBe(false)
    expect(/^(a whole line of the source\n)*$/.test(content.toString()), relativePath).toBe(true)
  }
}

describe('a source that changes all the time', () => {
  it.each(['reject', 'copy'] as const)(
    'gives whole mirrors or typed refusals, with hardlinks: %s',
    async (hardlinks) => {
      const workspace = createWorkspace()
      fs.writeFileSync(path.join(workspace.outside, 'secret.txt'), SECRET)
      for (const name of ['x', 'y']) fs.writeFileSync(path.join(workspace.outside, name), SECRET)
      // With `copy`, the inode of the secret is known as protected, so a hard link to it is refused all the same.
      const controlPlaneRoots = hardlinks === 'copy' ? [workspace.outside] : []
      const outcomes = new Map<string, number>()
      await beside(workspace, async () => {
        const least = rounds(hardlinks === 'reject' ? 4000 : 2000, 300)
        // How often the mutator leaves a moment for a whole mirror depends on the machine: it goes on until it did.
        const isEnough = () => (outcomes.get('accepted') ?? 0) > 10
        for (let round = 0; round < least || (round < 10 * least && !isEnough()); round += 1) {
          let outcome = 'accepted'
          try {
            const mirror = await prepareContainedExecutionMirror(workspace.options({ hardlinks, controlPlaneRoots }))
            const { treeHash } = describeContainedExecutionMirror(mirror)
            checkContent(mirror.hostMirrorRoot, treeHash)
            const index = await buildFileTreeIndex({ resourceRoot: mirror.hostMirrorRoot })
            expect(index.treeHash).toBe(treeHash)
            await mirror.cleanup()
          } catch (error) {
            const { name, code, syscall } = error as Refusal
            if (name === 'AssertionError') throw error
            outcome = [name, code, syscall].filter(Boolean).join(' ')
          }
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        }
      })
      const unknown = [...outcomes.keys()].filter((outcome) => outcome !== 'accepted' && !KNOWN_REFUSALS.has(outcome))
      expect(unknown).toEqual([])
      // Both must have happened often, or the race proved nothing.
      expect(outcomes.get('accepted') ?? 0, JSON.stringify([...outcomes])).toBeGreaterThan(10)
      expect(outcomes.get('ContainedExecutionFailureError contained_execution_source_changed') ?? 0).toBeGreaterThan(0)
      expect(workspace.leftovers()).toEqual([])
    },
  )

  it('gives consistent indices or typed refusals', async () => {
    const workspace = createWorkspace()
    fs.writeFileSync(path.join(workspace.outside, 'secret.txt'), SECRET)
    const outcomes = new Map<string, number>()
    await beside(workspace, async () => {
      for (let round = rounds(1000, 200); round > 0; round -= 1) {
        let outcome = 'accepted'
        try {
          const index = await buildFileTreeIndex({ resourceRoot: workspace.source })
          for (const { node, relativePath } of index.entries) {
            if (node.kind === 'file') expect(node.size % 'a whole line of the source\n'.length, relativePath).toBe(0)
          }
        } catch (error) {
          const { name, code, syscall } = error as Refusal
          if (name === 'AssertionError') throw error
          outcome = [name, code, syscall].filter(Boolean).join(' ')
        }
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    })
    const unknown = [...outcomes.keys()].filter((outcome) => outcome !== 'accepted' && !KNOWN_REFUSALS.has(outcome))
    expect(unknown).toEqual([])
    expect(outcomes.get('accepted') ?? 0, JSON.stringify([...outcomes])).toBeGreaterThan(10)
  })
})
