// A kernel that lacks a layer, as an old one or a container's profile does: a run falls back or refuses as its level
// says, guarantee by guarantee. The layers are hidden by a filter on the host process (tests/tools/under_filter.rs).

import { execFile, execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target')
const underFilter = path.join(target, 'debug', 'examples', 'under_filter')

const SCRIPT = `
const { default: sallyport } = await import(process.argv[2])
const project = process.argv[3]
const results = { probe: await sallyport.probeIsolation() }
for (const isolation of ['kernel', 'best-effort', 'node']) {
  for (const round of [0, 1]) {
    const run = sallyport.runFallbackFilesSandboxed([project + '/a.ts'], project, { isolation })
    results[isolation + round] = await run.then(
      ({ errors, isolation: report }) => ({ errors: errors.map((error) => error.message), report }),
      (error) => ({ code: error.code, message: error.message }),
    )
  }
}
console.log(JSON.stringify(results))
`

interface Report {
  level: string
  guarantees: Record<string, { held: boolean; by: string[]; reason?: string }>
  landlockAbi: number | null
}
interface Outcome {
  errors?: string[]
  report?: Report
  code?: string
  message?: string
}
type Results = Record<string, Outcome> & { probe: Report }

let project: string

beforeAll(() => {
  execFileSync('cargo', ['build', '--quiet', '--locked', '--no-default-features', '--example', 'under_filter'], {
    cwd: root,
  })
  project = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-hidden-')))
  fs.writeFileSync(path.join(project, 'a.ts'), 'export const value = 1\n')
  fs.writeFileSync(path.join(project, 'script.mjs'), SCRIPT)
}, 300_000)

afterAll(() => fs.rmSync(project, { recursive: true, force: true }))

async function runHidden(layer: string): Promise<{ results: Results; stderr: string }> {
  const index = pathToFileURL(path.join(root, 'index.js')).href
  const script = path.join(project, 'script.mjs')
  const { stdout, stderr } = await promisify(execFile)(underFilter, [layer, process.execPath, script, index, project])
  return { results: JSON.parse(stdout) as Results, stderr }
}

function held(report: Report): string[] {
  return Object.keys(report.guarantees).filter((name) => report.guarantees[name]?.held)
}

describe.each([
  ['landlock', ['network', 'processes', 'signals'], ['files', 'memory']],
  ['seccomp', ['files', 'signals'], ['network', 'processes', 'memory']],
])('without %s', (layer, left, missing) => {
  let outcome: { results: Results; stderr: string }

  beforeAll(async () => {
    outcome = await runHidden(layer)
  }, 120_000)

  it('the probe tells what is held by what is left, and why the rest is not', () => {
    const { probe } = outcome.results
    expect(probe.level).toBe('partial')
    expect(held(probe).sort()).toEqual([...left].sort())
    for (const name of missing) expect(probe.guarantees[name]?.reason).toContain(layer)
    if (layer === 'landlock') expect(probe.landlockAbi).toBeNull()
  })

  it('kernel refuses, naming what is missing and why', () => {
    for (const round of ['kernel0', 'kernel1']) {
      const refusal = outcome.results[round] as Outcome
      expect(refusal.code).toBe('sandbox_isolation_unavailable')
      for (const name of missing) expect(refusal.message).toContain(name)
      expect(refusal.message).toContain(layer)
    }
  })

  it('best-effort runs, tells it in the result, and once on stderr', () => {
    for (const round of ['best-effort0', 'best-effort1']) {
      const { errors, report } = outcome.results[round] as Outcome
      expect(errors).toEqual([])
      expect(report?.level).toBe('partial')
      expect(held(report as Report).sort()).toEqual([...left].sort())
    }
    expect(outcome.stderr.split('the sandbox is held by less').length).toBe(2)
    for (const name of missing) expect(outcome.stderr).toContain(`${name}: project source may`)
  })

  it('node runs and claims nothing of the kernel', () => {
    const { errors, report } = outcome.results.node0 as Outcome
    expect(errors).toEqual([])
    expect(report?.level).toBe('node')
  })
})
