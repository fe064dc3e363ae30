// Throw-away projects for the tests of bundling and of sandboxed runs: files, packages and workspaces in a folder of
// their own, removed after each test (or after the file, for `beforeAll`), and a driver that reports what each import
// gave. Errors of the system are thrown as they are.

import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach } from 'vitest'

import { removeTree } from './workspace'

export const packageRoot = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..')

/** Paths of trusted modules, of which bundling looks at the place only. */
export interface TrustedModules {
  collect: string
  resolve: string
  entityWireCodec: string
  provenance: string
  params?: string
  childErrors?: string
}

export interface BundleOptions {
  buildRoot?: string
  readRoots?: string[]
  modules?: TrustedModules
  toolRoot?: string
  tempPrefix?: string
  signal?: AbortSignal
}

interface Bundling {
  bundleDriver(
    driverSource: string,
    options?: BundleOptions,
  ): Promise<{
    bundlePath: string
    bundleDir: string
    externalReadPaths: string[]
    durationMs: number
    bytes: number
  }>
  buildBundle(request: BundleOptions & { driverSource: string; bundleDir: string }): Promise<{
    bundlePath: string
    externalReadPaths: string[]
    fileErrors: { file: string; message: string; type: string; line?: number; column?: number }[]
  }>
  resolveExternalPackages(options: BundleOptions): Promise<{
    packages: { name: string; path: string }[]
    readPaths: string[]
  }>
}

/** The half of the package that has no declarations, as Node loads it. */
export const { bundleDriver, buildBundle, resolveExternalPackages } = createRequire(import.meta.url)(
  '../../js/bundle.js',
) as Bundling

/** Text by relative path; an object is written as JSON, `link` makes a symbolic link. */
export type ProjectFiles = Record<string, string | Buffer | { link: string } | { json: unknown }>

export interface Project {
  /** Holds everything; canonical, mode 0755. */
  base: string
  /** The build root. */
  root: string
  /** The absolute path of a file of the project; it need not exist. */
  file(relativePath: string): string
  /** Writes more files, by paths relative to `base`. */
  write(files: ProjectFiles): void
}

const openBases: string[] = []
const keptBases: string[] = []

afterEach(() => {
  for (const base of openBases.splice(0)) removeTree(base)
})
afterAll(() => {
  for (const base of keptBases.splice(0)) removeTree(base)
})

export function writeFiles(base: string, files: ProjectFiles): void {
  for (const [relativePath, content] of Object.entries(files)) {
    const absolute = path.join(base, relativePath)
    fs.mkdirSync(path.dirname(absolute), { recursive: true })
    if (typeof content === 'string' || Buffer.isBuffer(content)) fs.writeFileSync(absolute, content)
    else if ('link' in content) fs.symlinkSync(content.link, absolute)
    else fs.writeFileSync(absolute, JSON.stringify(content.json))
  }
}

/**
 * A fresh project. Paths of `files` are relative to the build root; `around` holds what is outside it, relative to
 * `base`. `rootPath` is the build root, relative to `base`; `keep` leaves the project until the test file is done.
 */
export function createProject(
  files: ProjectFiles,
  {
    around = {},
    rootPath = 'project',
    keep = false,
  }: { around?: ProjectFiles; rootPath?: string; keep?: boolean } = {},
): Project {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'sallyport-project-')))
  ;(keep ? keptBases : openBases).push(base)
  fs.chmodSync(base, 0o755)
  const root = path.join(base, rootPath)
  fs.mkdirSync(root, { recursive: true })
  writeFiles(base, around)
  writeFiles(root, files)
  return {
    base,
    root,
    file: (relativePath) => path.join(root, relativePath),
    write: (more) => writeFiles(base, more),
  }
}

/** The files of a package in `node_modules`: `index.js` with this text, and a manifest. */
export function packageFiles(name: string, text: string, manifest: object = {}, folder = 'node_modules'): ProjectFiles {
  return {
    [`${folder}/${name}/package.json`]: { json: { name, version: '1.0.0', main: 'index.js', ...manifest } },
    [`${folder}/${name}/index.js`]: text,
  }
}

/** What a driver of {@link reportingDriver} found for one file. */
export interface ImportReport {
  exports?: any
  error?: {
    name: string
    message: string
    code?: string
    permission?: string
    resource?: string
    file?: string
    line?: number
    column?: number
  }
}

/** A driver that imports each file by a literal dynamic import and prints, as JSON, its exports or its error. */
export function reportingDriver(files: readonly string[]): string {
  const steps = files.map(
    (file) => `
    try {
      reports.push({ exports: { ...(await import(${JSON.stringify(file)})) } })
    } catch (error) {
      const { name, message, code, permission, resource, file, line, column } = error
      reports.push({ error: { name, message, code, permission, resource, file, line, column } })
    }`,
  )
  return `
    const reports: unknown[] = []
    ${steps.join('\n')}
    console.log(JSON.stringify(reports, (key, value) => (typeof value === 'function' ? '[function]' : value)))
  `
}

/** Node's switches for a child that may read these directories and nothing else, for the Node that runs the tests. */
export function permissionSwitches(readable: readonly string[]): string[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const experimental = major < 22 || (major === 22 && minor < 13) || (major === 23 && minor < 5)
  return [
    experimental ? '--experimental-permission' : '--permission',
    '--no-warnings',
    ...readable.map((each) => `--allow-fs-read=${each}`),
  ]
}

/** Runs a program of Node to its end and gives what it wrote to stdout; rejects where it did not end with 0. */
export function runNode(nodeArguments: readonly string[], options: { cwd?: string } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { ...options, env: { PATH: process.env.PATH }, maxBuffer: 64 * 1024 ** 2 }
    execFile(process.execPath, [...nodeArguments], settings, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stderr}`))
      else resolve(stdout)
    })
  })
}

/**
 * Bundles a reporting driver for the files (relative to the build root, or absolute), runs it under Node's permission
 * switch as a sandboxed run would, and gives one report for each file. The bundle is removed.
 */
export async function bundleAndRun(
  project: Project,
  files: readonly string[],
  { permission = true, contained = true, ...options }: RunOptions = {},
): Promise<ImportReport[]> {
  const absolute = files.map((file) => path.resolve(project.root, file))
  const bundled = await bundleDriver(reportingDriver(absolute), {
    ...(contained ? { buildRoot: project.root } : {}),
    ...options,
  })
  try {
    const readable = [bundled.bundleDir, project.root, ...(options.readRoots ?? []), ...bundled.externalReadPaths]
    const output = await runNode([...(permission ? permissionSwitches(readable) : []), bundled.bundlePath])
    return JSON.parse(output) as ImportReport[]
  } finally {
    removeTree(bundled.bundleDir)
  }
}

export interface RunOptions {
  /** Under Node's permission switch, which is the default. */
  permission?: boolean
  /** With `buildRoot`, which is the default. */
  contained?: boolean
  readRoots?: string[]
  modules?: TrustedModules
  toolRoot?: string
}
