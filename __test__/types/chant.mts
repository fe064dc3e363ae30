// A consumer as chant is one: it runs the files that its analysis could not fold, with its own trusted modules, and
// evaluates its configuration file. Only the import path is sallyport's.

import {
  type DiscoveryError,
  evaluateConfigSandboxed,
  runFallbackFilesSandboxed,
  type SandboxRunResult,
  type TrustedModules,
} from 'sallyport'

interface Declarable {
  readonly lexicon: string
  readonly entityType: string
}

interface Discovered {
  entities: Map<string, Declarable>
  errors: DiscoveryError[]
  sources: Map<string, string>
}

const modules: TrustedModules = {
  collect: '/chant/src/discovery/collect.ts',
  resolve: '/chant/src/discovery/resolve.ts',
  entityWireCodec: '/chant/src/discovery/sandbox/entity-wire-codec.ts',
  provenance: '/chant/src/provenance.ts',
  params: '/chant/src/params.ts',
  childErrors: '/chant/src/discovery/sandbox/child-errors.ts',
}

export async function discover(
  files: string[],
  buildRoot: string,
  params: Record<string, string | number | boolean>,
): Promise<Discovered> {
  const run: SandboxRunResult = await runFallbackFilesSandboxed(files, buildRoot, { modules, params })
  const entities = run.entities as Map<string, Declarable>
  return { entities, errors: run.errors, sources: new Map(Object.entries(run.provenanceByName)) }
}

export async function configuration<T>(file: string, root: string, check: (value: unknown) => T): Promise<T> {
  const { config } = await evaluateConfigSandboxed(file, root)
  return check(config)
}
