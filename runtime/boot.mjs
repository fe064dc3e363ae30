// The entry of the child. Node starts while the bundle is still being made, and this waits for the word to import it: one
// byte on the control descriptor. Meanwhile it loads what every bundle imports, `prebuilt.mjs` under the name that the
// driver knows it by. Where the parent gives up instead, it closes its end, and the child ends with nothing said. It is
// copied beside the bundle, so it imports nothing but that and Node's own modules. An error of the bundle's own
// evaluation ends the process as Node ends it: on stderr, with exit code 1.

import { closeSync, readSync } from 'node:fs'

const descriptorText = process.env.SALLYPORT_CONTROL_FD ?? ''
delete process.env.SALLYPORT_CONTROL_FD
if (!/^[0-9]{1,9}$/.test(descriptorText)) {
  throw new Error('SALLYPORT_CONTROL_FD must be the number of a descriptor: boot.mjs is started by sallyport only')
}

const descriptor = Number(descriptorText)

/** How many bytes came: none where the other end was closed. */
function receive() {
  const byte = new Uint8Array(1)
  for (;;) {
    try {
      return readSync(descriptor, byte, 0, 1, null)
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error
      // The descriptor does not block: look again in a millisecond.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

await import(new URL('runtime.mjs', import.meta.url).href)
const received = receive()
closeSync(descriptor)
if (received > 0) await import(new URL('child.mjs', import.meta.url).href)
