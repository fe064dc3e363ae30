// The other side of the attacks: what honest project source does for a living still works where the kernel holds it in,
// on every supported Node. One run for each Node imports all the jobs; each declares a resource whose props say what it
// found, so that a job that goes wrong is a wrong value or an error with its file's name. What does not work there says
// so, and is listed last.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { runFallbackFilesSandboxed } from '../index.mjs'
import { rounds } from './support/effort'
import { packageRoot } from './support/ordinary-user'
import { bundlesIn, declaring, propsOf, sandboxProject, temporary, type SandboxProject } from './support/sandbox'

interface SupportedNode {
  version: string
  program: string
}

async function supportedNodes(): Promise<SupportedNode[]> {
  const script = path.join(packageRoot, 'scripts', 'install-nodes.mjs')
  const { installNodes } = (await import(script)) as { installNodes: () => SupportedNode[] }
  return installNodes()
}

const nodes = rounds(1, 0)
  ? await supportedNodes()
  : [{ version: process.version, program: fs.realpathSync(process.execPath) }]

interface Job {
  statements: string
  /** An expression for the props. */
  props: string
  expected: Record<string, unknown>
}

const jobs: Record<string, Job> = {
  locales: {
    statements: `
      const tags = ['ar-EG', 'bn', 'cs', 'da', 'de-CH', 'el', 'en-IN', 'es-MX', 'fa', 'fi', 'fr-CA', 'he', 'hi', 'hu',
        'id', 'is', 'it', 'ja', 'ka', 'ko', 'lt', 'ms', 'nb', 'nl', 'pl', 'pt-BR', 'ro', 'ru', 'sr-Latn', 'sv', 'sw',
        'ta', 'th', 'tr', 'uk', 'ur', 'vi', 'zh-Hans', 'zh-Hant-HK', 'zu']
      const supported = Intl.NumberFormat.supportedLocalesOf(tags).length
      const numbers = new Set(tags.map((tag) => new Intl.NumberFormat(tag).format(1234567.89))).size
      const dates = new Set(tags.map((tag) => new Intl.DateTimeFormat(tag, { dateStyle: 'full', timeZone: 'UTC' }).format(0))).size
    `,
    props: `{
      supported, severalNumbers: numbers > 5, severalDates: dates > 35,
      german: new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' }).format(1234.5).replace(/\\s/g, ' '),
      tokyo: new Intl.DateTimeFormat('en-GB', { timeZone: 'Asia/Tokyo', timeStyle: 'short' }).format(0),
      newYork: new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', timeStyle: 'short' }).format(0),
      sorted: ['z', 'ä', 'a'].sort(new Intl.Collator('sv').compare).join(''),
      list: new Intl.ListFormat('en').format(['a', 'b', 'c']),
      ago: new Intl.RelativeTimeFormat('en').format(-3, 'day'),
      words: [...new Intl.Segmenter('ja', { granularity: 'word' }).segment('今日は良い天気')].length > 2,
      upper: 'ı'.toLocaleUpperCase('tr'), normal: 'e\\u0301'.normalize('NFC').length,
      plural: new Intl.PluralRules('ar').select(3), named: new Intl.DisplayNames('de', { type: 'region' }).of('JP'),
    }`,
    expected: {
      supported: 40,
      severalNumbers: true,
      severalDates: true,
      german: '1.234,50 €',
      tokyo: '09:00',
      newYork: '19:00',
      sorted: 'azä',
      list: 'a, b, and c',
      ago: '3 days ago',
      words: true,
      upper: 'I',
      normal: 1,
      plural: 'few',
      named: 'Japan',
    },
  },
  texts: {
    statements: ``,
    props: `{
      shiftJis: new TextDecoder('shift_jis').decode(new Uint8Array([0x93, 0xfa, 0x96, 0x7b])),
      windows1251: new TextDecoder('windows-1251').decode(new Uint8Array([0xcf, 0xf0, 0xe8])),
      gb18030: new TextDecoder('gb18030').decode(new Uint8Array([0xc4, 0xe3])),
      latin1: new TextDecoder('latin1').decode(new Uint8Array([0xe9])),
      utf16: new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0])),
      bytes: new TextEncoder().encode('é€').length,
      address: new URL('../b?c=d#e', 'https://example.com/a/').href,
      unicodeHost: new URL('https://bücher.example').hostname,
      query: String(new URLSearchParams({ a: 'b c', d: 'é' })),
    }`,
    expected: {
      shiftJis: '日本',
      windows1251: 'При',
      gb18030: '你',
      latin1: 'é',
      utf16: 'a',
      bytes: 5,
      address: 'https://example.com/b?c=d#e',
      unicodeHost: 'xn--bcher-kva.example',
      query: 'a=b+c&d=%C3%A9',
    },
  },
  cryptography: {
    statements: `
      import crypto from 'node:crypto'
      import { promisify } from 'node:util'
      const data = Buffer.from('data')
      const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 })
      const elliptic = await promisify(crypto.generateKeyPair)('ed25519')
      const key = crypto.randomBytes(32)
      const nonce = crypto.randomBytes(12)
      const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce)
      const secret = Buffer.concat([cipher.update(data), cipher.final()])
      const decipher = crypto.createDecipheriv('aes-256-gcm', key, nonce).setAuthTag(cipher.getAuthTag())
      const subtle = await crypto.webcrypto.subtle.digest('SHA-256', data)
    `,
    props: `{
      random: new Set(Array.from({ length: 100 }, () => crypto.randomBytes(16).toString('hex'))).size,
      uuid: crypto.randomUUID().length,
      sha256: crypto.createHash('sha256').update(data).digest('hex').slice(0, 16),
      hashes: crypto.getHashes().length > 20,
      same: Buffer.from(subtle).equals(crypto.createHash('sha256').update(data).digest()),
      rsa: crypto.verify('sha256', data, rsa.publicKey, crypto.sign('sha256', data, rsa.privateKey)),
      elliptic: crypto.verify(null, data, elliptic.publicKey, crypto.sign(null, data, elliptic.privateKey)),
      cipher: Buffer.concat([decipher.update(secret), decipher.final()]).toString(),
      scrypt: (await promisify(crypto.scrypt)('password', 'salt', 16)).length,
      derived: crypto.pbkdf2Sync('password', 'salt', 1000, 16, 'sha256').length,
      web: globalThis.crypto.getRandomValues(new Uint8Array(8)).length,
    }`,
    expected: {
      random: 100,
      uuid: 36,
      sha256: '3a6eb0790f39ac87',
      hashes: true,
      same: true,
      rsa: true,
      elliptic: true,
      cipher: 'data',
      scrypt: 16,
      derived: 16,
      web: 8,
    },
  },
  compression: {
    statements: `
      import zlib from 'node:zlib'
      import { promisify } from 'node:util'
      const text = 'the same again and again. '.repeat(10_000)
      const web = new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('gzip')))
    `,
    props: `{
      gzip: zlib.gunzipSync(zlib.gzipSync(text)).toString() === text,
      brotli: (await promisify(zlib.brotliDecompress)(await promisify(zlib.brotliCompress)(text))).toString() === text,
      small: zlib.deflateSync(text).length < 2000,
      web: zlib.gunzipSync(Buffer.from(await web.arrayBuffer())).toString() === text,
    }`,
    expected: { gzip: true, brotli: true, small: true, web: true },
  },
  webAssembly: {
    statements: `
      // (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
      const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3,
        97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11])
      const { instance } = await WebAssembly.instantiate(bytes)
      const add = instance.exports.add as (left: number, right: number) => number
      let sum = 0
      // Often enough for the compiler that makes it fast, which works on a thread of its own.
      for (let count = 0; count < 1_000_000; count += 1) sum = add(sum, 1)
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 16, shared: true })
      memory.grow(3)
    `,
    props: `{ valid: WebAssembly.validate(bytes), sum, pages: memory.buffer.byteLength / 65536 }`,
    expected: { valid: true, sum: 1_000_000, pages: 4 },
  },
  timers: {
    statements: `
      import promised from 'node:timers/promises'
      let ticks = 0
      for await (const _ of promised.setInterval(1)) if ((ticks += 1) === 3) break
      const order: string[] = []
      await new Promise<void>((resolve) => {
        setTimeout(() => { order.push('timeout'); resolve() }, 5)
        setImmediate(() => order.push('immediate'))
        process.nextTick(() => order.push('tick'))
        queueMicrotask(() => order.push('microtask'))
      })
      const signal = AbortSignal.timeout(1)
      // Its timer keeps no process alive.
      const kept = setInterval(() => undefined, 1000)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      clearInterval(kept)
      const waited = Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    `,
    props: `{ ticks, ticked: order.length, last: order.at(-1), slept: await promised.setTimeout(1, 'done'), aborted: signal.reason.name, waited }`,
    expected: { ticks: 3, ticked: 4, last: 'timeout', slept: 'done', aborted: 'TimeoutError', waited: 'timed-out' },
  },
  streams: {
    statements: `
      import { Readable, Transform } from 'node:stream'
      import { pipeline } from 'node:stream/promises'
      import { text } from 'node:stream/consumers'
      const chunks: string[] = []
      await pipeline(
        Readable.from(['a', 'b', 'c']),
        new Transform({ transform: (chunk, _encoding, done) => done(null, String(chunk).toUpperCase()) }),
        async (source) => { for await (const chunk of source) chunks.push(String(chunk)) },
      )
      const web = new ReadableStream({ start: (controller) => { controller.enqueue('x'); controller.close() } })
    `,
    props: `{ node: chunks.join(''), web: await text(web as any), blob: await new Blob(['a', 'b']).text(), data: await (await fetch('data:,fetched')).text() }`,
    expected: { node: 'ABC', web: 'x', blob: 'ab', data: 'fetched' },
  },
  messages: {
    statements: `
      const cloned = structuredClone(new Map<string, unknown>([['date', new Date(0)], ['set', new Set([1])], ['bytes', new Uint8Array(3)]]))
      const { port1, port2 } = new MessageChannel()
      const received = new Promise((resolve) => (port2.onmessage = ({ data }) => resolve(data)))
      port1.postMessage({ through: 'the channel' })
      const [sender, receiver] = [new BroadcastChannel('jobs'), new BroadcastChannel('jobs')]
      const heard = new Promise((resolve) => (receiver.onmessage = ({ data }: any) => resolve(data)))
      sender.postMessage('to all')
      const target = new EventTarget()
      let events = 0
      target.addEventListener('happened', () => (events += 1), { once: true })
      target.dispatchEvent(new Event('happened'))
    `,
    props: `{
      date: (cloned.get('date') as Date).toISOString(), set: (cloned.get('set') as Set<number>).size,
      channel: await received, broadcast: await heard, events,
    }`,
    expected: {
      date: '1970-01-01T00:00:00.000Z',
      set: 1,
      channel: { through: 'the channel' },
      broadcast: 'to all',
      events: 1,
    },
  },
  measuring: {
    statements: `
      import { monitorEventLoopDelay, performance as measured } from 'node:perf_hooks'
      import { AsyncLocalStorage } from 'node:async_hooks'
      import v8 from 'node:v8'
      performance.mark('begin')
      performance.measure('whole', 'begin')
      const delay = monitorEventLoopDelay({ resolution: 1 })
      delay.enable()
      await new Promise((resolve) => setTimeout(resolve, 5))
      delay.disable()
      const storage = new AsyncLocalStorage<string>()
    `,
    props: `{
      now: performance.now() > 0, same: measured === performance, entries: performance.getEntriesByType('measure').length,
      clock: typeof process.hrtime.bigint(), processor: process.cpuUsage().user > 0, used: process.resourceUsage().maxRSS > 0,
      heap: v8.getHeapStatistics().used_heap_size > 0, stored: storage.run('here', () => storage.getStore()),
      copied: v8.deserialize(v8.serialize({ a: [1] })),
    }`,
    expected: {
      now: true,
      same: true,
      entries: 1,
      clock: 'bigint',
      processor: true,
      used: true,
      heap: true,
      stored: 'here',
      copied: { a: [1] },
    },
  },
  projectFiles: {
    statements: `
      import fs from 'node:fs'
      import { text } from 'node:stream/consumers'
      const place = (name: string) => new URL('./data/' + name, import.meta.url)
      const handle = await fs.promises.open(place('a.txt'))
      const lines: string[] = []
      for await (const line of handle.readLines()) lines.push(line)
    `,
    props: `{
      sync: fs.readFileSync(place('a.txt'), 'utf8'), promised: (await fs.promises.readFile(place('b.txt'))).toString(), lines,
      stream: await text(fs.createReadStream(place('b.txt'))), blob: await (await fs.openAsBlob(place('b.txt'))).text(),
      listed: (await fs.promises.readdir(place(''), { recursive: true })).sort(), size: fs.statSync(place('a.txt')).size,
      real: fs.realpathSync(place('inner/../a.txt')).endsWith('data/a.txt'), missing: fs.existsSync(place('none')),
      opened: fs.opendirSync(place('inner')).readSync()?.name ?? null, link: fs.readFileSync(place('link.txt'), 'utf8'),
      data: (await import('./data/settings.json', { with: { type: 'json' } })).default,
    }`,
    expected: {
      sync: 'one\ntwo\n',
      promised: 'b',
      lines: ['one', 'two'],
      stream: 'b',
      blob: 'b',
      listed: ['a.txt', 'b.txt', 'inner', 'inner/c.txt', 'link.txt', 'settings.json'],
      size: 8,
      real: true,
      missing: false,
      opened: 'c.txt',
      link: 'one\ntwo\n',
      data: { deep: [1, 2] },
    },
  },
  system: {
    statements: `import os from 'node:os'`,
    props: `{
      host: os.hostname().length > 0, platform: process.platform, uptime: os.uptime() > 0, load: os.loadavg().length,
      parallel: os.availableParallelism() > 0, total: os.totalmem() > 0, free: os.freemem() > 0,
      temporary: os.tmpdir().length > 0, release: os.release().length > 0, here: process.cwd().length > 0,
      user: typeof process.getuid?.(), report: typeof process.report.getReport(),
    }`,
    expected: {
      host: true,
      platform: 'linux',
      uptime: true,
      load: 3,
      parallel: true,
      total: true,
      free: true,
      temporary: true,
      release: true,
      here: true,
      user: 'number',
      report: 'object',
    },
  },
  typescript: {
    statements: `
      import ts from 'typescript'
      import { fileURLToPath } from 'node:url'
      const transpiled = ts.transpileModule('const x: number = 1; export { x }', { compilerOptions: { module: ts.ModuleKind.CommonJS } })
      const checked = fileURLToPath(new URL('./data-typescript/checked.ts', import.meta.url))
      const program = ts.createProgram([checked], { noEmit: true, strict: true, types: [], lib: ['lib.es2022.d.ts'], target: ts.ScriptTarget.ES2022 })
      const diagnostics = ts.getPreEmitDiagnostics(program)
    `,
    props: `{
      transpiled: transpiled.outputText.includes('exports.x = x'),
      libraries: program.getSourceFiles().some(({ fileName }) => fileName.endsWith('lib.es2022.d.ts')),
      diagnostics: diagnostics.map(({ code, messageText }) => code + ': ' + ts.flattenDiagnosticMessageText(messageText, ' ')),
    }`,
    expected: {
      transpiled: true,
      libraries: true,
      diagnostics: ["2322: Type 'string' is not assignable to type 'number'."],
    },
  },
  packages: {
    statements: `
      import * as prettier from 'prettier/standalone'
      import babel from 'prettier/plugins/babel'
      import estree from 'prettier/plugins/estree'
      import * as yaml from 'js-yaml'
      import semver from 'semver'
      import fc from 'fast-check'
      import postcss from 'postcss'
      import iconv from 'iconv-lite'
      import picomatch from 'picomatch'
      import { groupBy } from 'es-toolkit'
      import { expect as chaiExpect } from 'chai'
      chaiExpect({ a: [1] }).to.deep.equal({ a: [1] })
      fc.assert(fc.property(fc.integer(), fc.integer(), (left, right) => left + right === right + left))
    `,
    props: `{
      formatted: await prettier.format('const  a={b:1}', { parser: 'babel', plugins: [babel, estree as any] }),
      yaml: yaml.load('a: [1, b]'), satisfied: semver.satisfies('1.4.2', '^1.2.0'),
      css: postcss.parse('a { color: red }').first?.type, encoded: iconv.encode('日本', 'shift_jis').length,
      matched: picomatch('**/*.ts')('a/b.ts'), grouped: Object.keys(groupBy([1, 2, 3], (each) => (each % 2 ? 'odd' : 'even'))).sort(),
    }`,
    expected: {
      formatted: 'const a = { b: 1 };\n',
      yaml: { a: [1, 'b'] },
      satisfied: true,
      css: 'rule',
      encoded: 4,
      matched: true,
      grouped: ['even', 'odd'],
    },
  },
  // What cannot be had under the kernel's layers, and how it says so: each by an error, none by a hang or a crash.
  refused: {
    statements: `
      import fs from 'node:fs'
      import os from 'node:os'
      const codeOf = (operation: () => unknown) => {
        try { operation(); return 'works' } catch (error: any) { return error.info?.code ?? error.code }
      }
    `,
    props: `{
      watching: codeOf(() => fs.watch(new URL('./data', import.meta.url)).close()),
      user: codeOf(() => os.userInfo()) !== 'works', interfaces: codeOf(() => os.networkInterfaces()) !== 'works',
      // Both are told by /proc.
      memory: codeOf(() => process.memoryUsage()), processors: os.cpus().length,
    }`,
    expected: { watching: 'EPERM', user: true, interfaces: true, memory: 'EACCES', processors: 0 },
  },
}

/** Packages of the test's own installation, copied into the project: only what lies in it may be bundled. */
const PACKAGES = [
  ...['prettier', 'js-yaml', 'argparse', 'semver', 'fast-check', 'pure-rand', 'postcss', 'nanoid', 'picocolors'],
  ...['source-map-js', 'iconv-lite', 'safer-buffer', 'picomatch', 'es-toolkit', 'chai'],
]

let made: SandboxProject | undefined

/** Made once: the packages are some thousand files. */
function projectOfJobs(): SandboxProject {
  if (made) return made
  const files = {
    'data/a.txt': 'one\ntwo\n',
    'data/b.txt': 'b',
    'data/inner/c.txt': 'c',
    'data/link.txt': { link: 'a.txt' },
    'data/settings.json': { json: { deep: [1, 2] } },
    'data-typescript/checked.ts': `export const wrong: number = 'text'\nexport const right: string[] = ['a'.at(-1) ?? '']\n`,
    ...Object.fromEntries(
      Object.entries(jobs).map(([name, { statements, props }]) => [`${name}.ts`, declaring(name, props, statements)]),
    ),
  }
  const project = sandboxProject(files, { keep: true })
  for (const name of PACKAGES) {
    fs.cpSync(path.join(packageRoot, 'node_modules', name), path.join(project.root, 'node_modules', name), {
      recursive: true,
    })
  }
  made = project
  return project
}

describe.each(nodes)('with Node $version as the child, held by the kernel', ({ program }) => {
  it('honest work is done, and what cannot be is refused with an error', async () => {
    const project = projectOfJobs()
    const result = await project.run(
      Object.keys(jobs).map((name) => `${name}.ts`),
      { isolation: 'kernel', nodePath: program, toolRoot: packageRoot },
    )
    expect(result.isolation.level).toBe('kernel')
    expect(result.errors.map(({ file, message }) => `${path.basename(file)}: ${message}`)).toEqual([])
    const found = Object.fromEntries(Object.keys(jobs).map((name) => [name, propsOf(result, name)]))
    expect(found).toEqual(Object.fromEntries(Object.entries(jobs).map(([name, { expected }]) => [name, expected])))
  })

  it('the examples run, and the hostile ones are refused, each by its file', async () => {
    const options = { isolation: 'kernel', nodePath: program, onOutput: () => undefined } as const
    const filesOf = (root: string) =>
      fs
        .readdirSync(root)
        .filter((name) => /^(?!.*\.config\.ts$).*\.ts$/.test(name))
        .map((name) => path.join(root, name))
    const examples = path.join(packageRoot, 'examples', 'project')
    const honest = await runFallbackFilesSandboxed(filesOf(examples), examples, options)
    expect(honest.errors).toEqual([])
    expect(honest.entities.size).toBeGreaterThan(2)
    const hostileRoot = path.join(packageRoot, 'examples', 'hostile')
    const hostile = await runFallbackFilesSandboxed(filesOf(hostileRoot), hostileRoot, options)
    const refused = filesOf(hostileRoot).filter((file) => path.basename(file) !== 'harmless.ts')
    expect(hostile.errors.map(({ file, type }) => [file, type]).sort()).toEqual(
      refused.map((file) => [file, 'permission']).sort(),
    )
    expect(bundlesIn(temporary)).toEqual([])
  })
})
