// The tables of the README, from the figures of a run. Pure.

import { median, medianRatio } from './statistics.mjs'

function time(values) {
  const value = median(values)
  return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`
}

function mebibytes(values) {
  return `${(median(values) / 1024 ** 2).toFixed(0)} MiB`
}

function beside(ours, theirs) {
  return `${time(ours)} beside ${time(theirs)}: **${medianRatio(ours, theirs).toFixed(2)}**`
}

function figuresOf({ small, large, sequential, many, beside: few, stalls }) {
  const sums = (times) => times.sumInOneProcess ?? times.sumByXargs
  const entries = (tree) => tree.files + tree.directories
  const each = (medianRatio(many.times['mirror-many'], many.times['mirror-few']) * entries(few)) / entries(many.tree)
  return {
    smallMirror: beside(small.times.mirror, small.times.copy),
    smallIndex: beside(small.times.index, sums(small.times)),
    smallCleanup: beside(small.times.cleanup, small.times.remove),
    stall: `${time(stalls.mirror)}, index ${time(stalls.index)}`,
    largeMirror: beside(large.times.mirror, large.times.copy),
    largeIndex: beside(large.times.index, sums(large.times)),
    sequential: `${time(sequential.times.mirror)} beside ${time(sequential.times.sequential)}: **1/${medianRatio(
      sequential.times.sequential,
      sequential.times.mirror,
    ).toFixed(0)}**`,
    many: `${time(many.times['mirror-many'])}; per entry **${each.toFixed(2)}** of that with ${entries(few).toLocaleString('en-US')}`,
    growth: mebibytes(many.growthBytes['mirror-many']),
  }
}

/** The lines of the table, one column for each place. */
export function markdownTable(places) {
  const columns = Object.values(places).map((figures) => ({
    title: figures.fileSystem,
    tree: figures,
    cells: figuresOf({ ...figures, beside: figures.many.beside }),
  }))
  const [{ tree }] = columns
  const count = (value) => value.toLocaleString('en-US')
  const small = `${count(tree.small.tree.files)} files of ${tree.small.tree.bytes / 1024} KiB`
  const large = `${tree.large.tree.files * tree.large.tree.mebibytes} MiB in ${tree.large.tree.files} files`
  const entries = `${count(tree.many.tree.files + tree.many.tree.directories)} entries`
  const labels = {
    smallMirror: `mirror of ${small}, beside \`cp -a\``,
    smallIndex: 'index of the same, beside `sha256sum` of all in one process',
    smallCleanup: 'removing the mirror, beside `rm -rf`',
    stall: 'longest stall of the event loop meanwhile',
    largeMirror: `mirror of ${large}, beside \`cp -a\``,
    largeIndex: 'index of the same, beside `sha256sum`',
    sequential: `mirror of ${count(tree.sequential.tree.files)} files, beside a sequential mirror in JavaScript`,
    many: `mirror of ${entries}`,
    growth: 'memory growth by it',
  }
  return [
    `| work | ${columns.map(({ title }) => title).join(' | ')} |`,
    `| --- | ${columns.map(() => '---').join(' | ')} |`,
    ...Object.entries(labels).map(
      ([key, label]) => `| ${label} | ${columns.map(({ cells }) => cells[key]).join(' | ')} |`,
    ),
  ]
}

/** The lines of the table of the sandboxed run. */
export function sandboxTable({ first, later, packages, stalls }) {
  const more = median(later.kernel.map((value, round) => value - later.bare[round]))
  const layers = median(later.kernel.map((value, round) => value - later.node[round]))
  return [
    '| work | measured |',
    '| --- | --- |',
    `| first call in a process, three small files, beside esbuild's interface and \`fork\` | ${beside(first.kernel, first.fork)} |`,
    `| later calls, beside the same | ${beside(later.kernel, later.fork)} |`,
    `| later calls, beside a bare start of Node under its Permission Model | ${time(later.kernel)} beside ${time(later.bare)}: **${more.toFixed(0)} ms more** |`,
    `| what the kernel's layers add to a call | **${layers.toFixed(1)} ms** |`,
    `| later calls with large packages, beside esbuild's interface and \`fork\` | ${beside(packages.kernel, packages.fork)} |`,
    `| longest stall of the event loop meanwhile | ${time(stalls.small)}, large packages ${time(stalls.large)} |`,
  ]
}
