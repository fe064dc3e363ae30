// Runs the body of a script in a Node of its own: for tests that end the process, limit it, or need another user.
// The body sees `sallyport`, `fs`, `path`, `os`, `input` and `send(value)`; what it sends arrives as `messages`.
// A body that throws ends with exit code 1 and its error in `errorOutput`; nothing is hidden.

import { spawn, type ChildProcess } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

import { ordinaryUserInstallation, packageRoot } from './ordinary-user'
import type { Workspace } from './workspace'

export interface ChildOptions {
  /** A folder of the test; the script is written into it. */
  workspace: Workspace
  /** Plain data for the body. */
  input?: unknown
  /** As an ordinary user (see `ordinary-user.ts`). */
  asOrdinaryUser?: boolean
  /** Shell commands before Node takes the shell's place, such as `ulimit -n 256`. */
  shell?: string
  /** A program that starts the shell, such as `['unshare', '--mount']`. */
  through?: string[]
  nodeOptions?: string[]
}

// The bodies decide what they send.
export type Message = any

export interface ChildResult {
  messages: Message[]
  exitCode: number | null
  signal: NodeJS.Signals | null
  errorOutput: string
}

export interface RunningChild {
  process: ChildProcess
  /** The first message; rejects where the child ends without one. */
  firstMessage: Promise<Message>
  finished: Promise<ChildResult>
}

let scripts = 0

export function startChild(body: string, options: ChildOptions): RunningChild {
  const { workspace, input = null, asOrdinaryUser = false, shell = ':', through = [], nodeOptions = [] } = options
  const {
    node,
    identity,
    packageRoot: packageFolder,
  } = asOrdinaryUser ? ordinaryUserInstallation() : { node: process.execPath, identity: {}, packageRoot }
  const script = path.join(workspace.base, `child-${(scripts += 1)}.mjs`)
  const packageUrl = JSON.stringify(pathToFileURL(path.join(packageFolder, 'index.mjs')).href)
  fs.writeFileSync(
    script,
    `import * as sallyport from ${packageUrl}
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
const packageFolder = ${JSON.stringify(packageFolder)}
const input = JSON.parse(process.argv[2])
const send = (value) => fs.writeSync(1, JSON.stringify(value) + '\\n')
const describeError = (error) => ({ ...error, name: error.name, message: error.message, code: error.code })
${body}
`,
  )
  fs.chmodSync(script, 0o644)
  const shellCommand = ['sh', '-c', `${shell} && exec "$0" "$@"`, node, ...nodeOptions, script, JSON.stringify(input)]
  const [program = 'sh', ...programArguments] = [...through, ...shellCommand]
  const child = spawn(program, programArguments, {
    cwd: workspace.base,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
    ...identity,
  })
  return follow(child)
}

function follow(child: ChildProcess): RunningChild {
  let output = ''
  let errorOutput = ''
  let resolveFirst: (message: Message) => void
  let rejectFirst: (error: Error) => void
  const firstMessage = new Promise<Message>((resolve, reject) => {
    resolveFirst = resolve
    rejectFirst = reject
  })
  // A test that only wants the end must not fail for a first message that never came.
  firstMessage.catch(() => undefined)
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    const end = output.indexOf('\n')
    if (end >= 0) resolveFirst(JSON.parse(output.slice(0, end)))
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    errorOutput += chunk
  })
  const finished = new Promise<ChildResult>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exitCode, signal) => {
      const messages = output
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Message)
      rejectFirst(new Error(`the child ended (${exitCode ?? signal}) without a message: ${errorOutput}`))
      resolve({ messages, exitCode, signal, errorOutput })
    })
  })
  return { process: child, firstMessage, finished }
}

/** Runs a body to its end and gives what it sent; throws where it did not end with exit code 0. */
export async function runChild(body: string, options: ChildOptions): Promise<Message[]> {
  const result = await startChild(body, options).finished
  if (result.exitCode !== 0) {
    throw new Error(`the child ended with ${result.exitCode ?? result.signal}: ${result.errorOutput}`)
  }
  return result.messages
}
