// The packages as they are published: packed by `npm run release:pack`, laid out as npm lays them out, and used from
// there, without anything of this repository but esbuild.

import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { packageRoot } from './support/ordinary-user'
import { createWorkspace, removeTree } from './support/workspace'

const PLATFORM = 'sallyport-linux-x64-gnu'
const { base } = createWorkspace({ keep: true })
afterAll(() => removeTree(base))

const modules = path.join(base, 'project', 'node_modules')
const installed = (...parts: string[]) => path.join(modules, ...parts)

function unpack(tarball: string, name: string) {
  fs.mkdirSync(installed(name), { recursive: true })
  execFileSync('tar', ['xzf', tarball, '-C', installed(name), '--strip-components=1'])
}

function runProgram(text: string) {
  const file = path.join(base, 'project', 'program.mjs')
  fs.writeFileSync(file, text)
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', cwd: path.dirname(file) })
  return { status, stdout, stderr }
}

beforeAll(() => {
  const packed = path.join(base, 'packed')
  const given = [path.join(packageRoot, 'scripts', 'pack.mjs'), packed]
  const tarballs = execFileSync(process.execPath, given, { encoding: 'utf8' }).trim().split('\n')
  expect(tarballs.map((tarball) => path.basename(tarball).replace(/-[\d.]+\.tgz$/, ''))).toEqual([
    PLATFORM,
    'sallyport',
  ])
  unpack(tarballs[0] as string, PLATFORM)
  unpack(tarballs[1] as string, 'sallyport')
  fs.symlinkSync(path.join(packageRoot, 'node_modules', 'esbuild'), installed('esbuild'))
}, 60_000)

const readJson = (file: string) => JSON.parse(fs.readFileSync(file, 'utf8'))

describe('the packed packages', () => {
  it('ask for each other, and for nothing that only the repository needs', () => {
    const main = readJson(installed('sallyport', 'package.json'))
    const platform = readJson(installed(PLATFORM, 'package.json'))
    expect(main.optionalDependencies).toEqual({ [PLATFORM]: platform.version })
    expect(platform.version).toBe(main.version)
    expect(Object.keys(main.dependencies)).toEqual(['esbuild'])
    expect(main).not.toHaveProperty('devDependencies')
    expect(main).not.toHaveProperty('scripts')
    // In the repository they would be looked for before they are published.
    expect(readJson(path.join(packageRoot, 'package.json'))).not.toHaveProperty('optionalDependencies')
  })

  it('mirror a folder, evaluate a file and run the doctor from where npm puts them', () => {
    const source = path.join(base, 'source')
    fs.mkdirSync(source)
    fs.writeFileSync(path.join(source, 'a.mjs'), 'export default (n) => n + 1')
    const { status, stdout, stderr } = runProgram(`
      import { execFileSync } from 'node:child_process'
      import { readdirSync } from 'node:fs'
      import { callSandboxed, probeIsolation, withContainedExecutionMirror } from 'sallyport'
      const sourceRoot = ${JSON.stringify(source)}
      const limits = { maxFiles: 10, maxSourceBytes: 1000, maxWorkspaceBytes: 1000, prepareTimeoutMs: 10_000 }
      const names = await withContainedExecutionMirror(
        { sourceRoot, controlPlaneRoots: [], limits },
        async ({ hostMirrorRoot, guestWorkspacePath }) => readdirSync(guestWorkspacePath),
      )
      const call = { file: sourceRoot + '/a.mjs', args: [41], buildRoot: sourceRoot }
      const { value, isolation } = await callSandboxed(call)
      console.log(JSON.stringify([names, value, isolation.level === (await probeIsolation()).level]))
    `)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toEqual([['a.mjs'], 42, true])
    const doctor = spawnSync(process.execPath, [installed('sallyport', 'bin', 'sallyport.js'), 'doctor', '--json'])
    expect(readJsonText(doctor.stdout)).toMatchObject({ run: { works: true } })
  })

  it('lead by their documents only to what is there', () => {
    const documents = [
      'README.md',
      'CHANGELOG.md',
      ...fs.readdirSync(installed('sallyport', 'docs')).map((name) => `docs/${name}`),
    ]
    for (const document of documents) {
      const text = fs.readFileSync(installed('sallyport', document), 'utf8')
      for (const [, link = ''] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
        const led = path.join(path.dirname(installed('sallyport', document)), link)
        expect(fs.existsSync(led), `${document}: ${link}`).toBe(true)
      }
    }
  })

  it('say which package is missing where the addon is', () => {
    const away = path.join(base, 'away')
    fs.renameSync(installed(PLATFORM), away)
    try {
      const { stdout } = runProgram(`
        import('sallyport').catch(({ code, message }) => console.log(JSON.stringify({ code, message })))
      `)
      expect(JSON.parse(stdout)).toEqual({ code: 'ERR_NATIVE_BINDING', message: expect.stringContaining(PLATFORM) })
    } finally {
      fs.renameSync(away, installed(PLATFORM))
    }
  })
})

function readJsonText(text: Buffer) {
  return JSON.parse(text.toString('utf8'))
}
