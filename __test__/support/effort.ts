// How long the long tests run. `npm test` runs them in full on one Node and with fewer rounds on the other versions:
// no test is left out anywhere. Cannot fail.

/** The number of rounds for this run: `full`, or `reduced` where `SALLYPORT_TEST_EFFORT` says so. */
export function rounds(full: number, reduced: number): number {
  return process.env.SALLYPORT_TEST_EFFORT === 'reduced' ? reduced : full
}
