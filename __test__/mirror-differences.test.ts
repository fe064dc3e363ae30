// Where sallyport does not follow the JavaScript that it replaces, because that was wrong: one test or more for each
// row of the contract's table. The row "syncs every file" is `flush`, in mirror-behaviour.test.ts.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  buildFileTreeIndex,
  describeContainedExecutionMirror,
  prepareContainedExecutionMirror,
  prepareContainedExecutionMirrorForTests,
  type ContainedExecutionMirrorOptions,
} from '../index.mjs'
import { runChild } from './support/child'
import { pathsOf, readTree, treeHashOf } from './support/reference'
import { refusal } from './support/refusal'
import {
  buildTree,
  createWorkspace,
  directory,
  file,
  generousLimits,
  gitDirectory,
  sparseFile,
  symlink,
  type TreeNode,
  type Workspace,
} from './support/workspace'

async function workspaceWith(...nodes: TreeNode[]): Promise<Workspace> {
  const workspace = createWorkspace()
  await buildTree(workspace, nodes)
  return workspace
}

/** The paths of a mirror, and what its report says was left out. */
async function mirrored(workspace: Workspace, overrides: Partial<ContainedExecutionMirrorOptions> = {}) {
  const mirror = await prepareContainedExecutionMirror(workspace.options(overrides))
  const { skipped, treeHash } = describeContainedExecutionMirror(mirror)
  const paths = pathsOf(mirror.hostMirrorRoot)
  expect(treeHashOf(mirror.hostMirrorRoot)).toBe(treeHash)
  await mirror.cleanup()
  expect(workspace.leftovers()).toEqual([])
  return { paths, skipped: skipped.map(({ relativePath, rule }) => `${relativePath} ${rule}`) }
}

describe('content is left out only where it is structurally Git’s', () => {
  it.each([
    ['a config/ and an objects/ folder', [file('config/a'), file('objects/b')]],
    ['two of the names as files', [file('HEAD', 'not a head\n'), file('config', 'x = 1\n'), file('refs', 'r')]],
    ['all four names with an invalid HEAD', [...gitDirectory('.'), file('HEAD', 'hello\n')]],
    ['all four names without [core]', [...gitDirectory('.'), file('config', '[user]\n')]],
  ])('%s are content', async (_what, nodes) => {
    const workspace = await workspaceWith(...nodes, file('v'))
    const expected = pathsOf(workspace.source)
    expect(await mirrored(workspace)).toEqual({ paths: expected, skipped: [] })
  })

  it.each(['src', '.', './', '..', 'src/..'])(
    'a .git file that says `gitdir: %s` drops nothing else',
    async (target) => {
      const workspace = await workspaceWith(file('.git', `gitdir: ${target}\n`), file('src/a'), file('v'))
      expect(await mirrored(workspace)).toEqual({ paths: ['src', 'src/a', 'v'], skipped: ['.git git-metadata'] })
    },
  )

  it('a .git file cannot drop its own folder or one above, even where that looks like a git dir', async () => {
    const workspace = await workspaceWith(
      ...gitDirectory('w'),
      file('w/config', 'none'),
      file('w/commondir', '.\n'),
      file('w/.git', 'gitdir: .\n'),
    )
    expect((await mirrored(workspace)).paths).toEqual(['w', 'w/HEAD', 'w/commondir', 'w/config', 'w/objects', 'w/refs'])
  })

  it('a bare repository stays as an empty folder, with its content listed', async () => {
    const workspace = await workspaceWith(...gitDirectory('deep/bare'), file('deep/bare/hooks/h'), file('deep/v'))
    const { paths, skipped } = await mirrored(workspace)
    expect(paths).toEqual(['deep', 'deep/bare', 'deep/v'])
    expect(skipped.length).toBeGreaterThan(0)
    for (const text of skipped) expect(text).toMatch(/^deep\/bare.* git-metadata$/)
  })

  it('a source root that is itself a bare repository or a git dir is refused', async () => {
    const workspace = await workspaceWith(...gitDirectory('bare'), ...gitDirectory('w/.git'))
    for (const name of ['bare', 'w/.git']) {
      const sourceRoot = path.join(workspace.source, name)
      expect(await refusal(prepareContainedExecutionMirror(workspace.options({ sourceRoot })))).toMatchObject({
        code: 'contained_execution_source_is_protected',
      })
    }
    expect(workspace.leftovers()).toEqual([])
  })
})

describe('what is left out does not depend on the order of reading', () => {
  it.each(['a-meta', 'z-meta'])('a git dir %s is known before any entry is judged', async (meta) => {
    for (const names of [
      [meta, 'm'],
      ['m', meta],
    ]) {
      const nodes = names.flatMap((name) =>
        name === 'm'
          ? [file('m/.git', `gitdir: ../${meta}\n`), file('m/v')]
          : [...gitDirectory(meta), file(`${meta}/x`)],
      )
      const workspace = await workspaceWith(...nodes)
      // The folder has the form of a bare repository too, of which the folder itself would stay.
      expect((await mirrored(workspace)).paths).toEqual(['m', 'm/v'])
    }
  })

  it.each(['a-link', 'z-link'])('a link %s into metadata is refused', async (link) => {
    const workspace = await workspaceWith(
      ...[...gitDirectory('meta'), file('m/.git', 'gitdir: ../meta\n'), symlink(link, 'meta/config')],
    )
    expect(await refusal(prepareContainedExecutionMirror(workspace.options()))).toMatchObject({
      code: 'contained_execution_unsafe_symlink',
      relativePath: link,
      rule: 'git-metadata',
    })
  })

  it('a link that resolves only through something that was left out is refused', async () => {
    const workspace = await workspaceWith(
      ...gitDirectory('.git'),
      directory('.git/d'),
      symlink('l', '.git/d/../../v'),
      file('v'),
    )
    expect(await refusal(prepareContainedExecutionMirror(workspace.options()))).toMatchObject({
      code: 'contained_execution_unsafe_symlink',
      relativePath: 'l',
    })
    expect(workspace.leftovers()).toEqual([])
  })
})

describe('nothing outside has any influence', () => {
  it.each([
    ['a broken .git file', [['.git', 'gitdir: /nowhere\n']]],
    ['two names of a bare repository', [['HEAD', 'x'] as const, ['config', 'y'] as const]],
  ])('%s above the source and in the temp directory', async (_what, planted) => {
    const workspace = await workspaceWith(file('v'))
    for (const folder of [workspace.base, workspace.temp]) {
      for (const [name, text] of planted) fs.writeFileSync(path.join(folder, name as string), text as string)
    }
    const mirror = await prepareContainedExecutionMirror(workspace.options())
    expect(pathsOf(mirror.hostMirrorRoot)).toEqual(['v'])
    await mirror.cleanup()
  })
})

describe('an excluded root of an index', () => {
  it('drops nothing above it', async () => {
    const workspace = await workspaceWith(file('a/b/secret'), file('a/sibling'), file('a/b2/c'))
    const excludedRoots = [path.join(workspace.source, 'a/b')]
    const { entries } = await buildFileTreeIndex({ resourceRoot: workspace.source, excludedRoots })
    expect(entries.map(({ relativePath }) => relativePath)).toEqual(['a', 'a/b2', 'a/b2/c', 'a/sibling'])
  })
})

describe('a name that is not UTF-8', () => {
  it('is copied, hashed and ordered by its bytes', async () => {
    const workspace = createWorkspace()
    const prefix = Buffer.from(`${workspace.source}/`)
    const raw = (...bytes: number[]): Buffer => Buffer.concat([prefix, Buffer.from(bytes)])
    fs.mkdirSync(raw(0xff))
    fs.writeFileSync(raw(0xff, 0x2f, 0xfe), 'x')
    fs.symlinkSync(Buffer.from([0xff, 0x2f, 0xfe]), raw(0x6c))
    const mirror = await prepareContainedExecutionMirror(workspace.options())
    const hexadecimal = (root: string): string[] => readTree(root).map(({ rawPath }) => rawPath.toString('hex'))
    expect(hexadecimal(mirror.hostMirrorRoot)).toEqual(['6c', 'ff', 'ff2ffe'])
    expect(describeContainedExecutionMirror(mirror).treeHash).toBe(treeHashOf(workspace.source))
    await mirror.cleanup()
  })
})

describe('an empty source', () => {
  it('is no working directory', async () => {
    const error = await refusal(prepareContainedExecutionMirror(createWorkspace().options({ sourceRoot: '' })))
    expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
  })
})

describe('a temp directory that the walk would see', () => {
  it('is refused before anything is created, also where it is the source root itself', async () => {
    const workspace = await workspaceWith(file('a'), directory('tmp'))
    for (const tempDirectory of [workspace.source, path.join(workspace.source, 'tmp')]) {
      const before = fs.statSync(tempDirectory, { bigint: true }).mtimeNs
      expect(await refusal(prepareContainedExecutionMirror(workspace.options({ tempDirectory })))).toMatchObject({
        code: 'contained_execution_boundary_failed',
      })
      expect(fs.statSync(tempDirectory, { bigint: true }).mtimeNs).toBe(before)
    }
  })
})

describe('refusals', () => {
  it('name the first offence in path order, whatever was met first', async () => {
    for (let round = 0; round < 20; round += 1) {
      const workspace = createWorkspace()
      for (let index = 0; index < 30; index += 1) {
        const folder = path.join(workspace.source, `d${String(index).padStart(2, '0')}`)
        fs.mkdirSync(folder)
        fs.writeFileSync(path.join(folder, 'f'), 'x')
        if (index >= 3) fs.symlinkSync('/absolute', path.join(folder, 'l'))
      }
      expect(await refusal(prepareContainedExecutionMirror(workspace.options()))).toMatchObject({
        code: 'contained_execution_unsafe_symlink',
        relativePath: 'd03/l',
        rule: 'absolute-target',
      })
    }
  })

  it.each([
    ['absolute-target', 'l', symlink('l', '/etc')],
    ['leaves-source', 'd/l', symlink('d/l', '../../outside')],
    ['leaves-source', 'l', symlink('l', '../src/a')],
    ['leaves-source', 'd/chain', symlink('d/chain', '../zz/out')],
    ['git-metadata', 'l', symlink('l', '.git')],
    ['protected-root', 'l', symlink('l', '.control')],
    ['unresolvable', 'l', symlink('l', 'a/b')],
  ])('of a link say the rule %s', async (rule, relativePath, node) => {
    const workspace = await workspaceWith(file('a'), file('.control/s'), ...gitDirectory('.git'), directory('d'), node)
    if (relativePath === 'd/chain') await buildTree(workspace, [symlink('zz/out', '../../outside')])
    const controlPlaneRoots = [path.join(workspace.source, '.control')]
    expect(await refusal(prepareContainedExecutionMirror(workspace.options({ controlPlaneRoots })))).toMatchObject({
      ...{ name: 'ContainedExecutionFailureError', code: 'contained_execution_unsafe_symlink', phase: 'mirror' },
      ...{ relativePath, rule },
    })
  })
})

describe('a file that is larger than the limit', () => {
  it('is refused by its size before it is opened', async () => {
    const workspace = createWorkspace()
    sparseFile(path.join(workspace.source, 'big'), 1024 ** 3)
    const opened: string[] = []
    const error = await refusal(
      prepareContainedExecutionMirrorForTests(
        workspace.options({ limits: { ...generousLimits, maxSourceBytes: 1024 ** 2 } }),
        { beforeCopyOpen: async (sourcePath) => void opened.push(sourcePath) },
      ),
    )
    expect(error).toMatchObject({
      diagnostic: `mirror sourceBytes=${1024 ** 3} exceeds maxSourceBytes=${1024 ** 2}`,
      relativePath: 'big',
    })
    expect(opened).toEqual([])
  })
})

describe('a deletion during the work', () => {
  it.each(['d/a', 'd'])('of %s is a changed source, not ENOENT', async (victim) => {
    const workspace = await workspaceWith(file('d/a'), file('e'))
    const error = await refusal(
      prepareContainedExecutionMirrorForTests(workspace.options(), {
        afterSnapshotCaptured: async () => fs.rmSync(path.join(workspace.source, victim), { recursive: true }),
      }),
    )
    expect(error.code).toBe('contained_execution_source_changed')
    expect(error.relativePath).toMatch(/^d/)
    expect(workspace.leftovers()).toEqual([])
  })
})

describe('depth', () => {
  it('is what the kernel can hold, beyond PATH_MAX, with 64 descriptors', async () => {
    const workspace = createWorkspace()
    const [result] = await runChild(
      `
        process.chdir(input.sourceRoot)
        for (let depth = 0; depth < 2000; depth += 1) {
          fs.mkdirSync('folder')
          process.chdir('folder')
        }
        fs.writeFileSync('f', 'x')
        process.chdir('/')
        // Node itself holds some, before anything is mirrored.
        const own = fs.readdirSync('/proc/self/fd').length
        let most = 0
        const onProgress = () => { most = Math.max(most, fs.readdirSync('/proc/self/fd').length - own) }
        const mirror = await sallyport.prepareContainedExecutionMirror({ ...input, onProgress })
        const report = sallyport.describeContainedExecutionMirror(mirror)
        const index = await sallyport.buildFileTreeIndex({ resourceRoot: mirror.hostMirrorRoot })
        await mirror.cleanup()
        send({
          directories: report.directories,
          sameHash: index.treeHash === report.treeHash,
          few: most <= 64,
          left: fs.readdirSync(input.tempDirectory),
        })
      `,
      { workspace, input: workspace.options(), shell: 'ulimit -n 96' },
    )
    expect(result).toEqual({ directories: 2000, sameHash: true, few: true, left: [] })
  })
})

describe('cleanup as an ordinary user', () => {
  it('removes unwritable folders and gives up on what is not its own with a typed error', async () => {
    const workspace = createWorkspace()
    fs.chmodSync(workspace.temp, 0o777)
    const [result] = await runChild(
      `
        const mirror = await sallyport.prepareContainedExecutionMirror(input)
        const locked = path.join(mirror.hostMirrorRoot, 'locked')
        fs.mkdirSync(path.join(locked, 'in'), { recursive: true })
        fs.writeFileSync(path.join(locked, 'in/f'), 'x')
        fs.symlinkSync(input.sourceRoot, path.join(locked, 'out'))
        fs.chmodSync(path.join(locked, 'in'), 0o000)
        fs.chmodSync(locked, 0o000)
        await mirror.cleanup()
        send({ left: fs.readdirSync(input.tempDirectory), source: fs.readdirSync(input.sourceRoot) })
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(result).toEqual({ left: [], source: [] })
  })

  it('ends, removed or with a typed error, against a writer that never stops', async () => {
    const workspace = await workspaceWith(file('a'))
    const [result] = await runChild(
      `
        import { Worker } from 'node:worker_threads'
        const mirror = await sallyport.prepareContainedExecutionMirror(input)
        const stop = new Int32Array(new SharedArrayBuffer(4))
        const worker = new Worker(\`
          const { workerData: { root, stop }, parentPort } = require('node:worker_threads')
          const fs = require('node:fs')
          parentPort.postMessage('writing')
          for (let count = 0; Atomics.load(stop, 0) === 0; count += 1) {
            try { fs.writeFileSync(root + '/w' + count, '') } catch (error) { if (error.code !== 'ENOENT') throw error }
          }
        \`, { eval: true, workerData: { root: mirror.hostMirrorRoot, stop } })
        await new Promise((resolve) => worker.once('message', resolve))
        let outcome = 'removed'
        try { await mirror.cleanup() } catch (error) { outcome = error.code }
        Atomics.store(stop, 0, 1)
        await new Promise((resolve) => worker.once('exit', resolve))
        await mirror.cleanup()
        send({ outcome, left: fs.readdirSync(input.tempDirectory) })
      `,
      { workspace, input: workspace.options() },
    )
    expect(['removed', 'contained_execution_cleanup_unconfirmed']).toContain(result.outcome)
    expect(result.left).toEqual([])
  })
})

describe('the system’s own errors', () => {
  it('keep Node’s form', async () => {
    const workspace = createWorkspace()
    const sourceRoot = path.join(workspace.source, 'missing')
    const error = await refusal(prepareContainedExecutionMirror(workspace.options({ sourceRoot })))
    expect(error).toMatchObject({ code: 'ENOENT', errno: -os.constants.errno.ENOENT, path: sourceRoot })
    expect(error.message).toMatch(/^ENOENT: no such file or directory, \w+ '/)
    expect(workspace.leftovers()).toEqual([])
  })
})
