// A long life with sandboxed runs: many at once and many in a row, with nothing left and flat memory, and a host that
// ends, by itself, in the middle of a run, or one of its threads. Each in a process of its own, with a temp directory
// of its own, so that what is left can be seen.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { sweepAbandonedMirrors } from '../index.mjs'
import { runChild, startChild } from './support/child'
import { rounds } from './support/effort'
import { createProject } from './support/projects'
import { bundlesIn, declaring, GOOD, processesOf } from './support/sandbox'
import { createWorkspace, type Workspace } from './support/workspace'

/** The beginning of a body: the temp directory of this test, and what there is to see. */
const LOOK = `
  process.env.TMPDIR = input.temp
  const { file, bad, root } = input
  const quiet = { onOutput: () => {} }
  const settled = (milliseconds = 300) => new Promise((resolve) => setTimeout(resolve, milliseconds))
  const children = () =>
    fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).flatMap((name) => {
      try {
        const status = fs.readFileSync('/proc/' + name + '/status', 'utf8')
        if (Number(/PPid:\\s+(\\d+)/.exec(status)[1]) !== process.pid) return []
        // The bundler's own service lives as long as its thread.
        const program = /Name:\\s+(.*)/.exec(status)[1]
        return program === 'esbuild' ? [] : [program + ' ' + fs.readFileSync('/proc/' + name + '/cmdline', 'utf8')]
      } catch { return [] }
    })
  const heapOf = ({ heapUsed, external }) => heapUsed + external
  const listeners = () =>
    process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  const look = () => {
    for (let turn = 0; turn < 3; turn += 1) globalThis.gc()
    return {
      descriptors: fs.readdirSync('/proc/self/fd').length,
      threads: fs.readdirSync('/proc/self/task').length,
      heap: heapOf(process.memoryUsage()),
      memory: Number(/VmRSS:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) * 1024,
      listeners: listeners(),
      children: children(),
      left: fs.readdirSync(input.temp).filter((name) => name.startsWith('chant-sandbox-')),
    }
  }
`

interface Setting {
  workspace: Workspace
  input: { temp: string; root: string; file: string; bad: string; spins: string }
}

function setting(): Setting {
  const workspace = createWorkspace()
  const project = createProject({
    'good.ts': GOOD,
    'bad.ts': `console.log('output'); throw new Error('bad')`,
    'spins.ts': declaring('spins', '{}', `console.log('running')\nfor (;;);`),
  })
  const [file, bad, spins] = ['good.ts', 'bad.ts', 'spins.ts'].map(project.file) as [string, string, string]
  return { workspace, input: { temp: workspace.temp, root: project.root, file, bad, spins } }
}

/** Waits until nothing of a host that is gone is left, which the system needs a moment for. */
async function left({ input }: Setting): Promise<{ bundles: string[]; processes: string[] }> {
  const seen = () => ({
    bundles: bundlesIn(input.temp),
    processes: processesOf(input.temp).filter((command) => command.includes('chant-sandbox-')),
  })
  for (let turn = 0; turn < 250; turn += 1) {
    const { bundles, processes } = seen()
    if (bundles.length === 0 && processes.length === 0) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return seen()
}

/** With a file that imports a hundred others, so that bundling takes a while. */
function withMany(input: Setting['input'], count: number) {
  const names = Array.from({ length: 100 }, (_, index) => `many-${index}`)
  for (const name of names) fs.writeFileSync(path.join(input.root, `${name}.ts`), 'export const one = 1')
  fs.writeFileSync(`${input.spins}.ts`, names.map((name) => `import './${name}'`).join('\n'))
  return { ...input, rounds: count }
}

describe('runs', () => {
  it('sixteen at once do not meet each other, and leave nothing', async () => {
    const { workspace, input } = setting()
    const [result] = await runChild(
      `${LOOK}
      await sallyport.runFallbackFilesSandboxed([file], root, quiet)
      await settled()
      const before = look()
      const results = await Promise.all(
        Array.from({ length: 16 }, (_, index) => {
          const files = index % 2 === 0 ? [file] : [file, bad]
          return sallyport.runFallbackFilesSandboxed(files, root, quiet)
        }),
      )
      // Before anything is collected: what a run holds is let go of when it ends, not when its memory is.
      const descriptors = fs.readdirSync('/proc/self/fd').length
      const directly = { children: children(), left: look().left }
      await settled()
      const outcomes = results.map(({ entities, errors }) => [...entities.keys(), ...errors.map(({ message }) => message)].join())
      send({ before, after: look(), directly, descriptors, outcomes })
      `,
      { workspace, input, nodeOptions: ['--expose-gc'] },
    )
    const { before, after, directly, descriptors, outcomes } = result
    expect(outcomes).toEqual(Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? 'good' : 'good,bad')))
    expect(directly).toEqual({ children: [], left: [] })
    expect(after).toMatchObject({ children: [], left: [], listeners: before.listeners })
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors)
    expect(descriptors).toBeLessThanOrEqual(before.descriptors)
  })

  it('two hundred in a row leave nothing, memory is flat, and the process ends by itself', async () => {
    const { workspace, input } = setting()
    const repetitions = rounds(200, 40)
    const [result] = await runChild(
      `${LOOK}
      const counts = { entities: 0, errors: 0, aborted: 0 }
      const work = async (count) => {
        for (let round = 0; round < count; round += 1) {
          const controller = new AbortController()
          const options = round % 4 === 3 ? { ...quiet, signal: controller.signal } : quiet
          const running = sallyport.runFallbackFilesSandboxed([file, bad], root, options)
          if (round % 4 === 3) setTimeout(() => controller.abort('enough'), round % 7)
          const result = await running.catch((reason) => {
            if (reason !== 'enough') throw reason
            counts.aborted += 1
          })
          counts.entities += result?.entities.size ?? 0
          counts.errors += result?.errors.length ?? 0
        }
      }
      await work(input.repetitions / 4)
      await settled()
      const before = look()
      counts.entities = counts.errors = counts.aborted = 0
      await work(input.repetitions)
      await settled()
      send({ before, after: look(), counts })
      `,
      { workspace, input: { ...input, repetitions }, nodeOptions: ['--expose-gc'] },
    )
    const { before, after, counts } = result
    expect(counts.entities + counts.aborted).toBe(repetitions)
    expect(counts.errors).toBe(counts.entities)
    expect(counts.entities).toBeGreaterThanOrEqual((repetitions * 3) / 4)
    expect(after).toMatchObject({ children: [], left: [], listeners: before.listeners })
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors)
    expect(after.threads).toBeLessThanOrEqual(before.threads)
    // A bundle that is kept would be a hundred kilobytes for each run; the allocator's own growth ends after some hundred.
    expect(after.heap - before.heap).toBeLessThan(4 * 1024 ** 2)
    expect(after.memory - before.memory).toBeLessThan(48 * 1024 ** 2)
  })

  it('that are refused as arguments leave nothing', async () => {
    const { workspace, input } = setting()
    const [result] = await runChild(
      `${LOOK}
      const attempts = [
        () => sallyport.runFallbackFilesSandboxed([file + '.missing'], root),
        () => sallyport.runFallbackFilesSandboxed([file, file], root),
        () => sallyport.runFallbackFilesSandboxed([file], file),
        () => sallyport.runFallbackFilesSandboxed([file], root, { nodePath: '/nowhere' }),
        () => sallyport.runFallbackFilesSandboxed([file], root, { nodePath: '/bin/true' }),
        () => sallyport.runFallbackFilesSandboxed([file], root, { readRoots: ['/nowhere'] }),
        () => sallyport.runFallbackFilesSandboxed([file], root, { modules: { collect: file, resolve: file, entityWireCodec: file, provenance: file }, onOutput: () => {} }),
        () => sallyport.runFallbackFilesSandboxed([file], root, { modules: { collect: '/nowhere.js', resolve: file, entityWireCodec: file, provenance: file } }),
      ]
      const codes = []
      for (const attempt of attempts) codes.push(await attempt().then(() => 'fulfilled', (error) => error.name + ' ' + error.code))
      send({ codes, after: look() })
      `,
      { workspace, input, nodeOptions: ['--expose-gc'] },
    )
    expect(result.codes).toEqual(Array(8).fill('TypeError ERR_INVALID_ARG_VALUE'))
    expect(result.after).toMatchObject({ children: [], left: [] })
  })
})

describe('the host', () => {
  it('ends by itself after a run whose project left everything open', async () => {
    const { workspace, input } = setting()
    fs.writeFileSync(input.bad, `setInterval(() => {}, 1000); process.stdin.resume()\n${GOOD}`)
    const [count] = await runChild(
      `${LOOK}
      const result = await sallyport.runFallbackFilesSandboxed([bad], root, quiet)
      send(result.entities.size)
      // Nothing ends the process here: it must end because nothing holds it.
      `,
      { workspace, input },
    )
    expect(count).toBe(1)
  })

  it.each([
    ['process.exit()', 'process.exit(7)', 7, null],
    ['an error that nobody catches', `setImmediate(() => { throw new Error('nobody catches this') })`, 1, null],
    ['SIGKILL', `process.kill(process.pid, 'SIGKILL')`, null, 'SIGKILL'],
  ])('that ends by %s in the middle of a run takes the child with it', async (_how, statement, exitCode, signal) => {
    const given = setting()
    const { workspace, input } = given
    const child = startChild(
      `${LOOK}
      const onOutput = () => { send('running'); ${statement} }
      await sallyport.runFallbackFilesSandboxed([input.spins], root, { onOutput })
      `,
      { workspace, input },
    )
    expect(await child.finished).toMatchObject({ messages: ['running'], exitCode, signal })
    const { bundles, processes } = await left(given)
    expect(processes).toEqual([])
    // Nobody can clean up behind SIGKILL, but a sweep later.
    if (signal === null) expect(bundles).toEqual([])
    else for (const bundle of bundles) expect(fs.statSync(path.join(input.temp, bundle)).mode & 0o077).toBe(0)
    const roots = bundles.map((bundle) => path.join(input.temp, bundle))
    const swept = await sweepAbandonedMirrors({ tempDirectory: input.temp, olderThanMs: 0 })
    expect(swept).toEqual({ removed: signal === null ? [] : roots, kept: 0 })
    expect(bundlesIn(input.temp)).toEqual([])
  })

  it('may sweep while it runs something: what it uses, and bundles that it made, are left', async () => {
    const { workspace, input } = setting()
    const [result] = await runChild(
      `${LOOK}
      const { bundleDir } = await sallyport.bundleDriver('export {}')
      const sweep = () => sallyport.sweepAbandonedMirrors({ olderThanMs: 0 })
      let swept
      const onOutput = () => { swept ??= sweep() }
      const controller = new AbortController()
      const running = sallyport.runFallbackFilesSandboxed([input.spins], root, { onOutput, signal: controller.signal })
      while (swept === undefined) await settled(5)
      const first = await swept
      controller.abort('enough')
      const reason = await running.catch((reason) => reason)
      send({ first, reason, left: look().left.length === 1 && fs.existsSync(bundleDir + '/child.mjs'), after: await sweep() })
      `,
      { workspace, input, nodeOptions: ['--expose-gc'] },
    )
    const nothing = { removed: [], kept: 0 }
    expect(result).toEqual({ first: { removed: [], kept: 1 }, reason: 'enough', left: true, after: nothing })
  })

  it('that ends while runs begin leaves nothing', async () => {
    for (const delay of [0, 45, 90, 5, 15, 30, 60, 150, 250].slice(0, rounds(9, 4))) {
      const given = setting()
      const { workspace, input } = given
      const child = startChild(
        `${LOOK}
        for (let count = 0; count < 3; count += 1) void sallyport.runFallbackFilesSandboxed([input.spins], root, quiet)
        setTimeout(() => process.exit(0), ${delay})
        `,
        { workspace, input },
      )
      expect(await child.finished).toMatchObject({ exitCode: 0, signal: null })
      expect(await left(given), `after ${delay} ms`).toEqual({ bundles: [], processes: [] })
    }
  })

  it('that ends while a bundle is made for a caller leaves nothing', async () => {
    const given = setting()
    const { workspace, input } = given
    const body = `${LOOK}
      const driverSource = sallyport.generateDriverSource({ files: [file], buildRoot: root })
      void sallyport.bundleDriver(driverSource, { buildRoot: root })
      setImmediate(() => {
        send(look().left.length)
        process.exit(0)
      })
      await new Promise(() => {})
      `
    const [made] = await runChild(body, { workspace, input, nodeOptions: ['--expose-gc'] })
    expect(made).toBe(1)
    expect(await left(given)).toEqual({ bundles: [], processes: [] })
  })

  it('may lose its bundlers at any moment: no file is blamed, nothing is thrown past the caller', async () => {
    const { workspace, input } = setting()
    const [result] = await runChild(
      `${LOOK}
      const thrown = []
      process.on('uncaughtException', (error) => thrown.push(String(error.stack)))
      const bundlers = () => fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).filter((name) => {
        try {
          const status = fs.readFileSync('/proc/' + name + '/status', 'utf8')
          return /Name:\\s+esbuild\\n/.test(status) && Number(/PPid:\\s+(\\d+)/.exec(status)[1]) === process.pid
        } catch { return false }
      })
      let over = false
      let killed = 0
      const killing = (async () => {
        while (!over) {
          await settled(Math.random() * 100)
          for (const pid of bundlers()) {
            process.kill(Number(pid), 'SIGKILL')
            killed += 1
          }
        }
      })()
      const outcomes = new Set()
      for (let round = 0; round < input.rounds; round += 1) {
        const runs = Array.from({ length: 4 }, () => sallyport.runFallbackFilesSandboxed([file, input.spins + '.ts'], root, quiet))
        for (const { status, value, reason } of await Promise.allSettled(runs)) {
          outcomes.add(status === 'rejected' ? reason.code : value.errors.map(String).join())
        }
      }
      over = true
      await killing
      await settled()
      const again = await sallyport.runFallbackFilesSandboxed([file], root, quiet)
      send({ thrown, killed, outcomes: [...outcomes], again: [...again.entities.keys()], left: look().left })
      `,
      { workspace, input: withMany(input, rounds(15, 5)), nodeOptions: ['--expose-gc'] },
    )
    expect(result).toMatchObject({ thrown: [], again: ['good'], left: [] })
    expect(result.killed).toBeGreaterThan(0)
    for (const outcome of result.outcomes) expect(['', 'ERR_BUNDLER_KILLED']).toContain(outcome)
  })

  it('that ends a thread in the middle of a run leaves nothing of it, and lives on', async () => {
    const given = setting()
    const { workspace, input } = given
    const [result] = await runChild(
      `${LOOK}
      import { Worker } from 'node:worker_threads'
      const code = \`
        const { parentPort, workerData } = require('node:worker_threads')
        process.env.TMPDIR = workerData.temp
        const sallyport = require(workerData.packageFolder)
        const onOutput = () => parentPort.postMessage('running')
        sallyport.runFallbackFilesSandboxed([workerData.spins], workerData.root, { onOutput })
      \`
      const seen = []
      for (let round = 0; round < input.rounds; round += 1) {
        const worker = new Worker(code, { eval: true, workerData: { ...input, packageFolder } })
        seen.push(await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)))
        await worker.terminate()
      }
      for (let turn = 0; turn < 250 && (children().length > 0 || look().left.length > 0); turn += 1) await settled(20)
      const { children: alive, left } = look()
      const after = await sallyport.runFallbackFilesSandboxed([file], root, quiet)
      send({ seen, alive, left, entities: [...after.entities.keys()] })
      `,
      { workspace, input: { ...input, rounds: rounds(5, 2) }, nodeOptions: ['--expose-gc'] },
    )
    expect(result).toEqual({ seen: Array(rounds(5, 2)).fill('running'), alive: [], left: [], entities: ['good'] })
    expect(await left(given)).toEqual({ bundles: [], processes: [] })
  })
})
