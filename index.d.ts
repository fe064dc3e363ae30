/// <reference types="node" />

/**
 * sallyport: verified private mirrors and tree hashes for workspaces that are not trusted.
 *
 * The whole public surface, for `require` and (through index.d.mts) for `import`. `contract/…` names the project's
 * contract, from which every rule here comes.
 *
 * Errors, for every function here:
 * - a wrong type or a missing option: `TypeError` with `code: 'ERR_INVALID_ARG_TYPE'`; a value that cannot be (an empty
 *   path, a NUL, a relative path where an absolute one is needed): `TypeError` with `code: 'ERR_INVALID_ARG_VALUE'`.
 *   Both name the option, and nothing has been created or read. An asynchronous function rejects, it never throws.
 * - a system error: an `Error` in Node's form, with `code`, `errno`, `syscall` and `path` ({@link SystemError}).
 * - a fault of this package: an `Error` with `code: 'ERR_INTERNAL'`.
 *
 * Loading fails with an `Error` whose `code` is `'ERR_NATIVE_BINDING'` where the native addon cannot be loaded; its
 * message says what to do.
 *
 * @packageDocumentation
 */

// ---- Mirror ---------------------------------------------------------------------------------------------------------

/** What a mirror may take. Each is a safe integer above zero (`contract/mirror.md`, step 2). */
export interface ContainedExecutionMirrorLimits {
  /** Most entries: files, directories and links together. */
  maxFiles: number
  /** Most bytes of file content read in one pass over the source. */
  maxSourceBytes: number
  /** Most bytes of the mirror: file content, and the targets of links by their length in bytes. */
  maxWorkspaceBytes: number
  /** Most milliseconds for making the mirror. */
  prepareTimeoutMs: number
}

/** What {@link prepareContainedExecutionMirror} takes. */
export interface ContainedExecutionMirrorOptions {
  /** The workspace. Resolved against the working directory; links in it are followed. */
  sourceRoot: string
  /** Roots that never enter a mirror, inside the source or outside it. Must be given, may be empty. */
  controlPlaneRoots: readonly string[]
  /** Quotas and deadline. */
  limits: ContainedExecutionMirrorLimits
  /** Calls the work off: the promise rejects with `signal.reason`, and nothing is left. */
  signal?: AbortSignal
  /**
   * Told how far the work is, at most ten times a second, `cleanup()` included. What it throws calls the preparation
   * off and is what the promise rejects with; a removal is finished first.
   */
  onProgress?: (progress: MirrorProgress) => void
  /**
   * What becomes of files with more than one name: `'reject'` refuses them; `'copy'` makes each name a file of its own,
   * unless its inode is also found in a protected root.
   * @defaultValue 'reject'
   */
  hardlinks?: 'reject' | 'copy'
  /**
   * Whether copies keep the modification times of the source, as incremental builds need it.
   * @defaultValue true
   */
  preserveTimes?: boolean
  /**
   * Whether the whole mirror is forced to the disk, once, before the handle is returned.
   * @defaultValue false
   */
  flush?: boolean
  /**
   * The directory in which the private root is made. It must not be where the walk of the source would see it.
   * @defaultValue what `os.tmpdir()` says at the call
   */
  tempDirectory?: string
}

/** How a mirror was made. */
export type ContainedExecutionMirrorBackend = 'file_copy'

/** A mirror that is ready. These four are all of its own enumerable keys (`contract/mirror.md`, "The handle"). */
export interface ContainedExecutionMirrorHandle {
  /** The private root that holds the copy: absolute, mode 0700. */
  hostMirrorRoot: string
  /** The source root, lexically resolved, with links kept: what the workspace is called inside. */
  guestWorkspacePath: string
  /** How the mirror was made. */
  backend: ContainedExecutionMirrorBackend
  /**
   * Ends the lease at once, then removes the root and confirms that it is gone. It can be called again: after a success
   * it does nothing, after a failure it tries again. It needs no `this`.
   * @throws {@link ContainedExecutionCleanupUnconfirmedError} where the root may still be there.
   */
  cleanup(): Promise<void>
}

/**
 * A handle as it is made: `Symbol.asyncDispose`, not enumerable, is its `cleanup()`, so that `await using` removes it. A
 * runtime without that symbol has it under `Symbol.for('nodejs.asyncDispose')`.
 */
export type DisposableContainedExecutionMirrorHandle = ContainedExecutionMirrorHandle & AsyncDisposable

/**
 * Points at which a test may step into a preparation. Paths are absolute and canonical. All but `now` may return a
 * promise, which is awaited at that point. What one throws is what the call rejects with; a result of the wrong type or
 * value is a `TypeError` that names it (`overrides.now()`).
 */
export interface MirrorTestDependencies {
  /** Makes the private root in place of the package and gives its absolute path. */
  makeTempRoot?(): Promise<string>
  /** Removes the private root in place of the package, which then looks whether it is gone. */
  removeRoot?(root: string): Promise<void>
  /** The time in milliseconds against which the deadline is held. Finite. */
  now?(): number
  /** Called between the snapshot and the copy. */
  afterSnapshotCaptured?(): Promise<void>
  /** Called before a file is opened for copying. */
  beforeCopyOpen?(sourcePath: string): Promise<void>
  /** Called after each chunk; both numbers are bytes, and the total counts within the file. */
  afterCopyRead?(sourcePath: string, bytesRead: number, totalBytes: number): Promise<void>
}

/** How far a job is. */
export interface MirrorProgress {
  /** What is being done. */
  phase: 'snapshot' | 'copy' | 'verify' | 'dispose'
  /** Entries done in this phase. */
  entries: number
  /** Bytes done in this phase. */
  bytes: number
  /** Entries of this phase, where known. */
  totalEntries?: number
  /** Bytes of this phase, where known. */
  totalBytes?: number
}

/** Why an entry was left out of a mirror. */
export type SkipRule = 'git-metadata' | 'protected-root'

/** What a mirror holds and what it does not. */
export interface MirrorReport {
  /** The tree hash on which the readings of source and copy agreed: SHA-256, lower-case hex. */
  treeHash: string
  /** Regular files in the mirror. */
  files: number
  /** Directories in the mirror, its root not counted. */
  directories: number
  /** Links in the mirror. */
  symlinks: number
  /** Bytes of file content. */
  bytes: number
  /** How long each phase took, in milliseconds. */
  milliseconds: { snapshot: number; copy: number; verify: number }
  /** What was left out, by its path relative to the source, and why. */
  skipped: { relativePath: string; rule: SkipRule }[]
}

/** What {@link validateContainedExecutionMirrorLease} compares a handle with. */
export interface ContainedExecutionMirrorLeaseExpectation {
  /** The workspace the mirror must be of. */
  sourceRoot: string
  /** The protected roots it must have been made with, in any order. */
  protectedRoots: readonly string[]
}

/** What {@link sweepAbandonedMirrors} takes. */
export interface SweepOptions {
  /**
   * The directory in which roots are looked for.
   * @defaultValue what `os.tmpdir()` says at the call
   */
  tempDirectory?: string
  /**
   * The least age of a root that may be removed, in whole milliseconds.
   * @defaultValue 60000
   */
  olderThanMs?: number
}

/** What {@link sweepAbandonedMirrors} did. */
export interface SweepResult {
  /** The absolute paths of the roots that were removed, of mirrors and of sandboxed runs. */
  removed: string[]
  /** How many roots of ours were left: live, young or not to be removed. */
  kept: number
}

/**
 * Makes a verified private copy of a workspace (`contract/mirror.md`). It is returned only if two complete readings of
 * the source and one of the copy agree; after any failure the private root is gone.
 *
 * @param options - Checked in the contract's order: `controlPlaneRoots`, then `limits`, then the rest.
 * @returns The handle. Call its `cleanup()`, or use {@link withContainedExecutionMirror}, which does.
 * @throws {@link ContainedExecutionFailureError} for a refusal with a `contained_execution_` code.
 * @throws {@link FileCheckpointDiagnosticError} for a quota (`limit`, `value`) or the deadline.
 * @throws {@link FileCheckpointRefusal} for hard links and for sockets, FIFOs and devices.
 * @throws {@link ContainedExecutionCleanupUnconfirmedError} where a failed preparation could not be removed.
 * @throws `signal.reason` where the signal was aborted.
 */
export declare function prepareContainedExecutionMirror(
  options: ContainedExecutionMirrorOptions,
): Promise<DisposableContainedExecutionMirrorHandle>

/**
 * Makes a mirror, awaits `operation` on it and always cleans up (`contract/mirror.md`, "The handle").
 *
 * @returns What `operation` gave.
 * @throws What {@link prepareContainedExecutionMirror} and `operation` throw. A cleanup that failed wins over an
 * operation that failed, and carries its error as `operationError`.
 */
export declare function withContainedExecutionMirror<T>(
  options: ContainedExecutionMirrorOptions,
  operation: (mirror: ContainedExecutionMirrorHandle) => Promise<T> | T,
): Promise<T>

/**
 * {@link prepareContainedExecutionMirror} with points at which a test steps in. The work may run on one thread.
 *
 * @throws What {@link prepareContainedExecutionMirror} and the overrides throw.
 */
export declare function prepareContainedExecutionMirrorForTests(
  options: ContainedExecutionMirrorOptions,
  overrides: MirrorTestDependencies,
): Promise<DisposableContainedExecutionMirrorHandle>

/**
 * {@link withContainedExecutionMirror} with points at which a test steps in. The work may run on one thread.
 *
 * @throws What {@link withContainedExecutionMirror} and the overrides throw.
 */
export declare function withContainedExecutionMirrorForTests<T>(
  options: ContainedExecutionMirrorOptions,
  operation: (mirror: ContainedExecutionMirrorHandle) => Promise<T> | T,
  overrides: MirrorTestDependencies,
): Promise<T>

/**
 * Whether this very object is a live mirror of that source, made with those protected roots (`contract/mirror.md`,
 * "The handle"). A copy of a handle, an edited one and anything that is no handle are not.
 */
export declare function validateContainedExecutionMirrorLease(
  handle: ContainedExecutionMirrorHandle,
  expected: ContainedExecutionMirrorLeaseExpectation,
): boolean

/**
 * What a mirror holds, what was left out and why. It can be asked after `cleanup()` too.
 *
 * @throws {@link ContainedExecutionFailureError} `contained_execution_invalid_mirror_lease` for any object but a handle
 * itself.
 */
export declare function describeContainedExecutionMirror(handle: ContainedExecutionMirrorHandle): MirrorReport

/**
 * Removes the private roots that killed processes left behind: ours by name, owned by this user, old enough, and not
 * locked by a live one (`contract/mirror.md`, "Where the reference is not followed").
 */
export declare function sweepAbandonedMirrors(options?: SweepOptions): Promise<SweepResult>

// ---- Tree -----------------------------------------------------------------------------------------------------------

/** An entry that is there. `hash` is the node hash, SHA-256 in lower-case hex; `mode` is the whole `st_mode`. */
export type PresentSnapshotNode =
  | { kind: 'file'; mode: number; size: number; hash: string }
  | { kind: 'symlink'; target: string; hash: string }
  | { kind: 'directory'; mode: number; hash: string }

/** An entry, or that there is none. */
export type SnapshotNode = { kind: 'absent' } | PresentSnapshotNode

/** One entry of a tree index. */
export interface FileTreeEntry {
  /** Relative to the root, with `/`. Lossy where the name is not UTF-8. */
  relativePath: string
  /** What is there. */
  node: PresentSnapshotNode
  /** The path's bytes, only where they are not UTF-8. Order, hash and diff go by it. */
  rawPath?: Buffer
}

/** A tree as data, sorted by the bytes of the paths. */
export interface FileTreeIndex {
  /** The version of this form. */
  version: 1
  /** Every entry but the root itself. */
  entries: FileTreeEntry[]
  /** The tree hash: SHA-256, lower-case hex. */
  treeHash: string
  /** Files and links. */
  fileCount: number
  /** Directories, the root not counted. */
  directoryCount: number
  /** Bytes of file content. */
  totalFileBytes: number
}

/** What an index may take. Whole numbers. */
export interface FileTreeQuotas {
  /** Most entries. */
  maxFiles: number
  /** Most bytes of file content. */
  maxSourceBytes: number
  /** Most milliseconds. */
  prepareTimeoutMs: number
}

/** What {@link buildFileTreeIndex} takes. */
export interface FileTreeBuildOptions {
  /** The directory to index. Resolved against the working directory; a link is refused. */
  resourceRoot: string
  /** Roots to leave out: what is at or within one. */
  excludedRoots?: readonly string[]
  /** Quotas. */
  quotas?: FileTreeQuotas
  /** When to give up: absolute, in epoch milliseconds. */
  deadlineMs?: number
  /** Calls the work off: the promise rejects with `signal.reason`. */
  signal?: AbortSignal
  /** Told how far the work is, at most ten times a second. What it throws is what the promise rejects with. */
  onProgress?: (progress: MirrorProgress) => void
}

/** What became of one path between two trees. */
export interface ObservedFileChange {
  /** Relative to the roots. Lossy where the name is not UTF-8. */
  relativePath: string
  /** What happened to it. */
  kind: 'added' | 'deleted' | 'modified'
  /** What was there before. */
  before: SnapshotNode
  /** What is there after. */
  after: SnapshotNode
  /** The path's bytes, only where they are not UTF-8. */
  rawPath?: Buffer
}

/**
 * Indexes and hashes a directory (`contract/mirror.md`, "Tree index").
 *
 * @throws {@link FileCheckpointRefusal} for a nested repository, a hard link, or a node that is no file, directory or
 * link.
 * @throws {@link FileCheckpointDiagnosticError} for a quota or the deadline.
 * @throws `signal.reason` where the signal was aborted.
 */
export declare function buildFileTreeIndex(options: FileTreeBuildOptions): Promise<FileTreeIndex>

/** What changed from one index to another, in path order. */
export declare function diffFileTreeIndices(baseline: FileTreeIndex, observed: FileTreeIndex): ObservedFileChange[]

/**
 * Looks at the given paths below both roots and gives those that changed, in the order given.
 *
 * @throws {@link FileCheckpointRefusal} `file_checkpoint_path_escape` for a path that leads outside.
 */
export declare function readObservedChanges(
  baselineRoot: string,
  executionRoot: string,
  relativePaths: readonly string[],
): Promise<ObservedFileChange[]>

/**
 * What is at an absolute path, the last link not followed; absent for ENOENT and ENOTDIR.
 *
 * @throws {@link FileCheckpointRefusal} for a node that is no file, directory or link.
 */
export declare function readSnapshotNode(absolutePath: string): Promise<SnapshotNode>

/** The SHA-256 of a file's content, in lower-case hex. */
export declare function hashFileContent(filePath: string): Promise<string>

/** The tree hash of entries in any order: SHA-256, lower-case hex. */
export declare function computeTreeHash(entries: FileTreeEntry[]): string

/** The node hash of a regular file. `mode` may be a whole `st_mode`; only its permission bits count. */
export declare function hashFileNode(mode: number, contentHash: string): string

/** The node hash of a directory. `mode` may be a whole `st_mode`; only its permission bits count. */
export declare function hashDirectoryNode(mode: number): string

/** The node hash of a link with this target, as stored. */
export declare function hashSymlinkTarget(target: string): string

/** Whether kind, mode, size, target and hash are equal. */
export declare function snapshotNodesEqual(left: SnapshotNode, right: SnapshotNode): boolean

/** The kind of a node that is there. */
export declare function presentNodeKind(node: PresentSnapshotNode): 'file' | 'symlink' | 'directory'

/** Orders relative paths by their bytes in UTF-8: below zero, zero or above zero, as `Array.prototype.sort` takes it. */
export declare function compareRelativePathsBytewise(left: string, right: string): number

/**
 * Refuses a relative path that is empty or absolute, holds a NUL, or leads outside.
 *
 * @throws {@link FileCheckpointRefusal} `file_checkpoint_path_escape`
 */
export declare function validateRelativePath(relativePath: string): void

/**
 * The absolute path of a relative one on the canonical root.
 *
 * @throws {@link FileCheckpointRefusal} `file_checkpoint_path_escape`
 */
export declare function joinRelativePath(root: string, relativePath: string): string

/** Whether a relative path is exactly `.git` or below it. */
export declare function isRootGitMetadataPath(relativePath: string): boolean

/** Whether a relative path has a segment `.git` that is not its first. */
export declare function isNestedGitPath(relativePath: string): boolean

/** Whether a path relative to the resource root is at or within an excluded root. */
export declare function isExcludedTreePath(
  relativePath: string,
  excludedRoots: readonly string[],
  resourceRoot: string,
): boolean

// ---- Git boundary and paths -----------------------------------------------------------------------------------------

/** Where a repository is. All paths are canonical. */
export interface GitResourceIdentity {
  /** The root of the work tree, or the directory of a bare repository. */
  repositoryRoot: string
  /** The repository's own Git directory; that of a linked worktree is its own. */
  gitDir: string
  /** The Git directory that all worktrees share. */
  commonDir: string
  /** The `.git` entry, or the directory of a bare repository. */
  gitEntryPath: string
}

/** What stands at the nearest Git boundary at or above a path. */
export type GitResourceIdentityInspection =
  | { status: 'resolved'; identity: GitResourceIdentity }
  | { status: 'absent' }
  | { status: 'invalid'; boundaryPath: string; metadataRoots: string[] }

/** Which root a path belongs to, and where it is in it. */
export interface WorkspaceRootMatch {
  /** Whether it is the repository or one of the trusted roots. */
  kind: 'repo' | 'trusted'
  /** The root. */
  root: string
  /** The path relative to it. */
  relativePath: string
}

/** Looks for the nearest Git boundary, without running Git (`contract/mirror.md`, "Git boundary"). */
export declare function inspectGitResourceIdentity(targetPath: string): GitResourceIdentityInspection

/** The identity of the repository that a path is in; null where there is none or where it is not valid. */
export declare function resolveGitResourceIdentity(targetPath: string): GitResourceIdentity | null

/** Whether both paths are in valid repositories with the same common directory. */
export declare function sameGitResourceIdentity(leftPath: string, rightPath: string): boolean

/** Whether a path is Git's own data, by the boundary it is in. */
export declare function isGitMetadataPath(targetPath: string, repositoryPath?: string): boolean

/** The path with links resolved in its longest existing prefix and the missing rest appended. */
export declare function canonicalPath(targetPath: string): string

/** Whether a relative path leads outside what it is relative to. */
export declare function isPathOutsideRoot(relativePath: string): boolean

/** Whether a path is at or within a root. */
export declare function pathWithinRoot(root: string, targetPath: string): boolean

/** The path relative to the repository root; null where it is outside. */
export declare function relativeWithinRepo(repoRoot: string, targetPath: string): string | null

/** The repository root that holds a path, the boundary path of an invalid one, or null. */
export declare function containingGitRoot(targetPath: string): string | null

/** Which root a path belongs to: the repository, else the longest trusted root that holds it, else null. */
export declare function resolveWorkspaceRootMatch(
  repoRoot: string,
  trustedRoots: readonly string[] | undefined,
  targetPath: string,
): WorkspaceRootMatch | null

// ---- Failures -------------------------------------------------------------------------------------------------------

/** Every failure code, in the published order (`contract/failures.md`). Frozen. */
export declare const CONTAINED_EXECUTION_FAILURE_CODES: readonly [
  'contained_execution_boundary_failed',
  'contained_execution_capability_invalid',
  'contained_execution_capability_mismatch',
  'contained_execution_cleanup_unconfirmed',
  'contained_execution_container_cleanup_unconfirmed',
  'contained_execution_control_plane_roots_required',
  'contained_execution_create_failed',
  'contained_execution_create_invalid',
  'contained_execution_create_mismatch',
  'contained_execution_create_timeout',
  'contained_execution_create_truncated',
  'contained_execution_disabled',
  'contained_execution_docker_binary_invalid',
  'contained_execution_docker_config_missing',
  'contained_execution_docker_daemon_invalid',
  'contained_execution_docker_daemon_unavailable',
  'contained_execution_docker_host_invalid',
  'contained_execution_docker_substrate_mismatch',
  'contained_execution_docker_substrate_overlap',
  'contained_execution_docker_substrate_unavailable',
  'contained_execution_host_identity_unavailable',
  'contained_execution_image_inspect_invalid',
  'contained_execution_image_inspect_truncated',
  'contained_execution_image_mismatch',
  'contained_execution_image_missing',
  'contained_execution_input_fingerprint_invalid',
  'contained_execution_inspect_failed',
  'contained_execution_inspect_invalid',
  'contained_execution_inspect_mismatch',
  'contained_execution_inspect_timeout',
  'contained_execution_inspect_truncated',
  'contained_execution_invalid_container_name',
  'contained_execution_invalid_cwd',
  'contained_execution_invalid_image_id',
  'contained_execution_invalid_mirror_lease',
  'contained_execution_invalid_mount',
  'contained_execution_invalid_user',
  'contained_execution_mirror_limits_invalid',
  'contained_execution_probe_create_failed',
  'contained_execution_probe_failed',
  'contained_execution_probe_inspect_failed',
  'contained_execution_probe_inspect_invalid',
  'contained_execution_probe_inspect_truncated',
  'contained_execution_probe_root_cleanup_unconfirmed',
  'contained_execution_protected_root_overlap',
  'contained_execution_resource_limits_invalid',
  'contained_execution_safe_open_unavailable',
  'contained_execution_source_changed',
  'contained_execution_source_is_protected',
  'contained_execution_source_not_directory',
  'contained_execution_start_attempt_failed',
  'contained_execution_unknown_option',
  'contained_execution_unsafe_symlink',
]
/** A code of a refusal. */
export type ContainedExecutionFailureCode = (typeof CONTAINED_EXECUTION_FAILURE_CODES)[number]

/** The part of a contained execution that a failure belongs to. */
export type ContainedExecutionFailurePhase =
  'cleanup' | 'capability' | 'image' | 'lease' | 'mirror' | 'container-lifecycle' | 'boundary'

/** What a caller may do after a failure. */
export type ContainedExecutionFailureDisposition = 'approval-fallback' | 'deny'

/** Where a failure can be mended. */
export type ContainedExecutionFailureRemediation = 'session-start' | 'none'

/** Which rule a refused link broke. */
export type UnsafeSymlinkRule = 'absolute-target' | 'leaves-source' | 'git-metadata' | 'protected-root' | 'unresolvable'

/** A kind of file that is neither copied nor hashed. */
export type UnsupportedNodeKind = 'fifo' | 'socket' | 'block-device' | 'character-device'

/** The facts that a refusal carries where they apply. They are those of the first offence in path order. */
export interface FailureFacts {
  /** The path relative to the source. */
  relativePath?: string
  /** The rule a link broke. */
  rule?: UnsafeSymlinkRule
  /** The kind of an unsupported node. */
  nodeKind?: UnsupportedNodeKind
  /** The number of names of a hard-linked file. */
  links?: number
  /** The limit that was passed, in the unit of its option. */
  limit?: number
  /** The value that passed it, in the same unit. */
  value?: number
}

/** What {@link ContainedExecutionFailureError} takes besides its code. */
export interface ContainedExecutionFailureOptions extends ErrorOptions {
  /** In place of the code's own phase. */
  phase?: ContainedExecutionFailurePhase
  /**
   * Whether the command had already been started.
   * @defaultValue false
   */
  executionStarted?: boolean
}

/** A refusal (`contract/failures.md`). `message` and `code` are the code. */
export declare class ContainedExecutionFailureError extends Error {
  /** @throws `TypeError` for a code, phase or flag that cannot be. */
  constructor(code: ContainedExecutionFailureCode, options?: ContainedExecutionFailureOptions)
  /** The code. */
  code: ContainedExecutionFailureCode
  /** The part of the execution it belongs to. */
  phase: ContainedExecutionFailurePhase
  /** Whether the command had already been started. */
  executionStarted: boolean
  /** What the caller may do. */
  disposition: ContainedExecutionFailureDisposition
  /** Where it can be mended. */
  remediation: ContainedExecutionFailureRemediation
}
/** The facts are on the error itself. */
export interface ContainedExecutionFailureError extends FailureFacts {}

/**
 * A private root may still be there. `cause` is why its removal failed, where something failed and it was not only found
 * to be still there.
 */
export declare class ContainedExecutionCleanupUnconfirmedError extends ContainedExecutionFailureError {
  /** @throws `TypeError` for a root that is no string. */
  constructor(mirrorRoot: string, options?: ErrorOptions)
  /** The root that may still be there: an absolute path. */
  mirrorRoot: string
  /** What made the removal necessary, where a preparation had failed first. */
  preparationError?: unknown
  /** What the operation of {@link withContainedExecutionMirror} threw, where it had failed first. */
  operationError?: unknown
}

/** A quota or the deadline was passed. `message` and `code` are a `FILE_CHECKPOINT_` code. */
export declare class FileCheckpointDiagnosticError extends Error {
  /** @throws `TypeError` for a message or diagnostic that is no string. */
  constructor(message: string, diagnostic: string)
  /** The message again. */
  code: string
  /** A sentence with the numbers. */
  diagnostic: string
}
/** The facts are on the error itself. */
export interface FileCheckpointDiagnosticError extends FailureFacts {}

/** A refusal whose class is plain `Error`: `message` and `code` are a `FILE_CHECKPOINT_` code. */
export interface FileCheckpointRefusal extends Error, FailureFacts {
  /** The message again. */
  code: string
}

/** A system error in Node's form. */
export interface SystemError extends Error {
  /** Such as `'ENOENT'`. */
  code: string
  /** Negative. */
  errno: number
  /** Such as `'open'`. */
  syscall: string
  /** What the call was for. */
  path: string
  /** The same relative to the source, where there is one. */
  relativePath?: string
}

/** Whether a value is one of {@link CONTAINED_EXECUTION_FAILURE_CODES}. */
export declare function isContainedExecutionFailureCode(value: unknown): value is ContainedExecutionFailureCode

/** The phase of a code. */
export declare function containedExecutionFailurePhase(
  code: ContainedExecutionFailureCode,
): ContainedExecutionFailurePhase

/** The only refusals after which the ordinary approval may be asked for, substrate first. Frozen. */
export declare const CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS: readonly [
  'contained_execution_docker_substrate_unavailable',
  'contained_execution_docker_daemon_unavailable',
]
/** A refusal after which the ordinary approval may be asked for. */
export type ContainedExecutionApprovalFallbackReason = (typeof CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS)[number]

/** Whether a value is one of {@link CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS}. */
export declare function isContainedExecutionApprovalFallbackReason(
  reason: unknown,
): reason is ContainedExecutionApprovalFallbackReason

/** How the output of a contained guest is scrubbed: everything on, and frozen, because no user setting may weaken it. */
export declare const CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS: Readonly<{
  maskApprovalIds: true
  maskBearerTokens: true
  maskAuthHeaders: true
  maskKeyValueSecrets: true
  maskHighEntropyStrings: true
}>

/** A private root may still be there. */
export declare const CONTAINED_EXECUTION_CLEANUP_UNCONFIRMED: 'contained_execution_cleanup_unconfirmed'
/** The source changed while it was read. */
export declare const CONTAINED_EXECUTION_SOURCE_CHANGED: 'contained_execution_source_changed'
/** A link leads where it must not; `rule` says where. */
export declare const CONTAINED_EXECUTION_UNSAFE_SYMLINK: 'contained_execution_unsafe_symlink'
/** A file has more than one name. */
export declare const FILE_CHECKPOINT_HARDLINK_UNSUPPORTED: 'file_checkpoint_hardlink_unsupported'
/** A node is no file, directory or link. */
export declare const FILE_CHECKPOINT_UNSUPPORTED_NODE: 'file_checkpoint_unsupported_node'
/** There is a repository below the root. */
export declare const FILE_CHECKPOINT_NESTED_REPOSITORY: 'file_checkpoint_nested_repository'
/** A quota was passed. */
export declare const FILE_CHECKPOINT_QUOTA_EXCEEDED: 'file_checkpoint_quota_exceeded'
/** The deadline was passed. */
export declare const FILE_CHECKPOINT_PREPARE_TIMEOUT: 'file_checkpoint_prepare_timeout'
/** A relative path leads outside. */
export declare const FILE_CHECKPOINT_PATH_ESCAPE: 'file_checkpoint_path_escape'
/** A copy is not what was read. */
export declare const FILE_CHECKPOINT_COPY_FAILED: 'file_checkpoint_copy_failed'

// ---- sandbox ----------------------------------------------------------------------------------------------------------

/** What an error of project source is about. */
export type DiscoveryErrorType = 'import' | 'resolution' | 'circular' | 'permission'

/** Why a run as a whole gave no result. */
export type SandboxErrorCode =
  /** Longer than `timeoutMs`. */
  | 'sandbox_timeout'
  /** More memory than `memoryLimitMb` allows. */
  | 'sandbox_memory_limit'
  /** More processor time than `cpuSeconds`. */
  | 'sandbox_cpu_limit'
  /** A result larger than `maxResultBytes`, or with more values or levels than are taken. */
  | 'sandbox_result_limit'
  /** What was sent is no result. */
  | 'sandbox_result_invalid'
  /** The child ended, or closed its descriptor, before it had a result. */
  | 'sandbox_exited'
  /** The child could not be confined or started. */
  | 'sandbox_launch_failed'

/** An error of project source. Recognise it by `name`: a test runner may hold the class twice. */
export declare class DiscoveryError extends Error {
  constructor(file: string, message: string, type: DiscoveryErrorType)
  name: string
  /** The project file; empty where it is about the whole run. */
  file: string
  /** What kind of error. */
  type: DiscoveryErrorType
  /** Why there is no result, where it is about the whole run and no denial. Not part of `toJSON()`. */
  code?: SandboxErrorCode
  /** The same as data. */
  toJSON(): { name: string; file: string; message: string; type: DiscoveryErrorType }
}

/** Modules of the caller that run as trusted steps inside the child; absolute paths. Their package may enter the bundle. */
export interface TrustedModules {
  /** Exports `collectEntities(modules, buildRoot)`. */
  collect: string
  /** Exports `resolveAttrRefs(entities)`. */
  resolve: string
  /** Exports `encodeEntitySet(entities)`. */
  entityWireCodec: string
  /** Exports `getProvenance(entity)`. */
  provenance: string
  /** Exports `setBuildParams(params)`. Default: sallyport's own. */
  params?: string
  /** Exports `classifyChildError(file, error, fallbackType?)` that gives an object with `toJSON()`. Default: sallyport's own. */
  childErrors?: string
}

/** An entity as it crosses from the child (contract/sandbox.md, "Entity protocol", Wire). Values are data. */
export type EntityWire =
  | {
      form: 'declarable'
      name: string
      lexicon: string
      entityType: string
      kind?: string
      props?: unknown
      attributes?: unknown
      markers: string[]
      extra?: Record<string, unknown>
    }
  | { form: 'lexiconOutput'; name: string; outputName: string; ref: unknown }

/** All entities of a run as they cross. */
export interface EntitySetWire {
  entities: EntityWire[]
}

/** One property that a sandboxed run shall have, and what holds it. */
export interface IsolationGuarantee {
  /** Whether a mechanism of the kernel holds it that a probe has shown to hold. */
  held: boolean
  /** Every mechanism that works towards it. */
  by: string[]
  /** Why it is not held. */
  reason?: string
}

/** What holds a child in. */
export interface IsolationReport {
  /** `kernel`: every guarantee is held. `partial`: some are. `node`: none, only Node's Permission Model works. */
  level: 'kernel' | 'partial' | 'node'
  guarantees: Record<'files' | 'network' | 'processes' | 'signals' | 'memory', IsolationGuarantee>
  /** The kernel's release. */
  kernel: string
  /** The version of Landlock's interface; null where there is none. */
  landlockAbi: number | null
  /** The version of the child's Node; empty where it was not asked, since nothing was started. */
  node: string
}

/** One layer of the kernel, applied alone in a throw-away child, and what came of each thing that it tried there. */
export interface IsolationLayer {
  /** Whether the layer could be applied. */
  applied: boolean
  /** Names of the attempts that were refused. */
  refused: string[]
  /** Names of the attempts that went through; each layer is there for some of them only. */
  allowed: string[]
  /** Why it could not be applied, or is left out of runs with this Node. */
  reason?: string
}

/** What {@link probeIsolation} finds. */
export interface IsolationProbe extends IsolationReport {
  /**
   * Whether this process may make user namespaces. The sandbox needs none and refuses them to its children; null where it
   * could not be tried.
   */
  userNamespaces: boolean | null
  /**
   * What each layer does by itself. The attempts: `read`, `list`, `write`, `truncate` (files outside), `network` (sockets), `process`
   * (fork), `signal`, `signalByDescriptor`, `memory` (private), `uncountedMemory` (shared, growing down), `memoryDevice`
   * (opening `/dev/zero` for writing), `namespace`.
   */
  layers: Record<'landlock' | 'seccomp' | 'resource-limits', IsolationLayer>
}

/** Options of the sandboxed calls. All optional. */
export interface SandboxOptions {
  /** Trusted modules in place of sallyport's own. */
  modules?: TrustedModules
  /** Makes live objects from what crossed, in place of {@link decodeEntitySet}. What it is given comes from code that is not trusted. */
  decodeEntitySet?: (wire: EntitySetWire) => Map<string, object>
  /** Bound inside the child before the first project import. */
  params?: Record<string, string | number | boolean>
  /** Absolute directories that the child, and so the bundler, may read besides the project. */
  readRoots?: readonly string[]
  /** Absolute directory from which `typescript` is resolved. */
  toolRoot?: string
  /** Variables of the child besides `PATH`. Those by which a loader or Node would run other code are refused. */
  env?: Record<string, string>
  /** Milliseconds from the start of the child. Default 120,000; 60,000 for a configuration. */
  timeoutMs?: number
  /** Mebibytes of heap, at least 256; of all memory 1024 more. Default: Node's own limit of heap, and 3072 of all memory. */
  memoryLimitMb?: number
  /** Seconds of processor time. Default: no limit but the timeout. */
  cpuSeconds?: number
  /** The largest result in bytes. Default 256 MiB. */
  maxResultBytes?: number
  /** What must hold the child. `kernel` refuses to run with less; the default `best-effort` tells in the result what it got. */
  isolation?: 'kernel' | 'best-effort' | 'node'
  /** Absolute path of the child's Node. Default: the caller's own. */
  nodePath?: string
  /** What each forwarded line begins with. Default `[sandbox:run] ` and the like. */
  outputPrefix?: string
  /** Takes the child's lines, harmless and without their newline, in place of `process.stderr.write`. */
  onOutput?: (line: string, stream: 'stdout' | 'stderr') => void
  /** Ends the run: it is killed, and the promise rejects with the signal's reason. */
  signal?: AbortSignal
}

/** What a run gave. */
export interface SandboxRunResult {
  /** Live objects by name. */
  entities: Map<string, object>
  /** The same as they crossed. Untrusted data. */
  entitySet: EntitySetWire
  /** What went wrong, by file; file `''` for the whole run. */
  errors: DiscoveryError[]
  /** How long bundling took, in milliseconds. The child boots meanwhile. */
  bundleMs: number
  /** The size of the bundle in bytes. */
  bundleBytes: number
  /** The declaring file of each entity. */
  provenanceByName: Record<string, string>
  /** What held the child. Without files nothing was started: each guarantee is held by that alone, and `by` is empty. */
  isolation: IsolationReport
}

/**
 * Runs project files together, in one sandboxed child, as one module graph, and gives back the entities they declare.
 *
 * @param files absolute, existing, inside the build root, each once
 * @param buildRoot absolute; the child may read it
 * @throws TypeErrors that name the argument; esbuild's messages where the driver cannot be bundled; the signal's reason;
 *   an Error of code `sandbox_isolation_unavailable`, with the report as `isolation`, where the level cannot be given; one
 *   of code `ERR_SANDBOX_LAUNCHER` where the launcher is missing, or this is no Linux. What goes wrong inside the run is
 *   in `errors`.
 */
export declare function runFallbackFilesSandboxed(
  files: readonly string[],
  buildRoot: string,
  options?: SandboxOptions,
): Promise<SandboxRunResult>

/**
 * Evaluates a configuration file in a sandboxed child: its `default`, else `config`, else all its exports. Only data
 * crosses; what is not data is named and refused.
 *
 * @throws What {@link runFallbackFilesSandboxed} throws; an Error with the reason where the file throws or there is no
 *   result (`file`, `type`, `code`, as of {@link DiscoveryError}, which is its cause); an Error that lists what is not data
 *   (also as `refused`).
 */
export declare function evaluateConfigSandboxed(
  configPath: string,
  projectRoot: string,
  options?: SandboxOptions,
): Promise<{ config: unknown; bundleMs: number; bundleBytes: number; isolation: IsolationReport }>

/**
 * Imports a file in a sandboxed child and calls an export of it: data in, data out.
 *
 * @throws As {@link evaluateConfigSandboxed} does; a TypeError for arguments that are not data.
 */
export declare function callSandboxed(
  call: { file: string; export?: string; args?: unknown[]; buildRoot: string },
  options?: SandboxOptions,
): Promise<{ value: unknown; isolation: IsolationReport }>

/**
 * Tries every layer of isolation for real, in throw-away children, and reports what holds here and why the rest does not.
 * The kernel's part is found out once for the process.
 *
 * @throws A TypeError for a `nodePath` that is no Node with a Permission Model; an Error of code `ERR_SANDBOX_LAUNCHER`
 *   where the launcher is missing, or this is no Linux.
 */
export declare function probeIsolation(options?: { nodePath?: string }): Promise<IsolationProbe>

/** What {@link generateDriverSource} is to write. */
export interface GenerateDriverOptions {
  /** Absolute paths, imported in this order. */
  files: readonly string[]
  /** Absolute. */
  buildRoot: string
  params?: Record<string, string | number | boolean>
  modules?: TrustedModules
}

/** The text of the module that runs inside the child. */
export declare function generateDriverSource(options: GenerateDriverOptions): string

/** The text of the module that evaluates a configuration file inside the child. */
export declare function generateConfigDriverSource(configPath: string, options?: { modules?: TrustedModules }): string

/** Options of {@link bundleDriver}. */
export interface BundleOptions {
  /** The project. What enters the bundle is checked against it, and not checked without it. */
  buildRoot?: string
  /** Absolute directories that the child may read besides. */
  readRoots?: readonly string[]
  modules?: TrustedModules
  /** Where `typescript` is resolved from. */
  toolRoot?: string
  /** What the name of the directory begins with. Default `chant-sandbox-`. */
  tempPrefix?: string
  signal?: AbortSignal
}

/** A bundle. */
export interface BundleResult {
  /** Canonical. */
  bundlePath: string
  /** Canonical; the caller removes it. */
  bundleDir: string
  /** Directories that the child must be able to read besides. */
  externalReadPaths: string[]
  /** Milliseconds. */
  durationMs: number
  /** Bytes. */
  bytes: number
}

/**
 * Bundles a driver and everything it imports into one file in a fresh private directory.
 *
 * @throws An Error with esbuild's `errors` where the driver itself cannot be bundled; the directory is gone then. A bad
 *   project file throws where the driver imports it.
 */
export declare function bundleDriver(driverSource: string, options?: BundleOptions): Promise<BundleResult>

/**
 * Puts an error of project source into words: a denial of Node's Permission Model or of the kernel becomes a
 * `permission` error that names operation, resource and file.
 *
 * @param file empty where it is about the whole run
 */
export declare function classifyChildError(
  file: string,
  error: unknown,
  fallbackType?: DiscoveryErrorType,
): DiscoveryError

/** Entities as data, ready to cross. Throws where a value is not data, naming its path. */
export declare function encodeEntitySet(entities: Map<string, object>): EntitySetWire

/** Live objects from data that crossed. Throws an Error of code `ERR_INVALID_ARG_VALUE` where it has not the right shape. */
export declare function decodeEntitySet(wire: EntitySetWire): Map<string, object>
