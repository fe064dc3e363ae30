// What the tests of the sandboxed run share: a temp directory of the test file's own, so that what a run leaves behind
// can be seen while other test files run beside it, and projects that speak the entity protocol. After each test it
// fails where a bundle, a process or a listener of a run is left. Errors of the system are thrown as they are.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, expect } from 'vitest'

import {
  type DiscoveryError,
  runFallbackFilesSandboxed,
  type SandboxOptions,
  type SandboxRunResult,
} from '../../index.mjs'
import { createProject, packageRoot, type Project, type ProjectFiles } from './projects'
import { removeTree } from './workspace'

/** Where this test file's runs put their bundles: `os.tmpdir()` is told by the environment, each time it is asked. */
export const temporary = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-sandbox-')))
fs.chmodSync(temporary, 0o755)
const callersTemporary = process.env.TMPDIR
process.env.TMPDIR = temporary

afterAll(() => {
  if (callersTemporary === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = callersTemporary
  removeTree(temporary)
})

afterEach(() => {
  expect(leftBehind()).toEqual({ bundles: [], processes: [], listeners: 0 })
})

/** What is left of the runs of this test file. */
export function leftBehind(): { bundles: string[]; processes: string[]; listeners: number } {
  return {
    bundles: bundlesIn(temporary),
    processes: processesOf(temporary),
    listeners: process.listenerCount('exit') - ownListeners,
  }
}

// vitest and esbuild listen too.
let ownListeners = process.listenerCount('exit')

/** Takes the listeners that are there now for those of others; called once esbuild has started. */
export function forgetListeners(): void {
  ownListeners = process.listenerCount('exit')
}

export function bundlesIn(directory: string): string[] {
  return fs.readdirSync(directory).filter((name) => name.startsWith('chant-sandbox-'))
}

/** The command lines of the living processes that name this directory, except this process and the bundler's. */
export function processesOf(directory: string): string[] {
  const found: string[] = []
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    try {
      const commandLine = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      if (commandLine.includes(directory)) found.push(commandLine)
    } catch (error) {
      // It ended while it was looked at.
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
  return found
}

/** The text of a declaration library that speaks the entity protocol. */
export const protocolSource = fs.readFileSync(path.join(packageRoot, '__test__/support/entities/protocol.ts'), 'utf8')

/** A resource by the shortest way: `const thing = resource({ … })`. */
export const RESOURCE = `
const hide = (target: object, key: PropertyKey, value: unknown) => Object.defineProperty(target, key, { value, writable: true, configurable: true })
const resource = (props: Record<string, unknown>) => {
  const entity: Record<PropertyKey, any> = {}
  hide(entity, Symbol.for('chant.declarable'), true)
  for (const [key, value] of Object.entries({ lexicon: 'cloud', entityType: 'Thing', kind: 'resource', props })) hide(entity, key, value)
  return entity
}
`

/** The text of a file that exports one resource, after `statements`. */
export function declaring(name: string, props = '{}', statements = ''): string {
  return `${RESOURCE}\n${statements}\nexport const ${name} = resource(${props})\n`
}

/** A file that declares the entity `good`, to see that it is not harmed by its neighbours. */
export const GOOD = declaring('good')

export interface SandboxProject extends Project {
  /** Runs these files, relative to the build root; all of the project's `.ts` files where none are given. */
  run(files?: readonly string[], options?: SandboxOptions): Promise<SandboxRunResult>
}

export function sandboxProject(
  files: ProjectFiles,
  settings: Parameters<typeof createProject>[1] = {},
): SandboxProject {
  const project = createProject(files, settings)
  const all = Object.keys(files).filter((name) => /^[^/]+\.ts$/.test(name))
  return {
    ...project,
    run: (names = all, options = {}) =>
      runFallbackFilesSandboxed(names.map(project.file), project.root, quiet(options)),
  }
}

/** Output is not forwarded to the test's own stderr unless the test looks at it. */
function quiet(options: SandboxOptions): SandboxOptions {
  return 'onOutput' in options ? options : { ...options, onOutput: () => undefined }
}

export function errorOf(result: SandboxRunResult, file: string): DiscoveryError | undefined {
  return result.errors.find((error) => error.file === file)
}

/** The props of an entity as they crossed. */
export function propsOf(result: SandboxRunResult, name: string): any {
  const wire = result.entitySet.entities.find((entity) => entity.name === name)
  return wire?.form === 'declarable' ? wire.props : undefined
}

/** The names of the entities. */
export function namesOf(result: SandboxRunResult): string[] {
  return [...result.entities.keys()]
}
