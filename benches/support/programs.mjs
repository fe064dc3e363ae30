// Runs the programs that sallyport is measured against. One that is missing or fails ends the benchmark: its time would
// mean nothing.

import { spawn } from 'node:child_process'
import { performance } from 'node:perf_hooks'

/**
 * Runs a program to its end and gives the milliseconds it took, its start included; what it prints is thrown away. Its
 * environment is this process's, or the one given.
 */
export function timeProgram(program, programArguments, env = process.env) {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const child = spawn(program, programArguments, { env, stdio: ['ignore', 'ignore', 'inherit'] })
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (code === 0) resolve(performance.now() - start)
      else reject(new Error(`benchmark: ${program} ended with ${signal ?? code}`))
    })
  })
}

/** Runs an operation and gives its milliseconds and its value. */
export async function timeOperation(operation) {
  const start = performance.now()
  const value = await operation()
  return { value, milliseconds: performance.now() - start }
}

/** Runs a Node script of this folder in a process of its own and gives the JSON that it prints. */
export function runScript(script, scriptArguments) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...scriptArguments], { stdio: ['ignore', 'pipe', 'inherit'] })
    const chunks = []
    child.stdout.on('data', (chunk) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')))
      else reject(new Error(`benchmark: ${script} ended with ${signal ?? code}`))
    })
  })
}
