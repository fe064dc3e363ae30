// What a promise was rejected with. Throws where it was fulfilled, and cleans up the mirror that it gave.

import type { ContainedExecutionMirrorHandle } from '../../index.mjs'

/** An error with the fields that a refusal may carry (`contract/surface.md`). */
export interface Refusal extends Error {
  code?: string
  errno?: number
  syscall?: string
  path?: string
  phase?: string
  disposition?: string
  remediation?: string
  diagnostic?: string
  relativePath?: string
  rule?: string
  nodeKind?: string
  links?: number
  limit?: number
  value?: number
  mirrorRoot?: string
  preparationError?: unknown
}

function isHandle(value: unknown): value is ContainedExecutionMirrorHandle {
  return typeof value === 'object' && value !== null && 'cleanup' in value && typeof value.cleanup === 'function'
}

export async function refusal(promise: Promise<unknown>): Promise<Refusal> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error as Refusal
  }
  if (isHandle(value)) await value.cleanup()
  throw new Error(`expected a refusal, got ${JSON.stringify(value)}`)
}

/** The refusal of something synchronous. */
export function thrownBy(operation: () => unknown): Refusal {
  let value: unknown
  try {
    value = operation()
  } catch (error) {
    return error as Refusal
  }
  throw new Error(`expected an error, got ${JSON.stringify(value)}`)
}
