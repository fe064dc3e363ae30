// Runs the corpus of `fixtures/attacks`: makes what each attack goes for, outside its project; runs the attack; and
// judges what came of it, by what the run reported AND by what can be seen from outside (connections that arrived, files
// that changed, processes that died, the secret in the output). It imports nothing of the package, so that the test and
// `scripts/attacks.mjs` run the very same code. Errors of the system are thrown: an attack that was not set up as it says
// proves nothing.

import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import fs from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { inflateSync } from 'node:zlib'

/** What holds the child: both boundaries, the kernel alone, Node alone, or neither (which proves the attack real). */
export type Configuration = 'kernel' | 'kernelAlone' | 'node' | 'open'

export const configurations: readonly Configuration[] = ['kernel', 'kernelAlone', 'node', 'open']

/**
 * What came of an attack:
 * - `denied <operation>`: a `permission` error that names the operation
 * - `fails <text>`: another error of the file; a text that is part of its message
 * - `ends <text>`: the run ended without a result; a text that is part of the message
 * - `nothing`: no error, and nothing was got; `survives`: the file did what it does, which harms nobody
 * - `metadata`: it learned that something exists, its size or its place
 * - `escapes`: it got what it wanted
 */
export type Outcome = string

/** One outcome, several of which any will do, or one for each major version of Node (`else` for the others). */
type Expected = Outcome | Outcome[] | { [major: string]: Outcome | Outcome[] }

type Need =
  | 'directory'
  | 'fifo'
  | 'library'
  | 'tcp'
  | 'tcp6'
  | 'udp'
  | 'unix'
  | 'abstract'
  | 'victim'
  | 'group'
  | 'home'
  | 'disk'
  | 'project-link'

interface Expectation {
  about: string
  area: string
  /** What must be there for it; nothing else is made. */
  needs?: Need[]
  /** It would disturb others in the same child. */
  alone?: boolean
  options?: Record<string, number>
  /** The beginning of the name of a file that it would leave in the caller's working directory. */
  leaves?: string
  kernel: Expected
  kernelAlone: Expected
  node: Expected
  open: Expected
  /** What differs for an ordinary user. */
  asOrdinaryUser?: Partial<Record<Configuration, Expected>>
}

export interface Attack extends Expectation {
  name: string
}

export interface Row {
  attack: string
  area: string
  configuration: Configuration
  node: string
  expected: Outcome[]
  actual: Outcome
  holds: boolean
  /** The first lines of what was reported, for a person. */
  detail: string
}

interface RunError {
  file: string
  type: string
  message: string
}

/** The part of a run's result that is looked at. */
interface RunResult {
  entities: Map<string, object>
  errors: RunError[]
}

export type Run = (files: string[], buildRoot: string, options: Record<string, unknown>) => Promise<RunResult>

/** The two ways to start a run: the package's own, and the one that leaves the Permission Model off. */
export interface Runners {
  runFallbackFilesSandboxed: Run
  runWithoutPermissionModel: Run
}

/** The run of a configuration. */
export function runnerFor(configuration: Configuration, runners: Runners): Run {
  const isolation = configuration === 'kernel' || configuration === 'kernelAlone' ? 'kernel' : 'node'
  const permissionModel = configuration === 'kernel' || configuration === 'node'
  const run = permissionModel ? runners.runFallbackFilesSandboxed : runners.runWithoutPermissionModel
  return (files, buildRoot, options) => run(files, buildRoot, { ...options, isolation })
}

export interface Corpus {
  /** The folder `fixtures/attacks`. */
  folder: string
  /** A native addon, as a library to load. */
  library: string
  run: Run
  configuration: Configuration
  /** The Node of the child, and its version. */
  nodePath: string
  nodeVersion: string
  /** Only these, by name. */
  only?: readonly string[]
  /** Told after each run. */
  onRows?: (rows: Row[]) => void
}

const PLACEHOLDER = 'SECRET-PLACEHOLDER-0123456789abcdef'

/** A SQLite database with one table `secrets(text)` whose one row is the placeholder: Node 20 cannot make one. */
const DATABASE = inflateSync(
  Buffer.from(
    'eNoLDvTJLElVSMsvyk0sUTBmYGJgZGRwUFBgYAAyIRgGGIGYBY1PCDAx6CUz8oIUM55iAKJRQDNgwsgmLi3N6FiSmJSTWpyaXJRaUgylmJyDXB1' +
      'DXBVCHJ18XBWggholqRUlmpC4uckARKNgOAFVRqbgYFdgxIfoBvg4Ort6+Pu4uAbpGhgaGZuYmplbWCYmJaekpgEACwMlCA==',
    'base64',
  ),
)

/** How many attacks that do not disturb each other share a child. */
const GROUP = 12

/** Far above what any of them takes: an attack that hangs is a failure, and not a stop. */
const RUN_TIMEOUT_MS = 60_000

/** Descriptions of attacks, in order of name. */
export function readAttacks(folder: string): Attack[] {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      name,
      ...(JSON.parse(fs.readFileSync(path.join(folder, name, 'expected.json'), 'utf8')) as Expectation),
    }))
    .sort((left, right) => (left.name < right.name ? -1 : 1))
}

export function expectedOutcomes(attack: Attack, configuration: Configuration, nodeVersion: string): Outcome[] {
  const major = nodeVersion.replace(/^v/, '').split('.')[0] as string
  const own = process.getuid?.() === 0 ? undefined : attack.asOrdinaryUser?.[configuration]
  let expected: Expected | undefined = own ?? attack[configuration]
  if (typeof expected === 'object' && !Array.isArray(expected)) expected = expected[major] ?? expected.else
  if (expected === undefined) throw new Error(`${attack.name} says nothing of ${configuration} on Node ${major}`)
  return Array.isArray(expected) ? expected : [expected]
}

function matches(actual: Outcome, expected: Outcome): boolean {
  const part = /^(fails|ends) (.+)$/s.exec(expected)
  if (!part) return actual === expected
  const [, word, text] = part as unknown as [string, string, string]
  return actual.startsWith(`${word} `) && actual.includes(text)
}

/** A secret as long as the placeholder. */
function makeSecret(): string {
  return `SECRET-${randomBytes(14).toString('hex')}`
}

/** Everything that can be seen of a tree from outside, but for times of access. */
function describeTree(root: string): string[] {
  const seen: string[] = []
  const visit = (place: string): void => {
    const stats = fs.lstatSync(place)
    const kind = stats.isSymbolicLink()
      ? `link ${fs.readlinkSync(place)}`
      : stats.isFile()
        ? `file ${createHash('sha256').update(fs.readFileSync(place)).digest('hex').slice(0, 12)}`
        : stats.isDirectory()
          ? 'directory'
          : 'other'
    const times = stats.isDirectory() ? '' : ` ${stats.mtimeMs}`
    seen.push(
      `${path.relative(root, place)}: ${kind} ${stats.mode.toString(8)} ${stats.uid}:${stats.gid} ${stats.nlink}${times}`,
    )
    if (stats.isDirectory()) for (const name of fs.readdirSync(place).sort()) visit(path.join(place, name))
  }
  if (fs.existsSync(root)) visit(root)
  return seen
}

/** Whether a line of a difference is about an attack's own folder. What is nobody's counts against all. */
function isOf(line: string, { name }: Attack): boolean {
  return line.includes(` ${name}/`) || line.includes(` ${name}: `)
}

function difference(before: string[], after: string[]): string[] {
  return [
    ...after.filter((line) => !before.includes(line)).map((line) => `now ${line}`),
    ...before.filter((line) => !after.includes(line)).map((line) => `no more ${line}`),
  ]
}

/** What one attack goes for. */
class Target {
  readonly facts: Record<string, unknown> = {}
  private readonly happened: string[] = []
  private readonly closing: (() => void | Promise<void>)[] = []
  private before: string[] = []
  private readonly directory: string
  private victim: ChildProcess | undefined

  constructor(
    private readonly attack: Attack,
    base: string,
    private readonly secret: string,
  ) {
    this.directory = path.join(base, attack.name)
  }

  private needs(need: Need): boolean {
    return this.attack.needs?.includes(need) ?? false
  }

  async open(library: string): Promise<void> {
    if (this.needs('directory')) await this.makeDirectory(library)
    if (this.needs('tcp')) this.facts.tcp = await this.listen('127.0.0.1')
    if (this.needs('tcp6')) this.facts.tcp6 = await this.listenOnVersion6()
    if (this.needs('udp')) this.facts.udp = await this.receive()
    if (this.needs('abstract')) {
      // As long as there is room for: Node 20 fills up what is left, and its name is another one then.
      this.facts.abstract = `\0sallyport-${randomBytes(48).toString('hex')}`.padEnd(108, '-')
      await this.listen(this.facts.abstract as string)
    }
    if (this.needs('victim')) this.facts.victim = await this.startVictim()
    if (this.needs('group')) this.facts.group = ownGroup()
    if (this.needs('home')) this.facts.home = fs.existsSync(os.homedir()) ? os.homedir() : '/'
    if (this.needs('disk')) {
      const disk = fs
        .readdirSync('/dev')
        .find((name) => fs.statSync(`/dev/${name}`, { throwIfNoEntry: false })?.isBlockDevice())
      if (disk !== undefined) this.facts.disk = `/dev/${disk}`
    }
    this.before = describeTree(this.directory)
  }

  private async makeDirectory(library: string): Promise<void> {
    const { directory, secret } = this
    fs.mkdirSync(directory, { mode: 0o755 })
    const write = (name: string, content: string | Buffer, mode = 0o644): string => {
      const place = path.join(directory, name)
      fs.writeFileSync(place, content)
      fs.chmodSync(place, mode)
      return place
    }
    Object.assign(this.facts, {
      directory,
      secret: write('secret.txt', secret),
      empty: write('empty.txt', ''),
      target: write('target.txt', 'as it was\n'),
      commonjs: write('secret.cjs', `exports.secret = '${secret}'\n`),
      module: write('secret.mjs', `export const secret = '${secret}'\n`),
      json: write('secret.json', JSON.stringify({ secret })),
      sourceMap: write('secret.map', JSON.stringify({ version: 3, sources: [secret], names: [], mappings: 'AAAA' })),
      environment: write('secret.env', `ATTACK_LOADED=${secret}\n`),
      database: write('secret.db', Buffer.from(DATABASE.toString('latin1').replace(PLACEHOLDER, secret), 'latin1')),
      program: write('program.sh', `#!/bin/sh\n: > '${path.join(directory, 'started')}'\n`, 0o755),
      link: path.join(directory, 'link'),
    })
    fs.symlinkSync(this.facts.secret as string, this.facts.link as string)
    if (this.needs('library')) {
      this.facts.library = path.join(directory, 'library.node')
      fs.copyFileSync(library, this.facts.library as string)
    }
    if (this.needs('fifo')) {
      this.facts.fifo = path.join(directory, 'fifo')
      await finished(spawn('mkfifo', [this.facts.fifo as string]))
    }
    if (this.needs('unix')) {
      this.facts.unix = path.join(directory, 'unix')
      await this.listen(this.facts.unix as string)
    }
  }

  private async listen(place: string): Promise<number> {
    const server = net.createServer((socket) => {
      this.happened.push(`somebody connected to ${place.replace('\0', '@')}`)
      // Enough of an answer for HTTP; TLS and HTTP/2 are refused by it, after the connection has been counted.
      socket.on('error', () => socket.destroy())
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'))
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      if (/^[\d.:]+$/.test(place)) server.listen(0, place, resolve)
      else server.listen(place, resolve)
    })
    this.closing.push(() => void server.close())
    return typeof server.address() === 'object' ? (server.address() as AddressInfo).port : 0
  }

  /** A container may have no IPv6: the attack then finds nobody at the port, and must be refused all the same. */
  private async listenOnVersion6(): Promise<number> {
    try {
      return await this.listen('::1')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EADDRNOTAVAIL' && code !== 'EAFNOSUPPORT') throw error
      return 9
    }
  }

  private async receive(): Promise<number> {
    const socket = dgram.createSocket('udp4')
    socket.on('message', () => this.happened.push('a datagram arrived'))
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, '127.0.0.1', resolve)
    })
    this.closing.push(() => void socket.close())
    return socket.address().port
  }

  private async startVictim(): Promise<number> {
    const victim = spawn('sleep', ['600'], { stdio: 'ignore' })
    await new Promise<void>((resolve, reject) => {
      victim.once('error', reject)
      victim.once('spawn', resolve)
    })
    this.victim = victim
    this.closing.push(() => void victim.kill('SIGKILL'))
    return victim.pid as number
  }

  /** What can be seen from outside. */
  evidence(): string[] {
    const seen = [...this.happened, ...difference(this.before, describeTree(this.directory))]
    const { victim } = this
    if (victim) {
      if (victim.exitCode !== null || victim.signalCode !== null) seen.push(`the victim ended by ${victim.signalCode}`)
      else if (os.getPriority(victim.pid) !== os.getPriority(process.pid)) seen.push('the victim was slowed down')
    }
    return seen
  }

  async close(): Promise<void> {
    for (const close of this.closing.splice(0)) await close()
  }
}

/** The process group of this process, which Node does not tell. */
function ownGroup(): number {
  const afterName = fs.readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /s, '')
  return Number(afterName.split(' ')[2])
}

function finished(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`${child.spawnfile} ended with ${code}`))))
  })
}

/** Lets what is on its way through the kernel arrive here. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 25))
}

function grouped(attacks: Attack[]): Attack[][] {
  const groups: Attack[][] = attacks.filter(({ alone }) => alone).map((attack) => [attack])
  const together = attacks.filter(({ alone }) => !alone)
  for (let start = 0; start < together.length; start += GROUP) groups.push(together.slice(start, start + GROUP))
  return groups
}

/** A folder that is the corpus's own, in which every file that is left behind can be seen. */
interface Ground {
  base: string
  temporary: string
  /** Where the caller stands, and with it the child. */
  working: string
  secret: string
}

/** How many children run at once. */
const AT_ONCE = 3

/** Every attack under one configuration, on one Node. */
export async function runCorpus(corpus: Corpus): Promise<Row[]> {
  const attacks = readAttacks(corpus.folder).filter(({ name }) => corpus.only?.includes(name) ?? true)
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-attacks-')))
  fs.chmodSync(base, 0o755)
  const [temporary, working] = [path.join(base, 'temporary'), path.join(base, 'working')]
  const ground: Ground = { base, temporary, working, secret: makeSecret() }
  const previous = { temporary: process.env.TMPDIR, working: process.cwd() }
  const rows: Row[] = []
  try {
    for (const folder of [temporary, working]) fs.mkdirSync(folder, { mode: 0o755 })
    process.env.TMPDIR = temporary
    process.chdir(working)
    const waiting = grouped(attacks)
    const work = async (): Promise<void> => {
      for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
        const more = await runGroup(corpus, group, ground)
        corpus.onRows?.(more)
        rows.push(...more)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    for (const folder of [temporary, working]) {
      const left = fs.readdirSync(folder)
      if (left.length > 0) throw new Error(`something left ${left.join(', ')} in ${folder}`)
    }
  } finally {
    process.chdir(previous.working)
    if (previous.temporary === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = previous.temporary
    fs.rmSync(base, { recursive: true, force: true })
  }
  return rows.sort((left, right) => (left.attack < right.attack ? -1 : 1))
}

async function runGroup(corpus: Corpus, attacks: Attack[], { base, working, secret }: Ground): Promise<Row[]> {
  const place = fs.mkdtempSync(path.join(base, 'run-'))
  fs.chmodSync(place, 0o755)
  const project = path.join(place, 'project')
  const outside = path.join(place, 'outside')
  const temporary = path.join(place, 'temporary')
  const targets = new Map(attacks.map((attack) => [attack.name, new Target(attack, outside, secret)]))
  try {
    for (const folder of [project, outside, temporary]) fs.mkdirSync(folder, { mode: 0o755 })
    for (const name of ['outside.ts', 'neighbour.ts']) {
      fs.copyFileSync(path.join(corpus.folder, name), path.join(project, name))
    }
    for (const { name, needs } of attacks) {
      fs.mkdirSync(path.join(project, name))
      fs.copyFileSync(path.join(corpus.folder, name, 'attack.ts'), path.join(project, name, 'attack.ts'))
      if (needs?.includes('project-link')) fs.symlinkSync(path.join(outside, name), path.join(project, name, 'link'))
      await targetOf(targets, name).open(corpus.library)
    }
    const projectBefore = describeTree(project)
    const fileOf = (name: string): string => path.join(project, name, 'attack.ts')
    const output: string[] = []
    const facts = Object.fromEntries(attacks.map(({ name }) => [name, targetOf(targets, name).facts]))
    const files = [path.join(project, 'neighbour.ts'), ...attacks.map(({ name }) => fileOf(name))]
    const result = await corpus.run(files, project, {
      timeoutMs: RUN_TIMEOUT_MS,
      ...attacks[0]?.options,
      nodePath: corpus.nodePath,
      env: { ATTACK_OUTSIDE: JSON.stringify(facts), TMPDIR: temporary },
      onOutput: (line: string) => {
        // A flood is an attack too: what is kept of it is bounded.
        if (output.length < 1000) output.push(line.slice(0, 1000))
      },
    })
    await settle()
    const projectChanges = difference(projectBefore, describeTree(project))
    const left = fs.readdirSync(temporary)
    const ended = result.errors.find(({ message }) => message.startsWith('the process ended before'))
    return attacks.map((attack) => {
      const inProject = projectChanges.filter((line) => isOf(line, attack) || !attacks.some((each) => isOf(line, each)))
      const evidence = [...targetOf(targets, attack.name).evidence(), ...inProject]
      // What lies in the folder for temporary files is everyone's, unless it has a name on it.
      const named = (name: string): boolean => attacks.some((each) => name.startsWith(each.name))
      const itsOwn = left.filter((name) => name.startsWith(attack.name) || !named(name))
      evidence.push(...itsOwn.map((name) => `left in the temporary folder: ${name}`))
      evidence.push(...leftBehind(attack, working))
      const own = result.errors.find(({ file }) => file === fileOf(attack.name))
      const whole = result.errors.find(({ file }) => file === '')
      const told = own?.message ?? whole?.message ?? ''
      const text = attacks.length === 1 ? `${told}\n${output.join('\n')}` : told
      if (text.includes(secret)) evidence.push('the secret came out')
      const notRun = own === undefined && ended !== undefined && attacks.length > 1
      const actual = notRun
        ? `ends by its neighbour ${path.basename(path.dirname(ended.file))}, before it was run`
        : judge(evidence, own, whole, result.entities.has('neighbour'))
      const expected = expectedOutcomes(attack, corpus.configuration, corpus.nodeVersion)
      return {
        attack: attack.name,
        area: attack.area,
        configuration: corpus.configuration,
        node: corpus.nodeVersion,
        expected,
        actual,
        holds: expected.some((each) => matches(actual, each)),
        detail: [...evidence, ...((own ?? whole) ? [told] : [])].join('; ').slice(0, 600),
      }
    })
  } finally {
    for (const target of targets.values()) await target.close()
    fs.rmSync(place, { recursive: true, force: true })
  }
}

/** Takes away what an attack left in the working directory; only one at a time leaves files of that name. */
function leftBehind({ leaves }: Attack, working: string): string[] {
  if (leaves === undefined) return []
  const left = fs.readdirSync(working).filter((name) => name.startsWith(leaves))
  for (const name of left) fs.rmSync(path.join(working, name))
  return left.map((name) => `left in the working directory: ${name}`)
}

function targetOf(targets: Map<string, Target>, name: string): Target {
  const target = targets.get(name)
  if (target === undefined) throw new Error(`no target was made for ${name}`)
  return target
}

function judge(
  evidence: string[],
  own: RunError | undefined,
  whole: RunError | undefined,
  neighbour: boolean,
): Outcome {
  if (evidence.length > 0 || own?.message.startsWith('ESCAPED: ')) return 'escapes'
  if (own === undefined) {
    if (whole !== undefined) return `ends ${whole.message.slice(0, 300)}`
    return neighbour ? 'survives' : 'ends without a word, and the neighbour is lost'
  }
  if (!neighbour) return `ends ${own.message.slice(0, 300)}`
  if (own.message.startsWith('METADATA: ')) return 'metadata'
  if (own.message.startsWith('NOTHING: ')) return 'nothing'
  if (own.type === 'permission')
    return `denied ${/^sandbox denied (.*?)(?: \(.*|): /s.exec(own.message)?.[1] ?? own.message}`
  return `fails ${own.message.slice(0, 300)}`
}
