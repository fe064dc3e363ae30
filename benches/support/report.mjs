// What a benchmark prints, kept for the JSON file too: lines, and rows of a median, its range and a ratio.

import { summarize } from './statistics.mjs'

/** Milliseconds for a person. */
export function milliseconds(value) {
  return `${value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 })} ms`
}

/** A ratio with what it is a ratio of. */
export function ratioText(value, of) {
  return `${value.toFixed(2)} x ${of}`
}

/** A report: `print` a line, a `row`, and all lines so far as `output`. */
export function createReport() {
  const output = []
  const print = (text = '') => {
    output.push(text)
    console.log(text)
  }
  const row = (label, times, ratio) => {
    const { median: middle, least, most } = summarize(times)
    const range = `${milliseconds(least)} to ${milliseconds(most)}`
    print(`  ${label.padEnd(44)}${milliseconds(middle).padStart(11)}   ${range.padEnd(24)}${ratio ?? ''}`)
  }
  return { output, print, row }
}
