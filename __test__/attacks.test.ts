// The corpus of attacks (`fixtures/attacks`), each a small project with what must come of it beside it: under both
// boundaries; under the kernel's layers alone, which proves that they hold by themselves; under Node's Permission Model
// alone and under neither, which proves that the attacks are real. The child is of the Node that runs the tests: `npm test`
// runs them on each. `npm run attacks` tries all of them from one, and prints the same as a table.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

import { runFallbackFilesSandboxed } from '../index.mjs'
import {
  configurations,
  readAttacks,
  runCorpus,
  runnerFor,
  type Configuration,
  type Row,
  type Run,
} from './support/attacks'
import { runChild } from './support/child'
import { ordinaryUserInstallation, packageRoot } from './support/ordinary-user'
import { createWorkspace } from './support/workspace'

const folder = path.join(packageRoot, '__test__', 'fixtures', 'attacks')
const library = fs.readdirSync(packageRoot).find((name) => /^sallyport\..*\.node$/.test(name)) ?? 'sallyport.node'
const attacks = readAttacks(folder)
const { runWithoutPermissionModel } = createRequire(import.meta.url)('../js/sandbox/internal-for-tests.js') as {
  runWithoutPermissionModel: Run
}
const runners = { runFallbackFilesSandboxed: runFallbackFilesSandboxed as unknown as Run, runWithoutPermissionModel }

function told(rows: Row[]): string[] {
  return rows.map(
    ({ attack, node, configuration, expected, actual, detail }) =>
      `${attack} on ${node}, ${configuration}: ${actual.slice(0, 200)}, and not ${expected.join(' or ')} (${detail.slice(0, 200)})`,
  )
}

function expectAsExpected(rows: Row[], configuration: Configuration): void {
  expect(rows.map(({ attack }) => attack)).toEqual(attacks.map(({ name }) => name))
  if (configuration === 'kernel' || configuration === 'kernelAlone') {
    expect(told(rows.filter(({ actual }) => actual === 'escapes'))).toEqual([])
  }
  expect(told(rows.filter(({ holds }) => !holds))).toEqual([])
}

describe('the corpus', () => {
  it('holds more attacks than the sixty that were asked for, in every area, each with an outcome for every run', () => {
    expect(attacks.length).toBeGreaterThanOrEqual(60)
    expect([...new Set(attacks.map(({ area }) => area))].sort()).toEqual([
      'databases',
      'descriptors',
      'loading',
      'network',
      'processes',
      'reading',
      'resources',
      'writing',
    ])
    const contradicting = attacks.filter(({ kernel, kernelAlone }) =>
      /escapes/.test(JSON.stringify([kernel, kernelAlone])),
    )
    expect(contradicting.map(({ name }) => name)).toEqual([])
    expect(attacks.filter(({ open, node }) => open === undefined || node === undefined)).toEqual([])
  })

  it('is real: most of it escapes where nothing but the limits holds', () => {
    const escaping = attacks.filter(({ open }) => JSON.stringify(open).includes('escapes'))
    expect(escaping.length).toBeGreaterThan(attacks.length / 2)
  })
})

describe('as the user who runs the tests', () => {
  it.each(configurations)('what comes of every attack is what is written beside it: %s', async (configuration) => {
    const rows = await runCorpus({
      folder,
      library: path.join(packageRoot, library),
      run: runnerFor(configuration, runners),
      configuration,
      nodePath: fs.realpathSync(process.execPath),
      nodeVersion: process.version,
    })
    expectAsExpected(rows, configuration)
  })
})

describe('as an ordinary user', () => {
  it.each(['kernel', 'kernelAlone'] as const)('the same comes of every attack: %s', async (configuration) => {
    const workspace = createWorkspace()
    const runner = path.join(workspace.base, 'attacks.mjs')
    await build({
      entryPoints: [path.join(packageRoot, '__test__', 'support', 'attacks.ts')],
      outfile: runner,
      bundle: true,
      platform: 'node',
      format: 'esm',
    })
    const copied = path.join(workspace.base, 'attacks')
    fs.cpSync(folder, copied, { recursive: true })
    const { packageRoot: installed, node } = ordinaryUserInstallation()
    const [rows] = await runChild(
      `
      import { createRequire } from 'node:module'
      import { pathToFileURL } from 'node:url'
      const { runCorpus, runnerFor } = await import(pathToFileURL(input.runner).href)
      const { runWithoutPermissionModel } = createRequire(import.meta.url)(input.internal)
      const runners = { runFallbackFilesSandboxed: sallyport.runFallbackFilesSandboxed, runWithoutPermissionModel }
      send(await runCorpus({ ...input.corpus, run: runnerFor(input.corpus.configuration, runners), nodeVersion: process.version }))
      `,
      {
        workspace,
        asOrdinaryUser: true,
        input: {
          runner,
          internal: path.join(installed, 'js', 'sandbox', 'internal-for-tests.js'),
          corpus: { folder: copied, library: path.join(installed, library), configuration, nodePath: node },
        },
      },
    )
    expectAsExpected(rows as Row[], configuration)
  })
})
