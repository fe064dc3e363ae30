// A consumer by `import`: every value and every type of the package, used as its declaration says. It fails to compile
// where a declaration is missing, wider or narrower than contract/surface.md has it.

import {
  buildFileTreeIndex,
  bundleDriver,
  callSandboxed,
  canonicalPath,
  classifyChildError,
  compareRelativePathsBytewise,
  computeTreeHash,
  CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS,
  CONTAINED_EXECUTION_CLEANUP_UNCONFIRMED,
  CONTAINED_EXECUTION_FAILURE_CODES,
  CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS,
  CONTAINED_EXECUTION_SOURCE_CHANGED,
  CONTAINED_EXECUTION_UNSAFE_SYMLINK,
  ContainedExecutionCleanupUnconfirmedError,
  ContainedExecutionFailureError,
  containedExecutionFailurePhase,
  containingGitRoot,
  decodeEntitySet,
  describeContainedExecutionMirror,
  diffFileTreeIndices,
  DiscoveryError,
  encodeEntitySet,
  evaluateConfigSandboxed,
  FILE_CHECKPOINT_COPY_FAILED,
  FILE_CHECKPOINT_HARDLINK_UNSUPPORTED,
  FILE_CHECKPOINT_NESTED_REPOSITORY,
  FILE_CHECKPOINT_PATH_ESCAPE,
  FILE_CHECKPOINT_PREPARE_TIMEOUT,
  FILE_CHECKPOINT_QUOTA_EXCEEDED,
  FILE_CHECKPOINT_UNSUPPORTED_NODE,
  FileCheckpointDiagnosticError,
  generateConfigDriverSource,
  generateDriverSource,
  hashDirectoryNode,
  hashFileContent,
  hashFileNode,
  hashSymlinkTarget,
  inspectGitResourceIdentity,
  isContainedExecutionApprovalFallbackReason,
  isContainedExecutionFailureCode,
  isExcludedTreePath,
  isGitMetadataPath,
  isNestedGitPath,
  isPathOutsideRoot,
  isRootGitMetadataPath,
  joinRelativePath,
  pathWithinRoot,
  prepareContainedExecutionMirror,
  prepareContainedExecutionMirrorForTests,
  presentNodeKind,
  probeIsolation,
  readObservedChanges,
  readSnapshotNode,
  relativeWithinRepo,
  resolveGitResourceIdentity,
  resolveWorkspaceRootMatch,
  runFallbackFilesSandboxed,
  sameGitResourceIdentity,
  snapshotNodesEqual,
  sweepAbandonedMirrors,
  validateContainedExecutionMirrorLease,
  validateRelativePath,
  withContainedExecutionMirror,
  withContainedExecutionMirrorForTests,
} from 'sallyport'
import type {
  BundleOptions,
  BundleResult,
  ContainedExecutionApprovalFallbackReason,
  ContainedExecutionFailureCode,
  ContainedExecutionFailureDisposition,
  ContainedExecutionFailureOptions,
  ContainedExecutionFailurePhase,
  ContainedExecutionFailureRemediation,
  ContainedExecutionMirrorBackend,
  ContainedExecutionMirrorHandle,
  ContainedExecutionMirrorLeaseExpectation,
  ContainedExecutionMirrorLimits,
  ContainedExecutionMirrorOptions,
  DiscoveryErrorType,
  DisposableContainedExecutionMirrorHandle,
  EntitySetWire,
  EntityWire,
  FailureFacts,
  FileCheckpointRefusal,
  FileTreeBuildOptions,
  FileTreeEntry,
  FileTreeIndex,
  FileTreeQuotas,
  GenerateDriverOptions,
  GitResourceIdentity,
  GitResourceIdentityInspection,
  IsolationGuarantee,
  IsolationReport,
  MirrorProgress,
  MirrorReport,
  MirrorTestDependencies,
  ObservedFileChange,
  PresentSnapshotNode,
  SandboxOptions,
  SandboxRunResult,
  SkipRule,
  SnapshotNode,
  SweepOptions,
  SweepResult,
  SystemError,
  TrustedModules,
  UnsafeSymlinkRule,
  UnsupportedNodeKind,
  WorkspaceRootMatch,
} from 'sallyport'

/** Whether two types are the same type, not only assignable to each other. */
type Same<Left, Right> =
  (<Probe>() => Probe extends Left ? 1 : 2) extends <Probe>() => Probe extends Right ? 1 : 2 ? true : false

/** A line that compiles only where the type it is given is `true`. */
function holds<Claim extends true>(...claim: Claim[]): void {
  void claim
}

// ---- Mirror ----

const limits: ContainedExecutionMirrorLimits = {
  maxFiles: 1,
  maxSourceBytes: 1,
  maxWorkspaceBytes: 1,
  prepareTimeoutMs: 1,
}
const required: ContainedExecutionMirrorOptions = { sourceRoot: '/source', controlPlaneRoots: [], limits }
const everything: Required<ContainedExecutionMirrorOptions> = {
  ...required,
  signal: new AbortController().signal,
  onProgress: (progress: MirrorProgress) => void [progress.phase, progress.entries, progress.bytes],
  hardlinks: 'copy',
  preserveTimes: false,
  flush: true,
  tempDirectory: '/tmp',
}
const overrides: Required<MirrorTestDependencies> = {
  makeTempRoot: async () => '/root',
  removeRoot: async (root: string) => void root,
  now: () => 0,
  afterSnapshotCaptured: async () => undefined,
  beforeCopyOpen: async (sourcePath: string) => void sourcePath,
  afterCopyRead: async (sourcePath: string, bytesRead: number, totalBytes: number) =>
    void [sourcePath, bytesRead, totalBytes],
}

// @ts-expect-error the roots must be given
void prepareContainedExecutionMirror({ sourceRoot: '/source', limits })
// @ts-expect-error only the two ways of treating hard links exist
void prepareContainedExecutionMirror({ ...required, hardlinks: 'keep' })

holds<Same<ReturnType<typeof prepareContainedExecutionMirror>, Promise<DisposableContainedExecutionMirrorHandle>>>()
holds<Same<keyof ContainedExecutionMirrorHandle, 'hostMirrorRoot' | 'guestWorkspacePath' | 'backend' | 'cleanup'>>()
holds<Same<ContainedExecutionMirrorBackend, 'file_copy'>>()
holds<Same<SkipRule, 'git-metadata' | 'protected-root'>>()
holds<Same<MirrorProgress['phase'], 'snapshot' | 'copy' | 'verify' | 'dispose'>>()
holds<Same<SystemError['errno'], number>>()

export async function mirrors(): Promise<MirrorReport> {
  const plain: ContainedExecutionMirrorHandle = await prepareContainedExecutionMirror(everything)
  const expectation: ContainedExecutionMirrorLeaseExpectation = {
    sourceRoot: '/source',
    protectedRoots: ['/p'] as const,
  }
  const live: boolean = validateContainedExecutionMirrorLease(plain, expectation)
  await plain.cleanup()

  await using scoped = await prepareContainedExecutionMirrorForTests(required, overrides)
  const length: number = await withContainedExecutionMirror(required, async (mirror) => mirror.hostMirrorRoot.length)
  const nothing: undefined = await withContainedExecutionMirrorForTests(required, async () => undefined, {
    now: () => 1,
  })

  const options: SweepOptions = { tempDirectory: '/tmp', olderThanMs: 1 }
  const { removed, kept }: SweepResult = await sweepAbandonedMirrors(options)
  await sweepAbandonedMirrors()
  void [live, length, nothing, removed satisfies string[], kept satisfies number]
  return describeContainedExecutionMirror(scoped)
}

// ---- Tree ----

const nodes: PresentSnapshotNode[] = [
  { kind: 'file', mode: 0o100644, size: 1, hash: hashFileNode(0o644, '') },
  { kind: 'symlink', target: 'a', hash: hashSymlinkTarget('a') },
  { kind: 'directory', mode: 0o40755, hash: hashDirectoryNode(0o755) },
]
const absent: SnapshotNode = { kind: 'absent' }
holds<Same<ReturnType<typeof presentNodeKind>, 'file' | 'symlink' | 'directory'>>()
holds<Same<FileTreeIndex['version'], 1>>()

// @ts-expect-error an absent node has no kind of its own in a tree
presentNodeKind(absent)

export async function trees(): Promise<ObservedFileChange[]> {
  const quotas: FileTreeQuotas = { maxFiles: 1, maxSourceBytes: 1, prepareTimeoutMs: 1 }
  const options: FileTreeBuildOptions = {
    resourceRoot: '/source',
    excludedRoots: ['/source/out'],
    quotas,
    deadlineMs: Date.now(),
    signal: AbortSignal.timeout(1),
    onProgress: () => undefined,
  }
  const index: FileTreeIndex = await buildFileTreeIndex(options)
  const entries: FileTreeEntry[] = nodes.map((node) => ({ relativePath: 'a', node, rawPath: Buffer.from('a') }))
  const hash: string = computeTreeHash(entries)
  const changes: ObservedFileChange[] = diffFileTreeIndices(index, { ...index, entries })
  const node: SnapshotNode = await readSnapshotNode('/source/a')
  const content: string = await hashFileContent('/source/a')
  const equal: boolean = snapshotNodesEqual(node, absent)
  const sorted: string[] = ['b', 'a'].sort(compareRelativePathsBytewise)
  const nothing: void = validateRelativePath('a')
  const joined: string = joinRelativePath('/source', 'a')
  const predicates: boolean[] = [
    isRootGitMetadataPath('.git'),
    isNestedGitPath('a/.git'),
    isExcludedTreePath('a', ['/source/a'], '/source'),
  ]
  void [hash, content, equal, sorted, nothing, joined, predicates]
  for (const change of changes) {
    if (change.before.kind === 'file') change.before.size satisfies number
    change.kind satisfies 'added' | 'deleted' | 'modified'
    change.rawPath satisfies Buffer | undefined
  }
  return readObservedChanges('/source', '/mirror', ['a'])
}

// ---- Git boundary and paths ----

export function boundaries(): WorkspaceRootMatch | null {
  const inspection: GitResourceIdentityInspection = inspectGitResourceIdentity('/source')
  switch (inspection.status) {
    case 'resolved':
      inspection.identity satisfies GitResourceIdentity
      break
    case 'invalid':
      void [inspection.boundaryPath satisfies string, inspection.metadataRoots satisfies string[]]
      break
    case 'absent':
      break
    default:
      inspection satisfies never
  }
  const identity: GitResourceIdentity | null = resolveGitResourceIdentity('/source')
  const found: (string | null)[] = [containingGitRoot('/source'), relativeWithinRepo('/source', '/source/a')]
  const facts: boolean[] = [
    sameGitResourceIdentity('/a', '/b'),
    isGitMetadataPath('/source/.git'),
    isGitMetadataPath('/source/.git', '/source'),
    isPathOutsideRoot('../a'),
    pathWithinRoot('/source', '/source/a'),
  ]
  const canonical: string = canonicalPath('/source')
  void [identity, found, facts, canonical, resolveWorkspaceRootMatch('/source', ['/trusted'], '/source/a')]
  return resolveWorkspaceRootMatch('/source', undefined, '/source/a')
}

// ---- Failures ----

holds<Same<(typeof CONTAINED_EXECUTION_FAILURE_CODES)['length'], 53>>()
holds<Same<ContainedExecutionFailureDisposition, 'approval-fallback' | 'deny'>>()
holds<Same<ContainedExecutionFailureRemediation, 'session-start' | 'none'>>()
holds<
  Same<
    ContainedExecutionApprovalFallbackReason,
    'contained_execution_docker_substrate_unavailable' | 'contained_execution_docker_daemon_unavailable'
  >
>()

const codes = [
  CONTAINED_EXECUTION_CLEANUP_UNCONFIRMED,
  CONTAINED_EXECUTION_SOURCE_CHANGED,
  CONTAINED_EXECUTION_UNSAFE_SYMLINK,
  ...CONTAINED_EXECUTION_FAILURE_CODES,
  ...CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS,
] satisfies ContainedExecutionFailureCode[]
const checkpoints = [
  FILE_CHECKPOINT_HARDLINK_UNSUPPORTED,
  FILE_CHECKPOINT_UNSUPPORTED_NODE,
  FILE_CHECKPOINT_NESTED_REPOSITORY,
  FILE_CHECKPOINT_QUOTA_EXCEEDED,
  FILE_CHECKPOINT_PREPARE_TIMEOUT,
  FILE_CHECKPOINT_PATH_ESCAPE,
  FILE_CHECKPOINT_COPY_FAILED,
] satisfies `file_checkpoint_${string}`[]

const options: ContainedExecutionFailureOptions = { cause: new Error('below'), phase: 'lease', executionStarted: true }
const failure = new ContainedExecutionFailureError('contained_execution_disabled', options)
const cleanup: ContainedExecutionFailureError = new ContainedExecutionCleanupUnconfirmedError('/root', { cause: 1 })
const diagnostic: Error = new FileCheckpointDiagnosticError(FILE_CHECKPOINT_QUOTA_EXCEEDED, 'mirror nodeCount=2')
void [codes, checkpoints, failure, cleanup, diagnostic]

// @ts-expect-error no such code
new ContainedExecutionFailureError('contained_execution_anything')
// @ts-expect-error nobody may weaken it
CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS.maskApprovalIds = false

export function explain(error: unknown): string {
  if (error instanceof ContainedExecutionCleanupUnconfirmedError) {
    void [error.preparationError satisfies unknown, error.operationError satisfies unknown]
    return error.mirrorRoot
  }
  if (error instanceof ContainedExecutionFailureError) {
    const facts: FailureFacts = error
    const rule: UnsafeSymlinkRule | undefined = error.rule
    void [facts, rule, error.disposition satisfies ContainedExecutionFailureDisposition, error.executionStarted]
    return `${error.phase}: ${error.relativePath ?? error.code}`
  }
  if (error instanceof FileCheckpointDiagnosticError)
    return `${error.diagnostic} ${error.limit ?? 0} ${error.value ?? 0}`
  const refusal = error as FileCheckpointRefusal
  const kind: UnsupportedNodeKind | undefined = refusal.nodeKind
  return `${refusal.code} ${kind ?? refusal.links ?? ''}`
}

export function phaseOf(value: unknown): ContainedExecutionFailurePhase | null {
  if (isContainedExecutionApprovalFallbackReason(value)) value satisfies ContainedExecutionApprovalFallbackReason
  return isContainedExecutionFailureCode(value) ? containedExecutionFailurePhase(value) : null
}

// ---- Sandbox ----

holds<Same<DiscoveryErrorType, 'import' | 'resolution' | 'circular' | 'permission'>>()
holds<Same<IsolationReport['level'], 'kernel' | 'partial' | 'node'>>()
holds<Same<keyof IsolationReport['guarantees'], 'files' | 'network' | 'processes' | 'signals' | 'memory'>>()
holds<Same<NonNullable<SandboxOptions['isolation']>, 'kernel' | 'best-effort' | 'node'>>()
holds<Same<EntityWire['form'], 'declarable' | 'lexiconOutput'>>()

const modules: TrustedModules = { collect: '/c', resolve: '/r', entityWireCodec: '/e', provenance: '/p' }
const allModules: Required<TrustedModules> = { ...modules, params: '/p', childErrors: '/e' }
const sandboxed: Required<SandboxOptions> = {
  modules: allModules,
  decodeEntitySet: (wire: EntitySetWire) => new Map(wire.entities.map((entity) => [entity.name, entity])),
  params: { text: 'a', number: 1, flag: true },
  readRoots: ['/shared'],
  toolRoot: '/tool',
  env: { STAGE: 'test' },
  timeoutMs: 1,
  memoryLimitMb: 256,
  cpuSeconds: 1,
  maxResultBytes: 1,
  isolation: 'kernel',
  nodePath: process.execPath,
  outputPrefix: '',
  onOutput: (line: string, stream: 'stdout' | 'stderr') => void [line, stream],
  signal: new AbortController().signal,
}

// @ts-expect-error parameters are scalars
void runFallbackFilesSandboxed([], '/project', { params: { list: ['a'] } })
// @ts-expect-error only the three levels exist
void runFallbackFilesSandboxed([], '/project', { isolation: 'partial' })
// @ts-expect-error the build root must be given
void callSandboxed({ file: '/project/policy.ts' })
// @ts-expect-error no such kind of error
new DiscoveryError('/a.ts', 'message', 'other')

export async function sandbox(): Promise<IsolationReport> {
  const files: readonly string[] = ['/project/a.ts']
  const result: SandboxRunResult = await runFallbackFilesSandboxed(files, '/project', sandboxed)
  const { entities, entitySet, errors, bundleMs, bundleBytes, provenanceByName, isolation } = result
  void [entities satisfies Map<string, object>, entitySet satisfies EntitySetWire, bundleMs + bundleBytes]
  void (provenanceByName['a'] satisfies string | undefined)
  for (const error of errors) {
    error satisfies DiscoveryError
    void [error.name satisfies string, error.file, error.type satisfies DiscoveryErrorType]
    void (error.toJSON() satisfies { name: string; file: string; message: string; type: DiscoveryErrorType })
  }
  const evaluated = await evaluateConfigSandboxed('/project/config.ts', '/project', sandboxed)
  void [evaluated.config satisfies unknown, evaluated.bundleMs + evaluated.bundleBytes, evaluated.isolation]
  const called = await callSandboxed({ file: '/project/policy.ts', export: 'check', args: [1], buildRoot: '/project' })
  void [called.value satisfies unknown, called.isolation satisfies IsolationReport]

  const driver: GenerateDriverOptions = { files, buildRoot: '/project', params: { a: 1 }, modules }
  const source: string = generateDriverSource(driver) + generateConfigDriverSource('/project/config.ts', { modules })
  const options: Required<BundleOptions> = {
    buildRoot: '/project',
    readRoots: [],
    modules,
    toolRoot: '/tool',
    tempPrefix: 'prefix-',
    signal: sandboxed.signal,
  }
  const bundle: BundleResult = await bundleDriver(source, options)
  void [
    bundle.bundlePath,
    bundle.bundleDir,
    bundle.externalReadPaths satisfies string[],
    bundle.durationMs + bundle.bytes,
  ]
  const error: Error = classifyChildError('/project/a.ts', new Error('a'), 'resolution')
  const wire: EntitySetWire = encodeEntitySet(decodeEntitySet(entitySet))
  const guarantee: IsolationGuarantee = isolation.guarantees.files
  void [error, wire, guarantee.held, guarantee.by satisfies string[], guarantee.reason satisfies string | undefined]
  return probeIsolation({ nodePath: process.execPath })
}
