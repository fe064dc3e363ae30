// A consumer by `require`: the same declarations reached the other way, the classes being the same classes.

import sallyport = require('sallyport')

type ByRequire = typeof sallyport
type ByImport = typeof import('sallyport', { with: { 'resolution-mode': 'import' } })

/** Every export is reached from both sides, with the same type. */
const sameNames: keyof ByRequire extends keyof ByImport
  ? keyof ByImport extends keyof ByRequire
    ? true
    : false
  : false = true
declare const byImport: ByImport
const sameTypes: ByRequire = byImport

async function mirror(options: sallyport.ContainedExecutionMirrorOptions): Promise<string> {
  const handle: sallyport.ContainedExecutionMirrorHandle = await sallyport.prepareContainedExecutionMirror(options)
  try {
    const report: sallyport.MirrorReport = sallyport.describeContainedExecutionMirror(handle)
    return report.treeHash
  } catch (error) {
    if (error instanceof sallyport.ContainedExecutionFailureError) return error.code
    throw error
  } finally {
    await handle.cleanup()
  }
}

export = { mirror, sameNames, sameTypes }
