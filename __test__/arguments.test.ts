// What every export does with bad input (contract/surface.md, "Errors, in general"): a TypeError with the right code
// that names the option, by rejection where the export is asynchronous, and nothing created. One row for each argument.

import { writeFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'

import * as sallyport from '../index.mjs'
import { refusal, thrownBy, type Refusal } from './support/refusal'
import { createWorkspace, generousLimits, removeTree } from './support/workspace'

const workspace = createWorkspace({ keep: true })
afterAll(() => removeTree(workspace.base))

const WRONG_TYPE = 'ERR_INVALID_ARG_TYPE'
const WRONG_VALUE = 'ERR_INVALID_ARG_VALUE'

/** Values that an argument of a kind must refuse. */
interface Kind {
  wrongTypes: unknown[]
  wrongValues: unknown[]
}

const path: Kind = { wrongTypes: [undefined, null, 1, {}, ['/a']], wrongValues: ['', '/a\0b'] }
const absolutePath: Kind = { ...path, wrongValues: ['', '/a\0b', 'a', './a'] }
const relativePath: Kind = { wrongTypes: [undefined, null, 1, {}], wrongValues: ['a\0b'] }
const text: Kind = { wrongTypes: [undefined, null, 1, {}], wrongValues: [] }
const list: Kind = { wrongTypes: [undefined, null, '/a', {}, 1], wrongValues: [] }
const object: Kind = { wrongTypes: [undefined, null, 1, 'a', [], true], wrongValues: [] }
const flag: Kind = { wrongTypes: [null, 0, 'true', {}], wrongValues: [] }
const callback: Kind = { wrongTypes: [null, 1, 'a', {}], wrongValues: [] }
const signal: Kind = { wrongTypes: [null, 1, {}, { aborted: false }, new EventTarget()], wrongValues: [] }
const wholeNumber: Kind = { wrongTypes: [undefined, null, '1', {}, 1n], wrongValues: [-1, 1.5, NaN, Infinity, 2 ** 53] }
const mode: Kind = { ...wholeNumber, wrongValues: [-1, 1.5, NaN, 2 ** 32] }

function optional(kind: Kind): Kind {
  return { ...kind, wrongTypes: kind.wrongTypes.filter((value) => value !== undefined) }
}

function choice(...wrongValues: string[]): Kind {
  return { wrongTypes: [null, 1, {}], wrongValues: ['', ...wrongValues] }
}

interface Argument {
  /** As the error names it. */
  option: string
  kind: Kind
  /** The arguments of the call, all good but the one in question. */
  call(value: unknown): unknown[]
}

function argument(option: string, kind: Kind, call: (value: unknown) => unknown[]): Argument {
  return { option, kind, call }
}

const good = workspace.options()
const operation = async () => undefined

/** The rows that all four ways of making a mirror have in common; the codes of the reference have tests of their own. */
function mirrorArguments(...rest: unknown[]): Argument[] {
  const given = (name: string, kind: Kind) =>
    argument(`options.${name}`, kind, (value) => [{ ...good, [name]: value }, ...rest])
  return [
    argument('options', object, (value) => [value, ...rest]),
    given('sourceRoot', path),
    argument('options.controlPlaneRoots[1]', path, (value) => [{ ...good, controlPlaneRoots: ['/a', value] }, ...rest]),
    given('signal', signal),
    given('onProgress', callback),
    given('hardlinks', choice('keep')),
    given('preserveTimes', flag),
    given('flush', flag),
    given('tempDirectory', optional(path)),
  ]
}

function overrideArguments(...before: unknown[]): Argument[] {
  const hooks = ['makeTempRoot', 'removeRoot', 'now', 'afterSnapshotCaptured', 'beforeCopyOpen', 'afterCopyRead']
  return [
    argument('overrides', object, (value) => [...before, value]),
    ...hooks.map((hook) => argument(`overrides.${hook}`, callback, (value) => [...before, { [hook]: value }])),
  ]
}

const operationKind: Kind = { ...callback, wrongTypes: [undefined, ...callback.wrongTypes] }

const file = { kind: 'file', mode: 0o644, size: 1, hash: 'h' }
const directory = { kind: 'directory', mode: 0o755, hash: 'h' }
const link = { kind: 'symlink', target: 't', hash: 'h' }

/** The rows of a present node, named `name`, where `put` puts it into a call. */
function nodeArguments(name: string, put: (node: unknown) => unknown[]): Argument[] {
  return [
    argument(name, object, put),
    argument(`${name}.kind`, { ...choice('socket'), wrongTypes: [undefined, null, 1] }, (kind) =>
      put({ ...file, kind }),
    ),
    argument(`${name}.mode`, mode, (value) => put({ ...file, mode: value })),
    argument(`${name}.mode`, mode, (value) => put({ ...directory, mode: value })),
    argument(`${name}.size`, wholeNumber, (size) => put({ ...file, size })),
    argument(`${name}.hash`, text, (hash) => put({ ...file, hash })),
    argument(`${name}.target`, { ...path, wrongValues: ['', 'a\0b'] }, (target) => put({ ...link, target })),
  ]
}

/** The rows of a list of entries; the bad one is the fourth, so that the number is seen to be right. */
function entriesArguments(name: string, put: (entries: unknown) => unknown[]): Argument[] {
  const fourth = (entry: unknown) =>
    put([...['a', 'b', 'c'].map((relativePath) => ({ relativePath, node: file })), entry])
  const rawPath: Kind = {
    wrongTypes: [null, 'a', {}, [1], new ArrayBuffer(1)],
    wrongValues: [Buffer.alloc(0), Buffer.from('a\0b')],
  }
  return [
    argument(name, list, put),
    argument(`${name}[3]`, object, fourth),
    argument(`${name}[3].relativePath`, path, (value) => fourth({ relativePath: value, node: file })),
    argument(`${name}[3].rawPath`, rawPath, (value) => fourth({ relativePath: 'd', node: file, rawPath: value })),
    ...nodeArguments(`${name}[3].node`, (node) => fourth({ relativePath: 'd', node })),
  ]
}

const index = { version: 1, entries: [], treeHash: '', fileCount: 0, directoryCount: 0, totalFileBytes: 0 }
const lease = { sourceRoot: '/a', protectedRoots: ['/b'] }
const quotas = { maxFiles: 1, maxSourceBytes: 1, prepareTimeoutMs: 1 }
const tree = { resourceRoot: workspace.source }

const project = workspace.source
const sourceFile = `${project}/file.ts`
writeFileSync(sourceFile, 'export default 1')
const runModules = { collect: '/c', resolve: '/r', entityWireCodec: '/e', provenance: '/p' }
const limited = (...wrongValues: number[]): Kind => ({
  wrongTypes: [null, '1', {}],
  wrongValues: [-1, 1.5, NaN, ...wrongValues],
})

/** The rows of trusted modules, where `put` puts them into a call. */
function moduleArguments(put: (modules: unknown) => unknown[]): Argument[] {
  return [
    argument('options.modules', optional(object), put),
    ...Object.keys(runModules).map((key) =>
      argument(`options.modules.${key}`, absolutePath, (value) => put({ ...runModules, [key]: value })),
    ),
    ...['params', 'childErrors'].map((key) =>
      argument(`options.modules.${key}`, optional(absolutePath), (value) => put({ ...runModules, [key]: value })),
    ),
  ]
}

/** The rows of parameters. */
function parameterArguments(put: (params: unknown) => unknown[]): Argument[] {
  return [
    argument('options.params', optional(object), put),
    argument('options.params.a', { wrongTypes: [undefined, null, {}, 1n, ['a']], wrongValues: [NaN, Infinity] }, (a) =>
      put({ a }),
    ),
  ]
}

/** The rows that every sandboxed call has in common; `call` adds the options to good arguments. */
function sandboxArguments(call: (options: unknown) => unknown[]): Argument[] {
  const given = (name: string, kind: Kind) => argument(`options.${name}`, kind, (value) => call({ [name]: value }))
  return [
    argument('options', optional(object), call),
    ...moduleArguments((modules) => call({ modules })),
    ...parameterArguments((params) => call({ params })),
    given('decodeEntitySet', callback),
    given('readRoots', optional(list)),
    argument('options.readRoots[1]', absolutePath, (root) => call({ readRoots: [project, root] })),
    argument('options.readRoots[0]', { wrongTypes: [], wrongValues: [sourceFile, '/nowhere'] }, (root) =>
      call({ readRoots: [root] }),
    ),
    given('toolRoot', optional(absolutePath)),
    given('env', optional(object)),
    argument('options.env.A', { wrongTypes: [undefined, null, 1, {}], wrongValues: ['a\0b'] }, (A) =>
      call({ env: { A } }),
    ),
    given('timeoutMs', limited(0, 2 ** 31)),
    given('memoryLimitMb', limited(0, 255)),
    given('cpuSeconds', limited(0)),
    given('maxResultBytes', limited(0, 448 * 2 ** 20 + 1)),
    given('isolation', choice('none', 'partial')),
    given('nodePath', { ...optional(absolutePath), wrongValues: [...absolutePath.wrongValues, '/nowhere', project] }),
    given('outputPrefix', optional(text)),
    given('onOutput', callback),
    given('signal', signal),
  ]
}

const place: Kind = { wrongTypes: [], wrongValues: ['/nowhere/at/all'] }

const asynchronous: Record<string, Argument[]> = {
  runFallbackFilesSandboxed: [
    argument('files', list, (files) => [files, project]),
    argument('files[1]', absolutePath, (value) => [[sourceFile, value], project]),
    argument(
      'files[1]',
      { wrongTypes: [], wrongValues: ['/nowhere.ts', project, '/etc/passwd', sourceFile] },
      (value) => [[sourceFile, value], project],
    ),
    argument('buildRoot', absolutePath, (value) => [[sourceFile], value]),
    argument('buildRoot', { ...place, wrongValues: [sourceFile, ...place.wrongValues] }, (value) => [
      [sourceFile],
      value,
    ]),
    ...sandboxArguments((options) => [[sourceFile], project, options]),
  ],
  evaluateConfigSandboxed: [
    argument('configPath', absolutePath, (value) => [value, project]),
    argument('configPath', { ...place, wrongValues: [project, '/etc/passwd'] }, (value) => [value, project]),
    argument('projectRoot', absolutePath, (value) => [sourceFile, value]),
    argument('projectRoot', { ...place, wrongValues: [sourceFile] }, (value) => [sourceFile, value]),
    ...sandboxArguments((options) => [sourceFile, project, options]),
  ],
  callSandboxed: [
    argument('call', object, (value) => [value]),
    argument('call.file', absolutePath, (value) => [{ file: value, buildRoot: project }]),
    argument('call.file', { ...place, wrongValues: [project, '/etc/passwd'] }, (value) => [
      { file: value, buildRoot: project },
    ]),
    argument('call.export', optional(text), (value) => [{ file: sourceFile, buildRoot: project, export: value }]),
    argument('call.args', optional(list), (value) => [{ file: sourceFile, buildRoot: project, args: value }]),
    argument('call.buildRoot', absolutePath, (value) => [{ file: sourceFile, buildRoot: value }]),
    argument('call.buildRoot', { ...place, wrongValues: [sourceFile] }, (value) => [
      { file: sourceFile, buildRoot: value },
    ]),
    ...sandboxArguments((options) => [{ file: sourceFile, buildRoot: project }, options]),
  ],
  bundleDriver: [
    argument('driverSource', text, (value) => [value]),
    argument('options', optional(object), (value) => ['', value]),
    argument('options.buildRoot', optional(path), (buildRoot) => ['', { buildRoot }]),
    argument('options.readRoots', optional(list), (readRoots) => ['', { readRoots }]),
    argument('options.readRoots[0]', path, (root) => ['', { readRoots: [root] }]),
    ...moduleArguments((modules) => ['', { modules }]),
    argument('options.toolRoot', optional(path), (toolRoot) => ['', { toolRoot }]),
    argument('options.tempPrefix', { ...optional(path), wrongValues: ['', 'a\0b', 'a/b'] }, (tempPrefix) => [
      '',
      { tempPrefix },
    ]),
    argument('options.signal', signal, (value) => ['', { signal: value }]),
  ],
  probeIsolation: [
    argument('options', optional(object), (value) => [value]),
    argument(
      'options.nodePath',
      { ...optional(absolutePath), wrongValues: ['', 'node', '/nowhere', project] },
      (nodePath) => [{ nodePath }],
    ),
  ],
  prepareContainedExecutionMirror: mirrorArguments(),
  withContainedExecutionMirror: [
    ...mirrorArguments(operation),
    argument('operation', operationKind, (value) => [good, value]),
  ],
  prepareContainedExecutionMirrorForTests: [...mirrorArguments({}), ...overrideArguments(good)],
  withContainedExecutionMirrorForTests: [
    ...mirrorArguments(operation, {}),
    argument('operation', operationKind, (value) => [good, value, {}]),
    ...overrideArguments(good, operation),
  ],
  sweepAbandonedMirrors: [
    argument('options', optional(object), (value) => [value]),
    argument('options.tempDirectory', optional(path), (tempDirectory) => [{ tempDirectory }]),
    argument('options.olderThanMs', optional(wholeNumber), (olderThanMs) => [
      { tempDirectory: workspace.temp, olderThanMs },
    ]),
  ],
  buildFileTreeIndex: [
    argument('options', object, (value) => [value]),
    argument('options.resourceRoot', path, (resourceRoot) => [{ resourceRoot }]),
    argument('options.excludedRoots', optional(list), (excludedRoots) => [{ ...tree, excludedRoots }]),
    argument('options.excludedRoots[0]', path, (root) => [{ ...tree, excludedRoots: [root] }]),
    argument('options.quotas', optional(object), (value) => [{ ...tree, quotas: value }]),
    ...Object.keys(quotas).map((name) =>
      argument(`options.quotas.${name}`, wholeNumber, (value) => [{ ...tree, quotas: { ...quotas, [name]: value } }]),
    ),
    argument('options.deadlineMs', { wrongTypes: [null, '1', {}], wrongValues: [NaN, -Infinity] }, (deadlineMs) => [
      { ...tree, deadlineMs },
    ]),
    argument('options.signal', signal, (value) => [{ ...tree, signal: value }]),
    argument('options.onProgress', callback, (onProgress) => [{ ...tree, onProgress }]),
  ],
  readObservedChanges: [
    argument('baselineRoot', path, (value) => [value, '/b', []]),
    argument('executionRoot', path, (value) => ['/a', value, []]),
    argument('relativePaths', list, (value) => ['/a', '/b', value]),
    argument('relativePaths[1]', text, (value) => ['/a', '/b', ['a', value]]),
  ],
  readSnapshotNode: [argument('absolutePath', absolutePath, (value) => [value])],
  hashFileContent: [argument('filePath', path, (value) => [value])],
}

const driver = { files: ['/a.ts'], buildRoot: '/' }

const synchronous: Record<string, Argument[]> = {
  generateDriverSource: [
    argument('options', object, (value) => [value]),
    argument('options.files', list, (files) => [{ ...driver, files }]),
    argument('options.files[1]', absolutePath, (value) => [{ ...driver, files: ['/a.ts', value] }]),
    argument('options.buildRoot', absolutePath, (buildRoot) => [{ ...driver, buildRoot }]),
    ...parameterArguments((params) => [{ ...driver, params }]),
    ...moduleArguments((modules) => [{ ...driver, modules }]),
  ],
  generateConfigDriverSource: [
    argument('configPath', absolutePath, (value) => [value]),
    argument('options', optional(object), (value) => ['/a.ts', value]),
    ...moduleArguments((modules) => ['/a.ts', { modules }]),
  ],
  classifyChildError: [
    argument('file', text, (value) => [value, new Error('a')]),
    argument('fallbackType', choice('other'), (value) => ['', new Error('a'), value]),
  ],
  encodeEntitySet: [
    argument('entities', { wrongTypes: [undefined, null, 1, {}, [], new Set()], wrongValues: [] }, (value) => [value]),
  ],
  decodeEntitySet: [argument('wire', object, (value) => [value])],
  validateContainedExecutionMirrorLease: [
    argument('expected', object, (value) => [{}, value]),
    argument('expected.sourceRoot', path, (sourceRoot) => [{}, { ...lease, sourceRoot }]),
    argument('expected.protectedRoots', list, (protectedRoots) => [{}, { ...lease, protectedRoots }]),
    argument('expected.protectedRoots[0]', path, (root) => [{}, { ...lease, protectedRoots: [root] }]),
  ],
  describeContainedExecutionMirror: [
    argument('handle', { wrongTypes: [undefined, null, 1, 'a'], wrongValues: [] }, (value) => [value]),
  ],
  diffFileTreeIndices: [
    argument('baseline', object, (value) => [value, index]),
    argument('observed', object, (value) => [index, value]),
    ...entriesArguments('baseline.entries', (entries) => [{ ...index, entries }, index]),
    ...entriesArguments('observed.entries', (entries) => [index, { ...index, entries }]),
  ],
  computeTreeHash: entriesArguments('entries', (entries) => [entries]),
  hashFileNode: [
    argument('mode', mode, (value) => [value, 'h']),
    argument('contentHash', text, (value) => [0o644, value]),
  ],
  hashDirectoryNode: [argument('mode', mode, (value) => [value])],
  hashSymlinkTarget: [argument('target', path, (value) => [value])],
  snapshotNodesEqual: [
    ...nodeArguments('left', (node) => [node, { kind: 'absent' }]),
    ...nodeArguments('right', (node) => [{ kind: 'absent' }, node]),
  ],
  presentNodeKind: [
    argument('node', object, (value) => [value]),
    argument('node.kind', { ...choice('absent'), wrongTypes: [undefined, null, 1] }, (kind) => [{ kind }]),
  ],
  compareRelativePathsBytewise: [
    argument('left', relativePath, (value) => [value, 'b']),
    argument('right', relativePath, (value) => ['a', value]),
  ],
  validateRelativePath: [argument('relativePath', text, (value) => [value])],
  joinRelativePath: [
    argument('root', path, (value) => [value, 'a']),
    argument('relativePath', text, (value) => ['/a', value]),
  ],
  isRootGitMetadataPath: [argument('relativePath', relativePath, (value) => [value])],
  isNestedGitPath: [argument('relativePath', relativePath, (value) => [value])],
  isExcludedTreePath: [
    argument('relativePath', relativePath, (value) => [value, ['/a'], '/']),
    argument('excludedRoots', list, (value) => ['a', value, '/']),
    argument('excludedRoots[0]', path, (value) => ['a', [value], '/']),
    argument('resourceRoot', path, (value) => ['a', ['/a'], value]),
  ],
  inspectGitResourceIdentity: [argument('targetPath', path, (value) => [value])],
  resolveGitResourceIdentity: [argument('targetPath', path, (value) => [value])],
  sameGitResourceIdentity: [
    argument('leftPath', path, (value) => [value, '/b']),
    argument('rightPath', path, (value) => ['/a', value]),
  ],
  isGitMetadataPath: [
    argument('targetPath', path, (value) => [value]),
    argument('repositoryPath', optional(path), (value) => ['/a', value]),
  ],
  canonicalPath: [argument('targetPath', path, (value) => [value])],
  isPathOutsideRoot: [argument('relativePath', relativePath, (value) => [value])],
  pathWithinRoot: [
    argument('root', path, (value) => [value, '/b']),
    argument('targetPath', path, (value) => ['/a', value]),
  ],
  relativeWithinRepo: [
    argument('repoRoot', path, (value) => [value, '/b']),
    argument('targetPath', path, (value) => ['/a', value]),
  ],
  containingGitRoot: [argument('targetPath', path, (value) => [value])],
  resolveWorkspaceRootMatch: [
    argument('repoRoot', path, (value) => [value, [], '/b']),
    argument('trustedRoots', optional(list), (value) => ['/a', value, '/b']),
    argument('trustedRoots[0]', path, (value) => ['/a', [value], '/b']),
    argument('targetPath', path, (value) => ['/a', [], value]),
  ],
  containedExecutionFailurePhase: [
    argument('code', { ...text, wrongValues: ['', 'contained_execution_'] }, (value) => [value]),
  ],
}

/** These say no to whatever they are given, which is what they are for. */
const predicates = ['isContainedExecutionFailureCode', 'isContainedExecutionApprovalFallbackReason']

function exported(name: string): (...values: unknown[]) => unknown {
  return (sallyport as unknown as Record<string, (...values: unknown[]) => unknown>)[name]!
}

function expectNamed(error: Refusal, code: string, option: string, value: unknown): void {
  const context = `${option}: ${error.message}`
  expect(error, context).toBeInstanceOf(TypeError)
  expect(error.code, context).toBe(code)
  const named = code === WRONG_TYPE ? `"${option}"` : `'${option}'`
  expect(error.message).toContain(named)
  expect(error.message).toMatch(/ must be .+\. Received /s)
  if (value === undefined || value === null) expect(error.message).toMatch(new RegExp(`Received ${String(value)}$`))
}

function rows(table: Record<string, Argument[]>): [string, string, Argument][] {
  return Object.entries(table).flatMap(([name, list]) =>
    list.map((item) => [name, item.option, item] as [string, string, Argument]),
  )
}

function badValues({ kind }: Argument): [string, unknown][] {
  return [
    ...kind.wrongTypes.map((value) => [WRONG_TYPE, value] as [string, unknown]),
    ...kind.wrongValues.map((value) => [WRONG_VALUE, value] as [string, unknown]),
  ]
}

describe('bad input', () => {
  it('is tried on every function of the package', () => {
    const functions = Object.entries(sallyport)
      .filter(([name, value]) => typeof value === 'function' && !/^[A-Z]/.test(name))
      .map(([name]) => name)
    expect([...Object.keys(asynchronous), ...Object.keys(synchronous), ...predicates].sort()).toEqual(functions.sort())
  })

  it.each(rows(synchronous))('makes %s throw for %s', (name, option, item) => {
    for (const [code, value] of badValues(item)) {
      expectNamed(
        thrownBy(() => exported(name)(...item.call(value))),
        code,
        option,
        value,
      )
    }
  })

  it.each(rows(asynchronous))('makes %s reject for %s', async (name, option, item) => {
    for (const [code, value] of badValues(item)) {
      // Called outside of any try: an asynchronous export that throws fails the test here.
      const promise = exported(name)(...item.call(value)) as Promise<unknown>
      expect(promise).toBeInstanceOf(Promise)
      expectNamed(await refusal(promise), code, option, value)
    }
    expect(workspace.leftovers()).toEqual([])
  })

  it.each(predicates)('makes %s say no', (name) => {
    for (const value of [undefined, null, 1, {}, [], '', 'a\0b']) expect(exported(name)(value)).toBe(false)
  })
})

describe('the order in which the options of a mirror are checked', () => {
  const ways: [string, (options: unknown) => Promise<unknown>][] = [
    ['prepareContainedExecutionMirror', (options) => sallyport.prepareContainedExecutionMirror(options as never)],
    [
      'withContainedExecutionMirror',
      (options) => sallyport.withContainedExecutionMirror(options as never, undefined as never),
    ],
    [
      'prepareContainedExecutionMirrorForTests',
      (options) => sallyport.prepareContainedExecutionMirrorForTests(options as never, undefined as never),
    ],
    [
      'withContainedExecutionMirrorForTests',
      (options) => sallyport.withContainedExecutionMirrorForTests(options as never, undefined as never, null as never),
    ],
  ]

  it.each(ways)('%s: roots that are no list come first, with their own code', async (_name, prepare) => {
    for (const controlPlaneRoots of [undefined, null, '/a', { 0: '/a', length: 1 }]) {
      const error = await refusal(prepare({ sourceRoot: 1, limits: null, flush: 1, controlPlaneRoots }))
      expect(error).toBeInstanceOf(sallyport.ContainedExecutionFailureError)
      expect(error.code).toBe('contained_execution_control_plane_roots_required')
      expect(error.phase).toBe('mirror')
      expect((error.cause as Refusal).message).toContain('options.controlPlaneRoots')
    }
  })

  it.each(ways)('%s: limits come second, with their own code', async (_name, prepare) => {
    const bad = [undefined, null, 0, -1, 1.5, NaN, Infinity, 2 ** 53, '1', 1n, {}]
    const broken = Object.keys(generousLimits).flatMap((name) =>
      bad.map((value) => ({ ...generousLimits, [name]: value })),
    )
    for (const limits of [undefined, null, 1, 'limits', {}, [], ...broken]) {
      const error = await refusal(prepare({ sourceRoot: 1, controlPlaneRoots: [1], flush: 1, limits, hardLinks: 1 }))
      expect(error).toBeInstanceOf(sallyport.ContainedExecutionFailureError)
      expect(error.code).toBe('contained_execution_mirror_limits_invalid')
      const cause = error.cause as Refusal
      expect(cause).toBeInstanceOf(TypeError)
      const wrong = Object.keys(generousLimits).find((name) => {
        const value = (limits as Record<string, unknown> | null | undefined)?.[name]
        return !Number.isSafeInteger(value) || Number(value) <= 0
      })
      const named = typeof limits === 'object' && limits !== null ? `options.limits.${wrong}` : 'options.limits'
      expect(cause.message).toContain(named)
    }
  })

  it.each(ways)('%s: the types of everything else come last', async (_name, prepare) => {
    const error = await refusal(prepare({ ...good, sourceRoot: '' }))
    expectNamed(error, WRONG_VALUE, 'options.sourceRoot', '')
    expect(workspace.leftovers()).toEqual([])
  })
})

describe('an option that is misspelt', () => {
  it.each<[string, () => unknown]>([
    ['options.hardlinks', () => sallyport.prepareContainedExecutionMirror({ ...good, hardLinks: 'copy' } as never)],
    [
      'options.tempDirectory',
      () => sallyport.prepareContainedExecutionMirror({ ...good, tempDirectory: undefined, tempDir: '/' } as never),
    ],
    [
      'options.onProgress',
      () => sallyport.withContainedExecutionMirror({ ...good, onprogress() {} } as never, operation),
    ],
    [
      'overrides.removeRoot',
      () => sallyport.prepareContainedExecutionMirrorForTests(good, { removeRoots() {} } as never),
    ],
    ['options.excludedRoots', () => sallyport.buildFileTreeIndex({ resourceRoot: '/a', excludeRoots: [] } as never)],
    ['options.deadlineMs', () => sallyport.buildFileTreeIndex({ resourceRoot: '/a', deadline: 1 } as never)],
    ['options.olderThanMs', () => sallyport.sweepAbandonedMirrors({ olderThan: 1 } as never)],
    ['options.nodePath', () => sallyport.probeIsolation({ nodepath: '/a' } as never)],
    ['options.readRoots', () => sallyport.bundleDriver('', { readRoot: ['/a'] } as never)],
  ])('is refused and told what it is called: %s', async (meant, call) => {
    const error = await refusal(Promise.resolve().then(call))
    expect(error.code).toBe(WRONG_VALUE)
    expect(error.message).toContain(`must be called ${meant}.`)
    expect(workspace.leftovers()).toEqual([])
  })
})

describe('what is not bad input', () => {
  it('an option that nobody knows is ignored, and one like another that is given', async () => {
    const options = { ...good, limits: { ...good.limits, maxColours: 'none' }, colour: 'blue', source: 'elsewhere' }
    const mirror = await sallyport.prepareContainedExecutionMirror(options)
    await mirror.cleanup()
    expect(workspace.leftovers()).toEqual([])
  })

  it('a handle that is not one is no live mirror', () => {
    for (const handle of [undefined, null, 1, 'handle', {}, Object.create(null)]) {
      expect(sallyport.validateContainedExecutionMirrorLease(handle as never, lease)).toBe(false)
    }
  })

  it('describing an object that is no handle is a refusal with its own code', () => {
    const error = thrownBy(() => sallyport.describeContainedExecutionMirror({} as never))
    expect(error).toBeInstanceOf(sallyport.ContainedExecutionFailureError)
    expect(error.code).toBe('contained_execution_invalid_mirror_lease')
  })

  it('a relative path that leads outside keeps the code of the reference', async () => {
    for (const relativePath of ['', '/a', '..', '../a', 'a/../../b', 'a\0b']) {
      const refusals = [
        thrownBy(() => sallyport.validateRelativePath(relativePath)),
        thrownBy(() => sallyport.joinRelativePath(workspace.source, relativePath)),
        await refusal(sallyport.readObservedChanges(workspace.source, workspace.outside, [relativePath])),
      ]
      for (const error of refusals) {
        expect(Object.getPrototypeOf(error)).toBe(Error.prototype)
        expect(error).toMatchObject({ message: 'file_checkpoint_path_escape', code: 'file_checkpoint_path_escape' })
      }
    }
  })

  it('half of a surrogate pair becomes what the calls of Node make of it', async () => {
    const lone = 'a\ud800'
    const whole = 'a\ufffd'
    const entry = (relativePath: string) => ({
      relativePath,
      node: { kind: 'directory', mode: 0o755, hash: 'h' } as const,
    })
    expect(sallyport.computeTreeHash([entry(lone)])).toBe(sallyport.computeTreeHash([entry(whole)]))
    expect(sallyport.hashSymlinkTarget(lone)).toBe(sallyport.hashSymlinkTarget(whole))
    expect(await sallyport.readSnapshotNode(`${workspace.source}/${lone}`)).toEqual({ kind: 'absent' })
    const error = await refusal(sallyport.hashFileContent(`${workspace.source}/${lone}`))
    expect(error).toMatchObject({ code: 'ENOENT', path: `${workspace.source}/${whole}` })
  })

  it('an aborted signal is looked at only after the arguments, and before anything is created', async () => {
    const reason = new Error('enough')
    const aborted = AbortSignal.abort(reason)
    expectNamed(
      await refusal(sallyport.prepareContainedExecutionMirror({ ...good, sourceRoot: '', signal: aborted })),
      WRONG_VALUE,
      'options.sourceRoot',
      '',
    )
    expect(await refusal(sallyport.prepareContainedExecutionMirror({ ...good, signal: aborted }))).toBe(reason)
    expect(await refusal(sallyport.buildFileTreeIndex({ ...tree, signal: aborted }))).toBe(reason)
    expect(workspace.leftovers()).toEqual([])
  })
})
