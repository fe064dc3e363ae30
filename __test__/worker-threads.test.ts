// Several threads of one process, threads that are ended in the middle of the work, and a process that is. Each in a
// child: what is tested is also how that process ends.

import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { runChild, startChild } from './support/child'
import { rounds } from './support/effort'
import { buildTree, createWorkspace, file, sparseFile, symlink, type Workspace } from './support/workspace'

function bigWorkspace(): Workspace {
  const workspace = createWorkspace()
  for (let index = 0; index < 20; index += 1) sparseFile(path.join(workspace.source, `part-${index}`), 20_000_000)
  return workspace
}

/** The beginning of a body: a worker that mirrors with `workerData.options`, and a wait for an empty temp directory. */
const WORKER = `
  import { Worker } from 'node:worker_threads'
  const start = (options, code) =>
    new Worker(
      'const { parentPort, workerData } = require("node:worker_threads"); const sallyport = require(workerData.packageFolder);' + code,
      { eval: true, workerData: { packageFolder, options } },
    )
  const exited = (worker) => new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  const message = (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const emptied = async () => {
    for (let look = 0; look < 500 && fs.readdirSync(input.options.tempDirectory).length > 0; look += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return fs.readdirSync(input.options.tempDirectory)
  }
  const TELLS_WHEN_COPYING = \`
    let told = false
    const onProgress = ({ phase }) => {
      if (phase === 'copy' && !told) { told = true; parentPort.postMessage('copying') }
    }
    sallyport.prepareContainedExecutionMirror({ ...workerData.options, onProgress })
  \`
`

describe('worker threads', () => {
  it('load at once and mirror at once, and end by themselves', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [
      ...Array.from({ length: 50 }, (_, index) => file(`d${index % 5}/f${index}`, `content ${index}`)),
      symlink('l', 'd0'),
    ])
    const [result] = await runChild(
      `${WORKER}
      const code = \`
        ;(async () => {
          const hashes = new Set()
          for (let round = 0; round < 10; round += 1) {
            const mirror = await sallyport.prepareContainedExecutionMirror(workerData.options)
            const { protectedRoots, sourceRoot } = { sourceRoot: workerData.options.sourceRoot, protectedRoots: [] }
            if (!sallyport.validateContainedExecutionMirrorLease(mirror, { sourceRoot, protectedRoots })) throw new Error('lease')
            hashes.add(sallyport.describeContainedExecutionMirror(mirror).treeHash)
            await mirror.cleanup()
            try { await sallyport.prepareContainedExecutionMirror({ ...workerData.options, limits: { ...workerData.options.limits, maxFiles: 1 } }) }
            catch (error) { hashes.add(error.name + ' ' + (error instanceof sallyport.FileCheckpointDiagnosticError)) }
          }
          parentPort.postMessage([...hashes])
        })()
      \`
      const workers = Array.from({ length: 6 }, () => start(input.options, code))
      const [hashes, codes] = await Promise.all([Promise.all(workers.map(message)), Promise.all(workers.map(exited))])
      const index = await sallyport.buildFileTreeIndex({ resourceRoot: input.options.sourceRoot })
      send({ hashes: [...new Set(hashes.flat())], codes, expected: index.treeHash, left: await emptied() })
      `,
      { workspace, input: { options: workspace.options() } },
    )
    const { hashes, codes, expected, left } = result
    expect(hashes.sort()).toEqual([expected, 'FileCheckpointDiagnosticError true'].sort())
    expect({ codes, left }).toEqual({ codes: [0, 0, 0, 0, 0, 0], left: [] })
  })

  it('leave nothing when they are terminated in the middle of a mirror', async () => {
    const workspace = bigWorkspace()
    const [result] = await runChild(
      `${WORKER}
      const seen = []
      for (let round = 0; round < input.rounds; round += 1) {
        const workers = [0, 1].map(() => start(input.options, TELLS_WHEN_COPYING))
        seen.push(...(await Promise.all(workers.map(message))))
        await Promise.all(workers.map((worker) => worker.terminate()))
      }
      // The process is alive and well, and what was being made is removed behind the threads that are gone.
      const left = await emptied()
      const index = await sallyport.buildFileTreeIndex({ resourceRoot: input.options.sourceRoot })
      send({ seen: [...new Set(seen)], left, entries: index.entries.length })
      `,
      { workspace, input: { options: workspace.options(), rounds: rounds(5, 2) } },
    )
    expect(result).toEqual({ seen: ['copying'], left: [], entries: 20 })
  })

  it('may be terminated while they load', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [file('a')])
    const [result] = await runChild(
      `${WORKER}
      for (let round = 0; round < input.rounds; round += 1) {
        const workers = Array.from({ length: 4 }, () => start(input.options, 'parentPort.postMessage("loaded")'))
        await new Promise((resolve) => setTimeout(resolve, round % 15))
        await Promise.all(workers.map((worker) => worker.terminate()))
      }
      const mirror = await sallyport.prepareContainedExecutionMirror(input.options)
      await mirror.cleanup()
      send(await emptied())
      `,
      { workspace, input: { options: workspace.options(), rounds: rounds(30, 10) } },
    )
    expect(result).toEqual([])
  })
})

describe('a process that ends in the middle of a mirror', () => {
  it.each([
    ['process.exit()', 'process.exit(7)', 7],
    ['an error that nobody catches', "setImmediate(() => { throw new Error('nobody catches this') })", 1],
  ])('by %s leaves nothing and does not crash', async (_how, statement, exitCode) => {
    const workspace = bigWorkspace()
    const child = startChild(
      `
      const onProgress = ({ phase }) => {
        if (phase !== 'copy') return
        send('copying')
        ${statement}
      }
      await sallyport.prepareContainedExecutionMirror({ ...input, onProgress })
      `,
      { workspace, input: workspace.options() },
    )
    const result = await child.finished
    expect(result).toMatchObject({ exitCode, signal: null })
    expect(result.messages[0]).toBe('copying')
    expect(workspace.leftovers()).toEqual([])
  })
})
