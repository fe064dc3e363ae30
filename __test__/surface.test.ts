// The real exports of the package, by import and by require, against the list of contract/surface.md, which stands here
// in the contract's order. What the contract marks *(4)* is not built yet and not listed.

import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import * as imported from '../index.mjs'
import { runChild, startChild } from './support/child'
import { createWorkspace } from './support/workspace'

const required = createRequire(import.meta.url)('../index.js') as Record<string, unknown>

const functions = [
  // Mirror
  'prepareContainedExecutionMirror',
  'withContainedExecutionMirror',
  'prepareContainedExecutionMirrorForTests',
  'withContainedExecutionMirrorForTests',
  'validateContainedExecutionMirrorLease',
  'describeContainedExecutionMirror',
  'sweepAbandonedMirrors',
  // Tree
  'buildFileTreeIndex',
  'diffFileTreeIndices',
  'readObservedChanges',
  'readSnapshotNode',
  'hashFileContent',
  'computeTreeHash',
  'hashFileNode',
  'hashDirectoryNode',
  'hashSymlinkTarget',
  'snapshotNodesEqual',
  'presentNodeKind',
  'compareRelativePathsBytewise',
  'validateRelativePath',
  'joinRelativePath',
  'isRootGitMetadataPath',
  'isNestedGitPath',
  'isExcludedTreePath',
  // Git boundary and paths
  'inspectGitResourceIdentity',
  'resolveGitResourceIdentity',
  'sameGitResourceIdentity',
  'isGitMetadataPath',
  'canonicalPath',
  'isPathOutsideRoot',
  'pathWithinRoot',
  'relativeWithinRepo',
  'containingGitRoot',
  'resolveWorkspaceRootMatch',
  // Failures
  'isContainedExecutionFailureCode',
  'containedExecutionFailurePhase',
  'isContainedExecutionApprovalFallbackReason',
  // Sandbox
  'runFallbackFilesSandboxed',
  'evaluateConfigSandboxed',
  'callSandboxed',
  'generateDriverSource',
  'generateConfigDriverSource',
  'bundleDriver',
  'classifyChildError',
  'encodeEntitySet',
  'decodeEntitySet',
  'probeIsolation',
]

const classes = [
  'ContainedExecutionFailureError',
  'ContainedExecutionCleanupUnconfirmedError',
  'FileCheckpointDiagnosticError',
  'DiscoveryError',
]

const constants = [
  'CONTAINED_EXECUTION_FAILURE_CODES',
  'CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS',
  'CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS',
  'CONTAINED_EXECUTION_CLEANUP_UNCONFIRMED',
  'CONTAINED_EXECUTION_SOURCE_CHANGED',
  'CONTAINED_EXECUTION_UNSAFE_SYMLINK',
  'FILE_CHECKPOINT_HARDLINK_UNSUPPORTED',
  'FILE_CHECKPOINT_UNSUPPORTED_NODE',
  'FILE_CHECKPOINT_NESTED_REPOSITORY',
  'FILE_CHECKPOINT_QUOTA_EXCEEDED',
  'FILE_CHECKPOINT_PREPARE_TIMEOUT',
  'FILE_CHECKPOINT_PATH_ESCAPE',
  'FILE_CHECKPOINT_COPY_FAILED',
]

function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))
}

describe.each([
  ['import', imported as Record<string, unknown>],
  ['require', required],
])('the exports by %s', (_way, exports) => {
  it('are exactly those of the contract', () => {
    expect(Object.keys(exports).sort()).toEqual([...functions, ...classes, ...constants].sort())
  })

  it.each(functions)('%s is a function, by that name', (name) => {
    expect(typeof exports[name]).toBe('function')
    expect(isClass(exports[name])).toBe(false)
    expect((exports[name] as Function).name).toBe(name)
  })

  it.each(classes)('%s is a class of errors, by that name', (name) => {
    const constructor = exports[name] as Function
    expect(isClass(constructor)).toBe(true)
    expect(constructor.prototype).toBeInstanceOf(Error)
    expect(constructor.name).toBe(name)
  })

  it.each(constants)('%s is a constant that nobody can change', (name) => {
    const value = exports[name]
    expect(typeof value === 'string' || Array.isArray(value) || typeof value === 'object').toBe(true)
    expect(Object.isFrozen(value)).toBe(true)
  })
})

describe('the two ways in', () => {
  it('give the very same objects', () => {
    for (const [name, value] of Object.entries(imported)) expect(required[name], name).toBe(value)
  })

  it('are found by the name of the package', async () => {
    const script = `
      const { createRequire } = await import('node:module')
      const byName = createRequire(path.join(packageFolder, 'index.js'))('sallyport')
      send({ names: Object.keys(byName).sort(), same: byName.computeTreeHash === sallyport.computeTreeHash })
    `
    const messages = await runChild(script, { workspace: createWorkspace() })
    expect(messages).toEqual([{ names: Object.keys(required).sort(), same: true }])
  })
})

describe('a native addon that cannot be loaded', () => {
  it('is an error with a code, a cause and what to do', async () => {
    const workspace = createWorkspace()
    const absent = path.join(workspace.base, 'absent.node')
    const script = `
      process.env.NAPI_RS_NATIVE_LIBRARY_PATH = input.absent
      const { createRequire } = await import('node:module')
      const packageRequire = createRequire(path.join(packageFolder, 'index.js'))
      for (const name of Object.keys(packageRequire.cache)) delete packageRequire.cache[name]
      try {
        packageRequire('./index.js')
        send({ loaded: true })
      } catch (error) {
        send({ name: error.name, code: error.code, message: error.message, cause: error.cause?.name })
      }
    `
    const { messages, errorOutput } = await startChild(script, { workspace, input: { absent } }).finished
    expect(messages, errorOutput).toHaveLength(1)
    expect(messages[0]).toMatchObject({ name: 'Error', code: 'ERR_NATIVE_BINDING', cause: 'Error' })
    expect(messages[0].message).toContain(`${process.platform}-${process.arch}`)
    expect(messages[0].message).toContain('npm run build')
  })
})
