// The package and a Node that an ordinary user can load, wherever the clone is: a clone below a folder of mode 0700
// cannot be read by anyone else, so as root both are copied into a folder that can. Without root this process is an
// ordinary user already, and uses the clone as it is. Errors of the system are thrown.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'

import { isRoot, removeTree } from './workspace'

/** `nobody` on every distribution; nothing on the machine belongs to it. */
export const ORDINARY_USER = 65534

export const packageRoot = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..')

export interface Installation {
  /** The folder with `index.js` in it. */
  packageRoot: string
  /** The Node program. */
  node: string
  /** Given to `spawn` as they are: empty where this process is an ordinary user already. */
  identity: { uid?: number; gid?: number }
}

/** Everyone may read and enter each folder above it, and execute the file itself. */
function isReachableByEveryone(program: string): boolean {
  if ((fs.statSync(program).mode & 0o005) !== 0o005) return false
  for (let folder = path.dirname(program); ; folder = path.dirname(folder)) {
    if ((fs.statSync(folder).mode & 0o001) === 0) return false
    if (folder === path.dirname(folder)) return true
  }
}

let installation: Installation | undefined

afterAll(() => {
  if (installation && isRoot) removeTree(installation.packageRoot)
  installation = undefined
})

/** The installation for an ordinary user, made once per test file and removed after it. */
export function ordinaryUserInstallation(): Installation {
  if (!isRoot) return { packageRoot, node: process.execPath, identity: {} }
  if (installation) return installation
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-package-'))
  for (const name of fs.readdirSync(packageRoot)) {
    if (/^(index\.m?js|js|runtime|bin|binding\.cjs|package\.json|sallyport-launch|.*\.node)$/.test(name)) {
      fs.cpSync(path.join(packageRoot, name), path.join(copy, name), { recursive: true })
    }
  }
  for (const name of ['esbuild', '@esbuild']) {
    fs.cpSync(path.join(packageRoot, 'node_modules', name), path.join(copy, 'node_modules', name), { recursive: true })
  }
  let node = fs.realpathSync(process.execPath)
  if (!isReachableByEveryone(node)) {
    fs.copyFileSync(node, path.join(copy, 'node'))
    node = path.join(copy, 'node')
    fs.chmodSync(node, 0o755)
  }
  makeReadable(copy)
  installation = { packageRoot: copy, node, identity: { uid: ORDINARY_USER, gid: ORDINARY_USER } }
  return installation
}

function makeReadable(root: string): void {
  fs.chmodSync(root, 0o755)
  for (const entry of fs.readdirSync(root, { withFileTypes: true })) {
    const absolute = path.join(root, entry.name)
    if (entry.isDirectory()) makeReadable(absolute)
    else fs.chmodSync(absolute, fs.statSync(absolute).mode | 0o444)
  }
}
