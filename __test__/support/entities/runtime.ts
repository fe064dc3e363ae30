// The modules of `runtime/`, loaded by Node as they are and typed for the tests. Loading them has no effect but that
// `channel.js` takes its environment variables, so that one is only ever loaded in a child.

import { createRequire } from 'node:module'
import path from 'node:path'

import type { DiscoveryError, DiscoveryErrorType, EntitySetWire } from '../../../index.mjs'
import { packageRoot } from '../ordinary-user'

export interface NonData {
  path: string
  found: string
}

export interface Runtime {
  collectEntities(modules: { file: string; exports: object }[], buildRoot: string): Map<string, any>
  resolveAttrRefs(entities: Map<string, object>): void
  encodeEntitySet(entities: Map<string, object>): EntitySetWire
  getProvenance(entity: unknown): { sourceFile?: string; composite?: string; compositeInstance?: string } | undefined
  stampProvenance(entity: object, provenance: object): void
  setBuildParams(params: unknown): void
  getBuildParams(): Record<string, string | number | boolean>
  classifyChildError(file: string, error: unknown, fallbackType?: DiscoveryErrorType): DiscoveryError & { raw: any }
  describeNonData(value: unknown): NonData[]
  toData(value: unknown): any
  readData(value: unknown): { data: any; nonData: NonData[] }
  DiscoveryError: typeof DiscoveryError
  isDiscoveryError(error: unknown): boolean
}

const requireFrom = createRequire(import.meta.url)

/** The absolute path of a file of the runtime. */
export function runtimePath(name: string): string {
  return path.join(packageRoot, 'runtime', name)
}

export const runtime: Runtime = Object.assign(
  {},
  ...['collect', 'resolve', 'entity-wire-codec', 'provenance', 'params', 'child-errors', 'data', 'errors'].map(
    (name) => requireFrom(runtimePath(`${name}.js`)) as object,
  ),
)
