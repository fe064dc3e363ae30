// Jobs that wait for their turn: sixteen long ones at a time, what is soon done beside them, and no waiting for a job
// that was called off. The long jobs here read a file that is too large to be read to its end before the test is over.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildFileTreeIndex,
  hashFileContent,
  prepareContainedExecutionMirror,
  readSnapshotNode,
  type FileTreeIndex,
} from '../index.mjs'
import { runChild } from './support/child'
import { buildTree, createWorkspace, file, sparseFile } from './support/workspace'

const MOST_RUNNING = 16
const ENDLESS = 2 ** 42

/** Fills the queue with long jobs. `end` calls them off; `over` says how many have ended. */
function fillQueue(folder: string): { over: () => number; end: () => Promise<void> } {
  fs.mkdirSync(folder)
  sparseFile(path.join(folder, 'endless'), ENDLESS)
  const controller = new AbortController()
  let over = 0
  const jobs = Array.from({ length: MOST_RUNNING }, () =>
    buildFileTreeIndex({ resourceRoot: folder, signal: controller.signal })
      .catch((reason: unknown) => reason)
      .then((outcome) => {
        over += 1
        return outcome
      }),
  )
  const end = async (): Promise<void> => {
    const reason = new Error('enough')
    controller.abort(reason)
    expect(await Promise.all(jobs)).toEqual(jobs.map(() => reason))
  }
  return { over: () => over, end }
}

describe('a full queue', () => {
  it('lets go of a waiting job that is called off, and does not hold up what is soon done', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [file('a', 'content')])
    const mirror = await prepareContainedExecutionMirror(workspace.options())
    const { over, end } = fillQueue(path.join(workspace.base, 'sparse'))
    try {
      const reason = new Error('no longer needed')
      const controller = new AbortController()
      const calledOff = buildFileTreeIndex({ resourceRoot: workspace.source, signal: controller.signal })
      const waiting: Promise<FileTreeIndex> = buildFileTreeIndex({ resourceRoot: workspace.source })
      controller.abort(reason)
      await expect(calledOff).rejects.toBe(reason)
      const absolute = path.join(workspace.source, 'a')
      expect(await readSnapshotNode(absolute)).toMatchObject({ kind: 'file', size: 7 })
      expect(await hashFileContent(absolute)).toHaveLength(64)
      await mirror.cleanup()
      expect(workspace.leftovers()).toEqual([])
      expect(over()).toBe(0)
      await end()
      expect((await waiting).fileCount).toBe(1)
    } finally {
      if (over() === 0) await end()
    }
  })

  it('of cleanups is done to its end when the process exits', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [file('a')])
    await runChild(
      `
      const mirrors = []
      for (let count = 0; count < 40; count += 1) mirrors.push(await sallyport.prepareContainedExecutionMirror(input))
      for (const mirror of mirrors) mirror.cleanup().catch(() => {})
      process.exit(0)
      `,
      { workspace, input: workspace.options() },
    )
    expect(workspace.leftovers()).toEqual([])
  })

  it('does not hold up the end of a worker whose job waits', async () => {
    const workspace = createWorkspace()
    const sparse = path.join(workspace.base, 'sparse')
    fs.mkdirSync(sparse)
    sparseFile(path.join(sparse, 'endless'), ENDLESS)
    const [result] = await runChild(
      `
      import { Worker } from 'node:worker_threads'
      const controller = new AbortController()
      let over = 0
      const jobs = Array.from({ length: ${MOST_RUNNING} }, () =>
        sallyport.buildFileTreeIndex({ resourceRoot: input.sparse, signal: controller.signal }).catch(() => { over += 1 }))
      const code = \`
        const { parentPort, workerData } = require('node:worker_threads')
        const sallyport = require(workerData.packageFolder)
        sallyport.buildFileTreeIndex({ resourceRoot: workerData.sparse }).catch(() => {})
        parentPort.postMessage('waits')
      \`
      const worker = new Worker(code, { eval: true, workerData: { packageFolder, sparse: input.sparse } })
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
      await worker.terminate()
      send({ over })
      controller.abort()
      await Promise.all(jobs)
      `,
      { workspace, input: { sparse } },
    )
    expect(result).toEqual({ over: 0 })
  })
})
