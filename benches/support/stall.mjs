// How long the event loop was held at most while something ran: a timer that is due every millisecond, and the longest
// time between two of its calls, less that millisecond.

import { performance } from 'node:perf_hooks'

const INTERVAL = 1

/** Runs an operation and gives its value and the longest stall in milliseconds. */
export async function measureStall(operation) {
  let last = performance.now()
  let longest = 0
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last - INTERVAL)
    last = now
  }
  const timer = setInterval(look, INTERVAL)
  try {
    const value = await operation()
    look()
    return { value, longest }
  } finally {
    clearInterval(timer)
  }
}
