'use strict'

// `sallyport doctor`: what holds sandboxed code on this machine, in a table that a person can act on. It tries each layer
// for real and then a whole run, explains what is missing by what the kernel tells of the surroundings, and says what to
// do. Fails with the errors of `probeIsolation` for a program that is no Node; a launcher or an addon that is missing, and
// a run that does not work, are findings.

const os = require('node:os')
const path = require('node:path')

const { version } = require('../package.json')
const { surroundings } = require('./surroundings')

/**
 * @typedef {import('../index.js').IsolationReport} IsolationReport
 * @typedef {import('../index.js').IsolationProbe} IsolationProbe
 * @typedef {import('./surroundings.js').Surroundings} Surroundings
 * @typedef {'files' | 'network' | 'processes' | 'signals' | 'memory'} GuaranteeName
 */

/**
 * @typedef {object} Findings
 * @property {boolean} healthy whether the kernel holds every guarantee, and a run works
 * @property {string} version of this package
 * @property {string} system
 * @property {string} nodePath
 * @property {string | null} permissionFlag the switch of this Node's Permission Model
 * @property {IsolationProbe | null} isolation null where nothing could be tried
 * @property {{ works: boolean, reason?: string }} run whether a whole run works
 * @property {Surroundings} surroundings
 * @property {string[]} advice what to do
 */

/** What each guarantee says, in a few words. */
const MEANINGS = Object.freeze({
  files: 'no file outside the project is read or written',
  network: 'no network',
  processes: 'no program is started',
  signals: 'no other process is signalled',
  memory: 'memory has a limit',
})

/**
 * What a probe tries, in a few words.
 * @type {Record<string, string>}
 */
const ATTEMPTS = Object.freeze({
  read: 'reading',
  list: 'listing',
  write: 'writing',
  network: 'sockets',
  process: 'new processes',
  signal: 'signals',
  signalByDescriptor: 'signals by descriptor',
  truncate: 'emptying',
  memory: 'memory above its limit',
  uncountedMemory: 'memory that no limit counts',
  memoryDevice: 'files that give such memory',
  namespace: 'namespaces',
})

/** At which level a run is tried where the probe found one. */
const TRIAL_LEVELS = /** @type {const} */ ({ kernel: 'kernel', partial: 'best-effort', node: 'node' })

/** The kernel that brought Landlock. */
const LANDLOCK_KERNEL = [5, 13]

/**
 * @param {string} nodePath absolute
 * @returns {Promise<Findings>}
 */
async function examine(nodePath) {
  const about = { version, system: `${os.type()} ${os.release()}, ${process.arch}`, nodePath }
  const around = surroundings()
  /** @type {{ permissionFlag: string | null, isolation: IsolationProbe | null, run: Findings['run'] }} */
  const tried = { permissionFlag: null, isolation: null, run: { works: false } }
  try {
    const { callSandboxed, probeIsolation } = require('../index.js')
    tried.permissionFlag = (await require('../js/sandbox/node-program').nodeProgram(nodePath)).permissionFlag
    tried.isolation = await probeIsolation({ nodePath })
    const trial = { file: path.join(__dirname, 'trial.mjs'), buildRoot: __dirname }
    // At the best level there is. What is missing is told below, and not by the run as well.
    require('../js/sandbox/isolation').isToldFirst(tried.isolation)
    const { value } = await callSandboxed(trial, { nodePath, isolation: TRIAL_LEVELS[tried.isolation.level] })
    tried.run = value === 'works' ? { works: true } : { works: false, reason: `it gave ${JSON.stringify(value)}` }
  } catch (error) {
    // What is wrong with the program that was asked about is no finding about this machine.
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    if (code === 'ERR_INVALID_ARG_VALUE') throw error
    tried.run.reason = message
  }
  const healthy = tried.isolation?.level === 'kernel' && tried.run.works
  const advice = [...(tried.isolation === null ? [] : adviceOn(tried.isolation, around))]
  if (!tried.run.works) advice.push(`A sandboxed run does not work here: ${tried.run.reason}`)
  return { healthy, ...about, ...tried, surroundings: around, advice }
}

/**
 * @param {IsolationReport & Partial<IsolationProbe>} report
 * @param {Surroundings} around
 * @returns {string[]} what to do about what is not held
 */
function adviceOn(report, around) {
  const advice = []
  const { files, network, processes, signals, memory } = report.guarantees
  if (!files.held) advice.push(adviceOnLandlock(report, around))
  // The limit holds a part of it, the filters another, and Landlock, of which files tell already, the third.
  const isLimited = memory.by.includes('resource-limits')
  const needsSeccomp =
    !network.held ||
    !processes.held ||
    (!signals.held && files.held) ||
    (!memory.held && isLimited && !memory.by.includes('seccomp'))
  if (needsSeccomp) advice.push(adviceOnSeccomp(around))
  if (!memory.held && !isLimited) {
    advice.push(
      'Memory: this kernel does not enforce RLIMIT_DATA, or /proc is missing, by which a child is looked at. Bound the ' +
        'memory of the whole container or service.',
    )
  }
  return advice
}

/**
 * @param {IsolationReport & Partial<IsolationProbe>} report
 * @param {Surroundings} around
 * @returns {string}
 */
function adviceOnLandlock({ kernel, landlockAbi, guarantees, layers }, around) {
  const landlock = layers?.landlock
  if (landlock?.applied && landlock.reason !== undefined) {
    return (
      `Files: Landlock holds here, but not for this Node: ${landlock.reason}. Give the program itself with --node, and ` +
      'as nodePath to runs: no script or wrapper that starts it, and one whose libraries can be read.'
    )
  }
  if (!isAtLeast(kernel, LANDLOCK_KERNEL)) {
    return `Files: Linux ${kernel} has no Landlock. It came with ${LANDLOCK_KERNEL.join('.')}: use a newer kernel.`
  }
  const modules = around.securityModules
  if (modules !== null && !modules.includes('landlock')) {
    return (
      `Files: Landlock is not switched on. Start the kernel with "lsm=landlock,${modules.join(',')}", or use one that ` +
      'is built with CONFIG_SECURITY_LANDLOCK.'
    )
  }
  if (landlockAbi !== null) {
    return (
      'Files: Landlock is there, but its rules could not be applied or do not hold here: ' +
      `${guarantees.files.reason}. Kernels that only imitate Linux and some file systems take rules without holding ` +
      'them; use a virtual machine with a kernel of its own, or another file system.'
    )
  }
  if (isFiltered(around)) {
    return (
      `Files: Landlock is hidden by the filter on system calls that is around this process (${whereabouts(around)}). ` +
      'Allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in its profile, with ' +
      '`--security-opt seccomp=<profile>` for instance, or use a newer container runtime, whose profile allows them.'
    )
  }
  return (
    'Files: the kernel has no Landlock. Use one that is built with CONFIG_SECURITY_LANDLOCK, with landlock among its ' +
    '"lsm=".'
  )
}

/**
 * @param {Surroundings} around
 * @returns {string}
 */
function adviceOnSeccomp(around) {
  const where = `Network, processes, signals: filters on system calls cannot be set here (${whereabouts(around)}). `
  return isFiltered(around)
    ? `${where}Allow seccomp and prctl in the profile of the container, and use a runtime with a kernel of its own where ` +
        'the kernel is only imitated.'
    : `${where}Use a kernel that is built with CONFIG_SECCOMP_FILTER, and in a container no runtime that imitates one.`
}

/**
 * @param {Surroundings} around
 * @returns {boolean} whether a filter is around this process; where that is not known, one is around most containers
 */
function isFiltered({ container, filtered }) {
  return filtered ?? container !== null
}

/**
 * @param {Surroundings} around
 * @returns {string}
 */
function whereabouts({ container, filtered, profile }) {
  const parts = [
    container === null ? 'no container is seen' : `in a container: ${container}`,
    filtered === null ? 'filters not known' : filtered ? 'under a filter' : 'under no filter',
    ...(profile === null ? [] : [`profile ${profile}`]),
  ]
  return parts.join(', ')
}

/**
 * @param {string} kernel such as `6.8.0-41-generic`
 * @param {number[]} least
 * @returns {boolean}
 */
function isAtLeast(kernel, [leastMajor, leastMinor]) {
  const [major, minor] = kernel.split('.').map((part) => Number.parseInt(part, 10))
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}

/**
 * @param {Findings} findings
 * @returns {string} lines for a person
 */
function describe(findings) {
  const { isolation, run, surroundings: around, advice } = findings
  const lines = [
    ['sallyport', findings.version],
    ['system', findings.system],
    ['Landlock', `${describeVersion(isolation)}${describeLayer(isolation, 'files', 'landlock')}`],
    ['seccomp', describeLayer(isolation, 'network', 'seccomp')],
    ['resource limits', describeLayer(isolation, 'memory', 'resource-limits')],
    ['user namespaces', `${describeNamespaces(isolation, around)} (the sandbox needs none)`],
    ['security modules', around.securityModules?.join(', ') ?? 'not known'],
    ['surroundings', whereabouts(around)],
    ['Node', `${isolation?.node ?? 'not known'}, ${findings.permissionFlag ?? 'no Permission Model'}`],
    ['', findings.nodePath],
    ['a sandboxed run', run.works ? 'works' : 'DOES NOT WORK'],
  ].map(([label, text]) => `${label.padEnd(18)}${text}`)
  if (isolation !== null) {
    lines.push('', `${'layer alone'.padEnd(18)}refuses`)
    for (const [name, { refused, reason }] of Object.entries(isolation.layers)) {
      lines.push(`${name.padEnd(18)}${refused.map((attempt) => ATTEMPTS[attempt] ?? attempt).join(', ') || 'nothing'}`)
      if (reason !== undefined) lines.push(`${''.padEnd(18)}why not: ${reason}`)
    }
    lines.push('', `${'guarantee'.padEnd(12)}${'held'.padEnd(6)}${'meaning'.padEnd(50)}by`)
    for (const [name, { held, by, reason }] of Object.entries(isolation.guarantees)) {
      const meaning = MEANINGS[/** @type {GuaranteeName} */ (name)]
      lines.push(`${name.padEnd(12)}${(held ? 'yes' : 'NO').padEnd(6)}${meaning.padEnd(50)}${by.join(', ')}`)
      if (reason !== undefined) lines.push(`${''.padEnd(18)}why not: ${reason}`)
    }
    lines.push('', `level             ${isolation.level}`)
  }
  lines.push(
    '',
    ...(advice.length === 0 ? ['Nothing is to be done.'] : ['To do:', ...advice.map((each) => `- ${each}`)]),
  )
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}

/**
 * @param {IsolationProbe | null} isolation
 * @param {Surroundings} around
 * @returns {string}
 */
function describeNamespaces(isolation, { userNamespaces }) {
  const tried = isolation?.userNamespaces ?? null
  const own = tried === null ? 'not tried' : tried ? 'can be made by this process' : 'cannot be made by this process'
  return userNamespaces === null ? own : `${own}, ${userNamespaces} to ordinary users`
}

/**
 * @param {IsolationReport | null} isolation
 * @returns {string}
 */
function describeVersion(isolation) {
  return isolation === null || isolation.landlockAbi === null ? '' : `version ${isolation.landlockAbi}, `
}

/**
 * @param {IsolationReport | null} isolation
 * @param {GuaranteeName} guarantee
 * @param {string} layer
 * @returns {string}
 */
function describeLayer(isolation, guarantee, layer) {
  if (isolation === null) return 'not tried'
  return isolation.guarantees[guarantee].by.includes(layer) ? 'holds' : 'DOES NOT HOLD'
}

module.exports = { adviceOn, describe, examine }
