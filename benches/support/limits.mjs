// Limits far above every tree that is measured: nothing may be refused, and they are checked all the same.

export const LIMITS = {
  maxFiles: 10_000_000,
  maxSourceBytes: 64 * 1024 ** 3,
  maxWorkspaceBytes: 64 * 1024 ** 3,
  prepareTimeoutMs: 30 * 60 * 1000,
}
