// Failure codes, phases, dispositions and the error classes, by contract/failures.md. The list of codes and the rules
// stand here a second time on purpose: the package reads them from its one table, and this is what that is held against.

import { describe, expect, it } from 'vitest'

import * as sallyport from '../index.mjs'
import {
  CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS,
  CONTAINED_EXECUTION_FAILURE_CODES,
  CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS,
  ContainedExecutionCleanupUnconfirmedError,
  ContainedExecutionFailureError,
  containedExecutionFailurePhase,
  FileCheckpointDiagnosticError,
  isContainedExecutionApprovalFallbackReason,
  isContainedExecutionFailureCode,
  type ContainedExecutionFailureCode,
} from '../index.mjs'
import { refusal, thrownBy } from './support/refusal'

const codes =
  `boundary_failed, capability_invalid, capability_mismatch, cleanup_unconfirmed, container_cleanup_unconfirmed,
  control_plane_roots_required, create_failed, create_invalid, create_mismatch, create_timeout, create_truncated,
  disabled, docker_binary_invalid, docker_config_missing, docker_daemon_invalid, docker_daemon_unavailable,
  docker_host_invalid, docker_substrate_mismatch, docker_substrate_overlap, docker_substrate_unavailable,
  host_identity_unavailable, image_inspect_invalid, image_inspect_truncated, image_mismatch, image_missing,
  input_fingerprint_invalid, inspect_failed, inspect_invalid, inspect_mismatch, inspect_timeout, inspect_truncated,
  invalid_container_name, invalid_cwd, invalid_image_id, invalid_mirror_lease, invalid_mount, invalid_user,
  mirror_limits_invalid, probe_create_failed, probe_failed, probe_inspect_failed, probe_inspect_invalid,
  probe_inspect_truncated, probe_root_cleanup_unconfirmed, protected_root_overlap, resource_limits_invalid,
  safe_open_unavailable, source_changed, source_is_protected, source_not_directory, start_attempt_failed,
  unknown_option, unsafe_symlink`
    .split(/,\s+/)
    .map((name) => `contained_execution_${name}` as ContainedExecutionFailureCode)

const phases: Record<string, string[]> = {
  cleanup: ['cleanup_unconfirmed', 'container_cleanup_unconfirmed', 'probe_root_cleanup_unconfirmed'],
  capability: ['capability_invalid', 'capability_mismatch'],
  image: ['image_inspect_invalid', 'image_inspect_truncated', 'image_mismatch', 'image_missing', 'invalid_image_id'],
  lease: ['invalid_mirror_lease'],
  mirror: [
    'control_plane_roots_required',
    'mirror_limits_invalid',
    'safe_open_unavailable',
    'source_changed',
    'source_is_protected',
    'source_not_directory',
    'unsafe_symlink',
  ],
  'container-lifecycle': [
    'create_failed',
    'create_invalid',
    'create_mismatch',
    'create_timeout',
    'create_truncated',
    'inspect_failed',
    'inspect_invalid',
    'inspect_mismatch',
    'inspect_timeout',
    'inspect_truncated',
    'probe_create_failed',
    'probe_failed',
    'probe_inspect_failed',
    'probe_inspect_invalid',
    'probe_inspect_truncated',
    'start_attempt_failed',
  ],
}

function expectedPhase(code: string): string {
  const name = code.slice('contained_execution_'.length)
  return Object.keys(phases).find((phase) => phases[phase]?.includes(name)) ?? 'boundary'
}

const approvalFallback = [
  'contained_execution_docker_substrate_unavailable',
  'contained_execution_docker_daemon_unavailable',
]

describe('the table of codes', () => {
  it('is the published list, in its order, and frozen', () => {
    expect(codes).toHaveLength(53)
    expect(CONTAINED_EXECUTION_FAILURE_CODES).toEqual(codes)
    expect(Object.isFrozen(CONTAINED_EXECUTION_FAILURE_CODES)).toBe(true)
  })

  it.each(codes)('gives %s its phase, disposition and remediation', (code) => {
    const phase = expectedPhase(code)
    const mendable = phase === 'capability' || phase === 'image' || code.includes('_docker_')
    expect(containedExecutionFailurePhase(code)).toBe(phase)
    expect({ ...new ContainedExecutionFailureError(code) }).toEqual({
      code,
      phase,
      executionStarted: false,
      disposition: approvalFallback.includes(code) ? 'approval-fallback' : 'deny',
      remediation: mendable ? 'session-start' : 'none',
    })
  })

  it('has the constants that stand for single codes', () => {
    const constants = Object.entries(sallyport).filter(
      ([name, value]) => /^[A-Z_]+$/.test(name) && typeof value === 'string',
    )
    for (const [name, value] of constants) expect(value).toBe(name.toLowerCase())
    expect(constants).toHaveLength(10)
  })
})

describe('isContainedExecutionFailureCode', () => {
  it('knows every code and nothing else', () => {
    expect(codes.every((code) => isContainedExecutionFailureCode(code))).toBe(true)
    const others = ['contained_execution_', 'unsafe_symlink', 'file_checkpoint_path_escape', '', undefined, null, 1, {}]
    expect(others.filter((other) => isContainedExecutionFailureCode(other))).toEqual([])
    expect(isContainedExecutionFailureCode('toString')).toBe(false)
  })
})

describe('the fall-back to approval', () => {
  it('is for the two Docker refusals alone, substrate first', () => {
    expect(CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS).toEqual(approvalFallback)
    expect(Object.isFrozen(CONTAINED_EXECUTION_APPROVAL_FALLBACK_REASONS)).toBe(true)
    expect(codes.filter((code) => isContainedExecutionApprovalFallbackReason(code)).sort()).toEqual(
      [...approvalFallback].sort(),
    )
    expect(isContainedExecutionApprovalFallbackReason(undefined)).toBe(false)
  })
})

describe('CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS', () => {
  it('has all five on, and cannot be changed', () => {
    expect(CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS).toEqual({
      maskApprovalIds: true,
      maskBearerTokens: true,
      maskAuthHeaders: true,
      maskKeyValueSecrets: true,
      maskHighEntropyStrings: true,
    })
    expect(() => Object.assign(CONTAINED_EXECUTION_OUTPUT_SCRUB_OPTIONS, { maskApprovalIds: false })).toThrow(TypeError)
  })
})

describe('ContainedExecutionFailureError', () => {
  it('says its code as message and code, and its class as name', () => {
    const error = new ContainedExecutionFailureError('contained_execution_disabled')
    expect(error).toBeInstanceOf(Error)
    expect(error.message).toBe('contained_execution_disabled')
    expect(error.code).toBe('contained_execution_disabled')
    expect(error.name).toBe('ContainedExecutionFailureError')
    expect(String(error)).toBe('ContainedExecutionFailureError: contained_execution_disabled')
    expect(error.stack).toMatch(/^ContainedExecutionFailureError: contained_execution_disabled\n/)
    expect('cause' in error).toBe(false)
  })

  it('passes its cause through, whatever it is', () => {
    const cause = new Error('below')
    expect(new ContainedExecutionFailureError('contained_execution_disabled', { cause }).cause).toBe(cause)
    const withNothing = new ContainedExecutionFailureError('contained_execution_disabled', { cause: undefined })
    expect(Object.hasOwn(withNothing, 'cause')).toBe(true)
  })

  it('takes a phase and whether the execution had started', () => {
    const started = new ContainedExecutionFailureError('contained_execution_boundary_failed', {
      phase: 'lease',
      executionStarted: true,
    })
    expect(started).toMatchObject({ phase: 'lease', executionStarted: true, disposition: 'deny', remediation: 'none' })
  })

  it('mends by its phase, and by Docker whatever its phase', () => {
    const remediation = (code: ContainedExecutionFailureCode, phase: 'image' | 'capability' | 'boundary' | 'mirror') =>
      new ContainedExecutionFailureError(code, { phase }).remediation
    expect(remediation('contained_execution_disabled', 'image')).toBe('session-start')
    expect(remediation('contained_execution_disabled', 'capability')).toBe('session-start')
    expect(remediation('contained_execution_image_missing', 'boundary')).toBe('none')
    expect(remediation('contained_execution_docker_host_invalid', 'mirror')).toBe('session-start')
  })

  it.each([
    ['a code that does not exist', ['contained_execution_anything'], 'ERR_INVALID_ARG_VALUE', 'code'],
    ['the name of an inherited property', ['constructor'], 'ERR_INVALID_ARG_VALUE', 'code'],
    ['no code', [], 'ERR_INVALID_ARG_TYPE', 'code'],
    ['a number as code', [1], 'ERR_INVALID_ARG_TYPE', 'code'],
    ['options of the wrong type', [codes[0], 'cause'], 'ERR_INVALID_ARG_TYPE', 'options'],
    ['a phase that does not exist', [codes[0], { phase: 'later' }], 'ERR_INVALID_ARG_VALUE', 'options.phase'],
    ['a phase of the wrong type', [codes[0], { phase: 1 }], 'ERR_INVALID_ARG_TYPE', 'options.phase'],
    [
      'a flag of the wrong type',
      [codes[0], { executionStarted: 1 }],
      'ERR_INVALID_ARG_TYPE',
      'options.executionStarted',
    ],
  ])('refuses %s', (_what, values, code, option) => {
    const error = thrownBy(() => Reflect.construct(ContainedExecutionFailureError, values))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe(code)
    expect(error.message).toMatch(new RegExp(`["']${option.replace('.', '\\.')}["']`))
  })
})

describe('ContainedExecutionCleanupUnconfirmedError', () => {
  it('is a failure that names the root', () => {
    const cause = new Error('EPERM')
    const error = new ContainedExecutionCleanupUnconfirmedError('/tmp/root', { cause })
    expect(error).toBeInstanceOf(ContainedExecutionFailureError)
    expect(error.name).toBe('ContainedExecutionCleanupUnconfirmedError')
    expect(error.message).toBe('contained_execution_cleanup_unconfirmed')
    expect(error.cause).toBe(cause)
    expect(error).toMatchObject({
      code: 'contained_execution_cleanup_unconfirmed',
      phase: 'cleanup',
      disposition: 'deny',
      remediation: 'none',
      executionStarted: false,
      mirrorRoot: '/tmp/root',
    })
  })

  it('refuses a root that is no string', () => {
    const error = thrownBy(() => Reflect.construct(ContainedExecutionCleanupUnconfirmedError, [undefined]))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_INVALID_ARG_TYPE')
  })
})

describe('FileCheckpointDiagnosticError', () => {
  it('has a message that is its code, and a sentence', () => {
    const diagnostic = 'mirror nodeCount=2 exceeds maxFiles=1'
    const error = new FileCheckpointDiagnosticError('file_checkpoint_quota_exceeded', diagnostic)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(ContainedExecutionFailureError)
    expect(error.name).toBe('FileCheckpointDiagnosticError')
    expect(error.message).toBe('file_checkpoint_quota_exceeded')
    expect({ ...error }).toEqual({ code: 'file_checkpoint_quota_exceeded', diagnostic })
  })

  it.each([[[]], [['file_checkpoint_quota_exceeded']], [[1, 'sentence']]])('refuses %j', (values) => {
    const error = thrownBy(() => Reflect.construct(FileCheckpointDiagnosticError, values))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_INVALID_ARG_TYPE')
  })
})

describe('a fault between the two halves of the package', () => {
  it('has a code of its own, and JSON is not read through what a program put in its place', async () => {
    const { parse, stringify } = JSON
    const arrays = Array.prototype as { toJSON?: unknown }
    try {
      Object.assign(JSON, { parse: () => 'not what was written', stringify: () => 'nothing' })
      expect(sallyport.inspectGitResourceIdentity('/').status).toBe('absent')
      expect(sallyport.computeTreeHash([])).toHaveLength(64)
      Object.assign(JSON, { parse, stringify })
      arrays.toJSON = () => 'an array'
      expect(thrownBy(() => sallyport.computeTreeHash([]))).toMatchObject({ code: 'ERR_INTERNAL' })
      expect(await refusal(sallyport.readObservedChanges('/', '/', ['a']))).toMatchObject({ code: 'ERR_INTERNAL' })
    } finally {
      Object.assign(JSON, { parse, stringify })
      delete arrays.toJSON
    }
  })
})

describe('containedExecutionFailurePhase', () => {
  it('refuses what is no code', () => {
    const unknown = 'contained_execution_anything' as ContainedExecutionFailureCode
    expect(thrownBy(() => containedExecutionFailurePhase(unknown)).code).toBe('ERR_INVALID_ARG_VALUE')
    expect(thrownBy(() => Reflect.apply(containedExecutionFailurePhase, undefined, [])).code).toBe(
      'ERR_INVALID_ARG_TYPE',
    )
  })
})
