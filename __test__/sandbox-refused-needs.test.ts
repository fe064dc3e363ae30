// Layers that refuse what Node itself needs, on every supported Node: the run ends at once and says so in words. The
// package never makes such layers by itself, so the request is written here, as js/sandbox.js writes it.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { expect, it } from 'vitest'

import { temporary } from './support/sandbox'
import { versions } from './support/versions'

const require = createRequire(import.meta.url)

interface Report {
  kind: string
  message: string
  type: string
  code: string
}

interface ProgramFiles {
  loader: string
  libraries: string[]
}

const { runJob } = require('../js/job.js') as {
  runJob<T>(kind: string, request: object, options?: object): Promise<{ value: T }>
}
const { launcherPath } = require('../js/sandbox/launcher.js') as { launcherPath(): string }

/** What comes of a Node that is granted this much; where it starts it prints its version and waits to be told. */
async function reportOf(node: string, granted: (files: ProgramFiles) => object, begin: boolean): Promise<Report> {
  const { value: files } = await runJob<ProgramFiles>('programFiles', { path: node })
  const bundleDirectory = fs.mkdtempSync(path.join(temporary, 'chant-sandbox-'))
  fs.chmodSync(bundleDirectory, 0o700)
  const request = {
    launcher: launcherPath(),
    program: node,
    arguments: ['--openssl-config=/dev/null', '--eval', 'fs.readSync(4, Buffer.alloc(1)); process.exit(9)'],
    environment: [],
    cpuSeconds: null,
    memoryLimitBytes: 2 ** 32,
    maxResultBytes: 1000,
    timeoutMs: 20_000,
    expected: 'run',
    label: 'sandbox:run',
    readable: [bundleDirectory],
    layers: {
      landlock: { readable: [], executable: [], writable: ['/dev/null'], ...granted(files) },
      seccomp: true,
      required: true,
    },
    bundleDirectory,
  }
  const onStart = (job: { begin(): void }): void => {
    if (begin) job.begin()
  }
  try {
    return (await runJob<{ report: Report }>('sandbox', request, { onStart })).value.report
  } finally {
    fs.rmSync(bundleDirectory, { recursive: true, force: true })
  }
}

const broken = { kind: 'broken', type: 'import' }

it.each(versions)('Node %s that is granted what it needs begins', async (_major, node) => {
  const granted = ({ loader, libraries }: ProgramFiles) => ({ readable: libraries, executable: [node, loader] })
  const report = await reportOf(node, granted, true)
  expect(report).toMatchObject({ ...broken, code: 'sandbox_exited' })
  expect(report.message).toBe('sandbox:run exited before reporting (exit code 9)')
})

it.each(versions)('Node %s without its libraries ends with the words of the loader', async (_major, node) => {
  for (const begin of [false, true]) {
    const report = await reportOf(node, ({ loader }) => ({ executable: [node, loader] }), begin)
    expect(report).toMatchObject({ ...broken, code: 'sandbox_exited' })
    expect(report.message).toContain('sandbox:run ended before any of its files was evaluated (exit code 127): ')
    expect(report.message).toContain('a layer of the sandbox refuses what it needs')
    expect(report.message).toContain('npx sallyport doctor')
    expect(report.message).toMatch(/error while loading shared libraries: \S+: cannot open shared object file/)
  }
})

it.each(versions)('Node %s without its loader, or itself, is not started', async (_major, node) => {
  for (const executable of [(loader: string) => [loader], () => [node]]) {
    const report = await reportOf(
      node,
      ({ loader, libraries }) => ({ readable: libraries, executable: executable(loader) }),
      true,
    )
    expect(report).toMatchObject({ ...broken, code: 'sandbox_launch_failed' })
    expect(report.message).toContain(`sandbox:run could not be started: starting ${node}: Permission denied`)
  }
})

it.each(versions)('Node %s without what it opens at its start ends with its own words', async (_major, node) => {
  const granted = ({ loader, libraries }: ProgramFiles) => ({
    readable: libraries,
    executable: [node, loader],
    writable: [],
  })
  const report = await reportOf(node, granted, true)
  expect(report).toMatchObject({ ...broken, code: 'sandbox_exited' })
  expect(report.message).toContain('sandbox:run ended before any of its files was evaluated (exit code ')
  expect(report.message).toMatch(/OpenSSL configuration error:.*Permission denied/s)
})
