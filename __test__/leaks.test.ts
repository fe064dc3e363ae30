// A long life: a thousand mirrors, half of them refused, with flat memory, descriptors and threads; and a process that
// ends by itself afterwards. Each in a child, so that the test runner's own memory is not measured.

import { describe, expect, it } from 'vitest'

import { runChild } from './support/child'
import { rounds } from './support/effort'
import { buildTree, createWorkspace, directory, fifo, file, symlink } from './support/workspace'

const REPEATED = `
  const { repetitions, options, badOptions } = input
  const look = () => {
    for (let turn = 0; turn < 3; turn += 1) globalThis.gc()
    const status = fs.readFileSync('/proc/self/status', 'utf8')
    return {
      descriptors: fs.readdirSync('/proc/self/fd').length,
      threads: fs.readdirSync('/proc/self/task').length,
      memory: Number(/VmRSS:\\s+(\\d+)/.exec(status)[1]) * 1024,
    }
  }
  const settled = () => new Promise((resolve) => setTimeout(resolve, 200))
  let accepted = 0
  let refused = 0
  const work = async (count) => {
    for (let round = 0; round < count; round += 1) {
      const mirror = await sallyport.prepareContainedExecutionMirror(options)
      await mirror.cleanup()
      accepted += 1
      try {
        await sallyport.prepareContainedExecutionMirror(badOptions)
      } catch (error) {
        if (error.code !== 'file_checkpoint_unsupported_node') throw error
        refused += 1
      }
      await sallyport.buildFileTreeIndex({ resourceRoot: options.sourceRoot })
    }
  }
  await work(repetitions / 4)
  await settled()
  const before = look()
  accepted = refused = 0
  await work(repetitions / 2)
  await settled()
  const after = look()
  send({ before, after, accepted, refused, left: fs.readdirSync(options.tempDirectory) })
  // Nothing ends the process here: it must end because nothing holds it.
`

describe('a thousand mirrors', () => {
  it('leave memory, descriptors and threads as they were, and the process ends by itself', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [
      ...Array.from({ length: 20 }, (_, index) => file(`good/d${index % 4}/f${index}`, 'x'.repeat(index * 100))),
      ...[symlink('good/l', 'd0'), directory('good/empty')],
      ...[file('bad/a'), fifo('bad/p')],
    ])
    const repetitions = rounds(1000, 200)
    const [result] = await runChild(REPEATED, {
      workspace,
      nodeOptions: ['--expose-gc'],
      input: {
        repetitions,
        options: workspace.options({ sourceRoot: `${workspace.source}/good` }),
        badOptions: workspace.options({ sourceRoot: `${workspace.source}/bad` }),
      },
    })
    const { before, after, accepted, refused, left } = result
    expect({ accepted, refused, left }).toEqual({ accepted: repetitions / 2, refused: repetitions / 2, left: [] })
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors)
    expect(after.threads).toBeLessThanOrEqual(before.threads)
    // A kilobyte lost for each call would be a megabyte; a page table or a fragmented heap moves by less than this.
    expect(after.memory - before.memory).toBeLessThan(16 * 1024 ** 2)
  })

  it('a handle that was forgotten does not hold the process, and its root can be swept', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [file('a')])
    const [root] = await runChild(`send((await sallyport.prepareContainedExecutionMirror(input)).hostMirrorRoot)`, {
      workspace,
      input: workspace.options(),
    })
    const [swept] = await runChild(`send(await sallyport.sweepAbandonedMirrors(input))`, {
      workspace,
      input: { tempDirectory: workspace.temp, olderThanMs: 0 },
    })
    expect(swept).toEqual({ removed: [root], kept: 0 })
    expect(workspace.leftovers()).toEqual([])
  })

  it('loading the package alone does not hold the process', async () => {
    const workspace = createWorkspace()
    expect(await runChild(`send(typeof sallyport.prepareContainedExecutionMirror)`, { workspace })).toEqual([
      'function',
    ])
  })

  it('of which many are made at a time with few descriptors leave none behind', async () => {
    const workspace = createWorkspace()
    const folders = Array.from({ length: 31 }, (_, level) => `d${level}`)
    await buildTree(
      workspace,
      folders.map((_, level) => file([...folders.slice(0, level + 1), 'f'].join('/'), 'x'.repeat(1000))),
    )
    const [result] = await runChild(
      `
      const mirrors = Array.from({ length: 24 }, () =>
        sallyport.withContainedExecutionMirror(input, async () => 'made'))
      const settled = await Promise.allSettled(mirrors)
      const codes = settled.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.code)
      send({ codes, made: settled.length - codes.length, left: fs.readdirSync(input.tempDirectory) })
      `,
      { workspace, input: workspace.options(), shell: 'ulimit -n 64' },
    )
    // A mirror that is ready holds descriptors of its own, so the last ones may find none; what they made goes all the same.
    expect(result.codes.filter((code: string) => code !== 'EMFILE')).toEqual([])
    expect(result.made).toBeGreaterThan(0)
    expect(result.left).toEqual([])
  })
})
