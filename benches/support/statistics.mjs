// Medians and ratios of repeated measurements. Pure; an empty list is a fault of the benchmark and throws.

/** The middle value; the mean of the middle two where their number is even. */
export function median(values) {
  if (values.length === 0) throw new Error('benchmark: the median of nothing was asked for')
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Median, least and most of a list of numbers. */
export function summarize(values) {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values), rounds: values.length }
}

/** The median of the ratios of each round: what slows a whole round down does not count. */
export function medianRatio(numerators, denominators) {
  return median(numerators.map((numerator, round) => numerator / denominators[round]))
}
