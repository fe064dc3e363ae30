// Tries to send something away. Nothing listens at that address: where the network is open, it is told "refused" by the
// machine instead of "denied" by the sandbox.

import { connect } from 'node:net'

await new Promise((resolve, reject) =>
  connect({ host: '127.0.0.1', port: 9 }).once('connect', resolve).once('error', reject),
)
