// A consumer as belay is one: its runner takes a mirror it did not make, checks the lease, runs the command in it and
// decides by the failure whether the ordinary approval may be asked for. Only the import path is sallyport's.

import {
  CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS,
  ContainedExecutionFailureError,
  type ContainedExecutionMirrorHandle,
  type ContainedExecutionMirrorLimits,
  FileCheckpointDiagnosticError,
  isContainedExecutionApprovalFallbackReason,
  validateContainedExecutionMirrorLease,
  withContainedExecutionMirror,
} from 'sallyport'

interface ScrubOptions {
  maskApprovalIds?: boolean
  maskBearerTokens?: boolean
  maskAuthHeaders?: boolean
  maskKeyValueSecrets?: boolean
  maskHighEntropyStrings?: boolean
}

interface Request {
  sourceRoot: string
  protectedRoots: readonly string[]
  limits: ContainedExecutionMirrorLimits
}

type Verdict = { kind: 'ran'; output: string } | { kind: 'ask'; reason: string } | { kind: 'deny'; reason: string }

const scrub: Readonly<Required<ScrubOptions>> = CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS

async function runInside(mirror: ContainedExecutionMirrorHandle, request: Request): Promise<string> {
  const { sourceRoot, protectedRoots } = request
  if (!validateContainedExecutionMirrorLease(mirror, { sourceRoot, protectedRoots })) {
    throw new ContainedExecutionFailureError('contained_execution_invalid_mirror_lease', { executionStarted: false })
  }
  return `${mirror.guestWorkspacePath} in ${mirror.hostMirrorRoot}, ${Object.keys(scrub).length} masks`
}

export async function run(request: Request): Promise<Verdict> {
  const { sourceRoot, protectedRoots, limits } = request
  try {
    const output = await withContainedExecutionMirror(
      { sourceRoot, controlPlaneRoots: [...protectedRoots], limits },
      async (mirror) => runInside(mirror, request),
    )
    return { kind: 'ran', output }
  } catch (error) {
    if (error instanceof ContainedExecutionFailureError) {
      const mayAsk = !error.executionStarted && isContainedExecutionApprovalFallbackReason(error.code)
      return { kind: mayAsk ? 'ask' : 'deny', reason: error.code }
    }
    if (error instanceof FileCheckpointDiagnosticError) return { kind: 'deny', reason: error.diagnostic }
    throw error
  }
}
