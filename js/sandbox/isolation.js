'use strict'

// What holds the child in, as it is told to the caller. So far that is Node's Permission Model alone, so a caller who
// asks for the kernel is refused with an Error of code `sandbox_isolation_unavailable`. Source: contract/sandbox.md,
// "Isolation", and `IsolationReport` in contract/surface.md.

const os = require('node:os')

/** @typedef {import('../../index.js').IsolationReport} IsolationReport */

const NO_KERNEL_LAYER =
  'this version of sallyport applies no kernel layer; Node documents that its Permission Model is no boundary against hostile code'

/**
 * @param {string} nodeVersion
 * @returns {IsolationReport}
 */
function nodeOnlyReport(nodeVersion) {
  const model = 'node-permission-model'
  const network = Number(nodeVersion.split('.')[0]) >= 25 ? [model] : []
  /**
   * @param {string[]} by
   * @param {string} reason
   */
  const notHeld = (by, reason) => ({ held: false, by, reason })
  return {
    level: 'node',
    guarantees: {
      files: notHeld([model], NO_KERNEL_LAYER),
      network: notHeld(
        network,
        network.length > 0 ? NO_KERNEL_LAYER : `Node ${nodeVersion} does not restrict the network`,
      ),
      processes: notHeld([model], NO_KERNEL_LAYER),
      signals: notHeld([], 'Node does not restrict signals'),
      memory: notHeld(['rlimit-data', 'max-old-space-size'], 'no probe has shown the limits to hold'),
    },
    kernel: os.release(),
    landlockAbi: null,
    node: nodeVersion,
  }
}

/** @returns {Error & { code: string }} */
function kernelUnavailable() {
  const message = `The sandboxed run cannot be held by the kernel: ${NO_KERNEL_LAYER}. Use isolation 'best-effort' or 'node' to run without it.`
  return Object.assign(new Error(message), { code: 'sandbox_isolation_unavailable' })
}

module.exports = { kernelUnavailable, nodeOnlyReport }
