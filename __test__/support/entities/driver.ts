// Runs a small driver in a child as sallyport's launcher would: the trusted modules bundled before the project, a result
// pipe at descriptor 3, a control pipe at 4 where the driver is entered by `boot.mjs`. The project's part is a body of
// JavaScript that runs after everything was captured. What arrives on every way out is handed back as it came.

import esbuild from 'esbuild'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

import type { Workspace } from '../workspace'
import { runtimePath } from './runtime'

export interface DriverOptions {
  workspace: Workspace
  /** Runs between capture and sending; may be asynchronous. */
  project?: string
  /** Runs after the project; by default it sends `{ kind: 'value', value }` for a `value` that the project sets. */
  ending?: string
  /** Runs before everything else, with nothing captured yet. */
  preparation?: string
  /** How the result leaves. */
  way?: 'descriptor' | 'message' | 'output'
  nodeOptions?: string[]
  program?: string
  /** Begin by `boot.mjs` and a word on the control pipe, or by closing it. */
  boot?: 'go' | 'give up'
  environment?: Record<string, string>
}

export interface DriverResult {
  /** All bytes of the result pipe. */
  bytes: Buffer
  /** The payload of the one frame; undefined where there was none. */
  payload: any
  messages: any[]
  output: string
  errorOutput: string
  exitCode: number | null
  signal: NodeJS.Signals | null
}

let drivers = 0

/** What boot.mjs has loaded by then; a second channel would find no descriptor. */
const RUNTIME_BESIDE = './runtime.mjs'

function bundle(folder: string, text: string): string {
  const script = path.join(folder, 'child.mjs')
  esbuild.buildSync({
    stdin: { contents: text, resolveDir: folder, loader: 'js' },
    bundle: true,
    keepNames: true,
    format: 'esm',
    platform: 'node',
    outfile: script,
    logLevel: 'error',
    external: [RUNTIME_BESIDE],
    banner: {
      js: `import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);`,
    },
  })
  return script
}

/** The payload of a frame that is exactly as long as it says. */
export function payloadOf(bytes: Buffer): any {
  if (bytes.length === 0) return undefined
  const length = bytes.readUInt32BE(0)
  if (bytes.length !== length + 4) throw new Error(`the frame says ${length} bytes and has ${bytes.length - 4}`)
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(4)))
}

export async function runDriver(options: DriverOptions): Promise<DriverResult> {
  const { workspace, project = '', way = 'descriptor', nodeOptions = [], preparation = '', environment = {} } = options
  const { ending = `channel.send({ kind: 'value', value })` } = options
  const folder = path.join(workspace.base, `driver-${(drivers += 1)}`)
  fs.mkdirSync(folder)
  fs.writeFileSync(path.join(folder, 'project.mjs'), `import fs from 'node:fs'\n${project}\nexport {}\n`)
  const modules = ['collect', 'resolve', 'entity-wire-codec', 'provenance', 'child-errors', 'data']
  const text = `
    ${preparation}
    import { createChannel } from ${JSON.stringify(options.boot === undefined ? runtimePath('channel.js') : RUNTIME_BESIDE)}
    ${modules.map((name, index) => `import * as module${index} from ${JSON.stringify(runtimePath(`${name}.js`))}`).join('\n')}
    const { collectEntities, resolveAttrRefs, encodeEntitySet, getProvenance, classifyChildError, readData } =
      { ${modules.map((_name, index) => `...module${index}`).join(', ')} }
    const channel = createChannel()
    globalThis.value = null
    globalThis.channelOfTest = channel
    channel.onIncomplete(() => ({ kind: 'incomplete' }))
    await import(${JSON.stringify(path.join(folder, 'project.mjs'))})
    ${ending}
  `
  const script = bundle(folder, text)
  const boot = path.join(folder, 'boot.mjs')
  if (options.boot !== undefined) {
    fs.copyFileSync(runtimePath('boot.mjs'), boot)
    fs.copyFileSync(runtimePath('prebuilt.mjs'), path.join(folder, 'runtime.mjs'))
  }

  const descriptors: ('ignore' | 'pipe' | 'ipc')[] = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe']
  if (way === 'message') descriptors[3] = 'ipc'
  const child = spawn(
    options.program ?? process.execPath,
    [...nodeOptions, options.boot === undefined ? script : boot],
    {
      stdio: descriptors,
      env: {
        PATH: process.env.PATH,
        ...(way === 'descriptor' ? { SALLYPORT_RESULT_FD: '3' } : {}),
        ...(options.boot === undefined ? {} : { SALLYPORT_CONTROL_FD: '4' }),
        ...environment,
      },
    },
  )
  const messages: any[] = []
  child.on('message', (message) => messages.push(message))
  const control = child.stdio[4] as NodeJS.WritableStream
  // Where the child is not started by boot.mjs nobody reads this pipe.
  control.on('error', () => undefined)
  if (options.boot === 'go') control.write('g')
  else control.end()

  const collected = [1, 2, ...(way === 'message' ? [] : [3])].map((descriptor) => {
    const chunks: Buffer[] = []
    child.stdio[descriptor]?.on('data', (chunk: Buffer) => chunks.push(chunk))
    return chunks
  })
  const { exitCode, signal } = await new Promise<Pick<DriverResult, 'exitCode' | 'signal'>>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, by) => resolve({ exitCode: code, signal: by }))
  })
  const [output, errorOutput, bytes] = [0, 1, 2].map((index) => Buffer.concat(collected[index] ?? [])) as [
    Buffer,
    Buffer,
    Buffer,
  ]
  return {
    bytes,
    payload: payloadOf(bytes),
    messages,
    output: output.toString(),
    errorOutput: errorOutput.toString(),
    exitCode,
    signal,
  }
}
