// Inputs from public bug reports of other tools, by the id they have in the project's collection of cases: each with
// every value that the collection gives for it. One `describe` for each row.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  describeContainedExecutionMirror,
  prepareContainedExecutionMirror,
  sweepAbandonedMirrors,
  type ContainedExecutionMirrorOptions,
} from '../index.mjs'
import { runChild, startChild } from './support/child'
import { pathsOf, readTree, treeHashOf } from './support/reference'
import { refusal } from './support/refusal'
import {
  buildTree,
  createWorkspace,
  directory,
  fifo,
  file,
  generousLimits,
  gitDirectory,
  hardlink,
  isRoot,
  socket,
  sparseFile,
  symlink,
  type TreeNode,
  type Workspace,
} from './support/workspace'

const MIRROR_NAME = /^belay-contained-mirror-[A-Za-z0-9_]{6,}$/

async function workspaceWith(...nodes: TreeNode[]): Promise<Workspace> {
  const workspace = createWorkspace()
  await buildTree(workspace, nodes)
  return workspace
}

/** The refusal of a mirror of `workspace`, after which nothing may be left. */
async function refusalOf(workspace: Workspace, overrides: Partial<ContainedExecutionMirrorOptions> = {}) {
  const error = await refusal(prepareContainedExecutionMirror(workspace.options(overrides)))
  expect(workspace.leftovers()).toEqual([])
  return error
}

/** Makes a mirror, checks its hash against an independent reading, lets `look` see it and removes it. */
async function accepted<T>(
  workspace: Workspace,
  look: (mirrorRoot: string) => T,
  overrides: Partial<ContainedExecutionMirrorOptions> = {},
): Promise<T> {
  const mirror = await prepareContainedExecutionMirror(workspace.options(overrides))
  try {
    expect(treeHashOf(mirror.hostMirrorRoot)).toBe(describeContainedExecutionMirror(mirror).treeHash)
    return look(mirror.hostMirrorRoot)
  } finally {
    await mirror.cleanup()
    expect(workspace.leftovers()).toEqual([])
  }
}

/** In the body of a child: builds what an ordinary user owns, mirrors it and says what came of it. */
const ORDINARY_MIRROR = `
  const result = {}
  try {
    const mirror = await sallyport.prepareContainedExecutionMirror(input.options)
    const modes = (folder, prefix) => fs.readdirSync(folder).flatMap((name) => {
      const stats = fs.lstatSync(path.join(folder, name))
      const here = [[prefix + name, (stats.mode & 0o7777).toString(8)]]
      return stats.isDirectory() ? [...here, ...modes(path.join(folder, name), prefix + name + '/')] : here
    })
    result.modes = Object.fromEntries(modes(mirror.hostMirrorRoot, ''))
    await mirror.cleanup()
    result.gone = !fs.existsSync(mirror.hostMirrorRoot)
  } catch (error) {
    result.error = describeError(error)
  }
  result.leftovers = fs.readdirSync(input.options.tempDirectory)
  send(result)
`

/** Gives the source and the temp directory to the ordinary user, modes untouched, and mirrors as that user. */
async function mirrorAsOrdinaryUser(workspace: Workspace, overrides: Partial<ContainedExecutionMirrorOptions> = {}) {
  if (isRoot) giveAway(workspace)
  const [result] = await runChild(ORDINARY_MIRROR, {
    workspace,
    asOrdinaryUser: true,
    input: { options: workspace.options(overrides) },
  })
  return result
}

function giveAway(workspace: Workspace): void {
  const visit = (absolute: string): void => {
    const stats = fs.lstatSync(absolute)
    fs.lchownSync(absolute, 65534, 65534)
    if (stats.isDirectory()) for (const name of fs.readdirSync(absolute)) visit(path.join(absolute, name))
    // Changing the owner takes set-id bits away; the other bits stay as the test gave them.
  }
  visit(workspace.source)
  visit(workspace.temp)
}

describe('hardlink-deps', () => {
  const installed = 'node_modules/.pnpm/p@1/node_modules/p/index.js'
  const linkedPackage = [hardlink(installed, '../outside/o.txt'), symlink('node_modules/p', '.pnpm/p@1/node_modules/p')]
  const twins = [file('z/empty-a', ''), hardlink('z/empty-b', 'z/empty-a')]

  it('is refused by default with the first path and its link count', async () => {
    const workspace = await workspaceWith(...twins, ...linkedPackage)
    const error = await refusalOf(workspace)
    expect(error.constructor).toBe(Error)
    expect(error).toMatchObject({
      message: 'file_checkpoint_hardlink_unsupported',
      code: 'file_checkpoint_hardlink_unsupported',
      relativePath: installed,
      links: 2,
    })
  })

  it('is refused for two empty files that share an inode', async () => {
    expect(await refusalOf(await workspaceWith(...twins))).toMatchObject({ relativePath: 'z/empty-a', links: 2 })
  })

  it("is copied with hardlinks: 'copy', each name a file of its own", async () => {
    const workspace = await workspaceWith(...twins, ...linkedPackage)
    await accepted(
      workspace,
      (mirrorRoot) => {
        const files = readTree(mirrorRoot).filter(({ kind }) => kind === 'file')
        expect(files.map(({ relativePath }) => relativePath)).toEqual([installed, 'z/empty-a', 'z/empty-b'])
        for (const { relativePath } of files) expect(fs.lstatSync(path.join(mirrorRoot, relativePath)).nlink).toBe(1)
        expect(fs.readFileSync(path.join(mirrorRoot, 'node_modules/p/index.js'), 'utf8')).toBe('outside\n')
        fs.writeFileSync(path.join(mirrorRoot, installed), 'changed in the mirror')
        expect(fs.readFileSync(path.join(workspace.outside, 'o.txt'), 'utf8')).toBe('outside\n')
      },
      { hardlinks: 'copy' },
    )
  })

  it.each([
    ['inside the source', 'src/.control'],
    ['outside the source', 'outside'],
  ])('is refused still where the inode is also in a protected root %s', async (_where, protectedRoot) => {
    const workspace = await workspaceWith(file('.control/deep/secret', 's'), hardlink('b', '.control/deep/secret'))
    fs.linkSync(path.join(workspace.outside, 'o.txt'), path.join(workspace.source, 'c'))
    const controlPlaneRoots = [path.join(workspace.base, protectedRoot), path.join(workspace.source, '.control')]
    const error = await refusalOf(workspace, { hardlinks: 'copy', controlPlaneRoots })
    expect(error).toMatchObject({ code: 'file_checkpoint_hardlink_unsupported', relativePath: 'b', links: 2 })
    fs.rmSync(path.join(workspace.source, 'b'))
    const rest = workspace.options({ hardlinks: 'copy', controlPlaneRoots })
    if (protectedRoot === 'outside') {
      expect(await refusal(prepareContainedExecutionMirror(rest))).toMatchObject({ relativePath: 'c', links: 2 })
    } else {
      await accepted(workspace, (mirrorRoot) => expect(pathsOf(mirrorRoot)).toEqual(['c']), rest)
    }
  })

  it('is copied where a protected root lies below a file, and so is not there', async () => {
    const workspace = await workspaceWith(file('a'), hardlink('b', 'a'))
    const controlPlaneRoots = [path.join(workspace.outside, 'o.txt', 'below')]
    const options = workspace.options({ hardlinks: 'copy', controlPlaneRoots })
    await accepted(workspace, (mirrorRoot) => expect(pathsOf(mirrorRoot)).toEqual(['a', 'b']), options)
  })

  it('is refused where a protected root cannot be read, as an ordinary user', async () => {
    const workspace = await workspaceWith(file('a'), hardlink('b', 'a'), directory('.control', '0000'))
    const controlPlaneRoots = [path.join(workspace.source, '.control')]
    const result = await mirrorAsOrdinaryUser(workspace, { hardlinks: 'copy', controlPlaneRoots })
    expect(result.error).toMatchObject({ code: 'EACCES' })
    expect(result.leftovers).toEqual([])
  })

  it('is accepted only below .git/objects', async () => {
    const workspace = await workspaceWith(
      ...gitDirectory('.git'),
      file('.git/objects/aa/1', 'o'),
      hardlink('.git/objects/bb/1', '.git/objects/aa/1'),
      file('a'),
    )
    expect(await accepted(workspace, pathsOf)).toEqual(['a'])
  })
})

describe('abs-link', () => {
  it.each([
    ["a virtualenv's interpreter", '.venv/bin/python', '/usr/bin/env'],
    ['a file inside the root', '.venv/inside', '${base}/src/a'],
  ])('refuses an absolute link to %s', async (_what, relativePath, target) => {
    const workspace = await workspaceWith(file('a'), symlink(relativePath, target))
    expect(await refusalOf(workspace)).toMatchObject({
      name: 'ContainedExecutionFailureError',
      code: 'contained_execution_unsafe_symlink',
      relativePath,
      rule: 'absolute-target',
    })
  })
})

describe('limits-edge', () => {
  const nodes = [file('a', '1234'), file('d/b', '56789'), symlink('d/l', 'b'), directory('e')]
  const quota = { name: 'FileCheckpointDiagnosticError', message: 'file_checkpoint_quota_exceeded' }

  it.each([
    ['maxFiles', 5, 'mirror nodeCount=5 exceeds maxFiles=4', 'e'],
    ['maxSourceBytes', 9, 'mirror sourceBytes=9 exceeds maxSourceBytes=8', 'd/b'],
    ['maxWorkspaceBytes', 10, 'mirror workspaceBytes=10 exceeds maxWorkspaceBytes=9', 'd/l'],
  ])('%s accepts exactly %d and refuses one less', async (option, exact, diagnostic, relativePath) => {
    const workspace = await workspaceWith(...nodes)
    await accepted(workspace, (mirrorRoot) => expect(pathsOf(mirrorRoot)).toHaveLength(5), {
      limits: { ...generousLimits, [option]: exact },
    })
    const error = await refusalOf(workspace, { limits: { ...generousLimits, [option]: exact - 1 } })
    expect(error).toMatchObject({ ...quota, diagnostic, limit: exact - 1, value: exact, relativePath })
  })

  it('refuses a 3 GiB sparse file with a limit of 2 GiB before it is read', async () => {
    const workspace = await workspaceWith(file('a'), file('huge', ''))
    sparseFile(path.join(workspace.source, 'huge'), 3 * 1024 ** 3)
    const bytesRead = (): number => Number(/^rchar: (\d+)$/m.exec(fs.readFileSync('/proc/self/io', 'utf8'))?.[1])
    const before = bytesRead()
    const error = await refusalOf(workspace, { limits: { ...generousLimits, maxSourceBytes: 2 * 1024 ** 3 } })
    expect(bytesRead() - before).toBeLessThan(64 * 1024 ** 2)
    expect(error).toMatchObject({ ...quota, limit: 2 * 1024 ** 3, relativePath: 'huge' })
    expect(error.value).toBeGreaterThanOrEqual(3 * 1024 ** 3)
  })
})

describe('readonly-dir', () => {
  it('keeps the modes and removes all of it, as an ordinary user', async () => {
    const workspace = await workspaceWith(
      directory('ro', '0555'),
      file('ro/f', 'x', '0444'),
      directory('ro/in', '0555'),
    )
    expect(await mirrorAsOrdinaryUser(workspace)).toEqual({
      modes: { ro: '555', 'ro/f': '444', 'ro/in': '555' },
      gone: true,
      leftovers: [],
    })
  })
})

describe('hash-vector', () => {
  const nodes = [
    ...['a/x', 'a-b', 'a.txt', 'a0', '\uFF61', '\u{1F600}'].map((relativePath) => file(relativePath)),
    ...[directory('a'), directory('e'), symlink('l', 'a.txt')],
  ]

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'gives one hash and one order, whatever was created first (%d)',
    async (turn) => {
      const turned = [...nodes.slice(turn), ...nodes.slice(0, turn)]
      const workspace = await workspaceWith(...(turn % 2 === 0 ? turned : turned.reverse()))
      await accepted(workspace, (mirrorRoot) => {
        expect(pathsOf(mirrorRoot)).toEqual(['a', 'a-b', 'a.txt', 'a/x', 'a0', 'e', 'l', '\uFF61', '\u{1F600}'])
        expect(treeHashOf(mirrorRoot)).toBe('49afbe070c994e6cb5ad44c91e24ffc8eb27ae3e632be11a0637d3d03c2d3e51')
      })
    },
  )
})

describe('git-shapes', () => {
  it('leaves metadata out and keeps what only looks like it', async () => {
    const workspace = await workspaceWith(
      ...[file('.GIT/x'), file('sub/.Git/y'), file('sub/keep'), file('.gitignore'), file('.github/z'), file('git/q')],
      ...[directory('submodule'), file('sub2/.git', 'gitdir: ../nowhere\n'), file('sub2/keep')],
    )
    expect(await accepted(workspace, pathsOf)).toEqual([
      ...['.github', '.github/z', '.gitignore', 'git', 'git/q', 'sub', 'sub/keep', 'sub2', 'sub2/keep', 'submodule'],
    ])
  })

  it('leaves out the metadata of a linked worktree, inside the source or outside', async () => {
    const workspace = await workspaceWith(
      ...gitDirectory('main/.git'),
      file('main/.git/worktrees/w/HEAD', 'ref: refs/heads/w\n'),
      file('main/.git/worktrees/w/commondir', '../..\n'),
      file('main/.git/worktrees/w/gitdir', 'placeholder'),
      file('main/a'),
      file('w/.git', 'placeholder'),
      file('w/b'),
    )
    const worktree = path.join(workspace.source, 'main/.git/worktrees/w')
    fs.writeFileSync(path.join(workspace.source, 'w/.git'), `gitdir: ${worktree}\n`)
    fs.writeFileSync(path.join(worktree, 'gitdir'), `${path.join(workspace.source, 'w/.git')}\n`)
    expect(await accepted(workspace, pathsOf)).toEqual(['main', 'main/a', 'w', 'w/b'])
    const sourceRoot = path.join(workspace.source, 'w')
    expect(await accepted(workspace, pathsOf, { sourceRoot })).toEqual(['b'])
  })

  it('leaves out a separate git dir inside the tree and refuses a link into it', async () => {
    const workspace = await workspaceWith(...gitDirectory('meta'), file('.git', 'gitdir: meta\n'), file('a'))
    expect(await accepted(workspace, pathsOf)).toEqual(['a'])
    await buildTree(workspace, [symlink('l', 'meta/config')])
    expect(await refusalOf(workspace)).toMatchObject({
      code: 'contained_execution_unsafe_symlink',
      relativePath: 'l',
      rule: 'git-metadata',
    })
  })

  it('leaves out a FIFO named .git', async () => {
    expect(await accepted(await workspaceWith(fifo('.git'), fifo('sub/.git'), file('a')), pathsOf)).toEqual([
      'a',
      'sub',
    ])
  })

  it.each([
    ['a FIFO that may not be opened', fifo('.git', '0000')],
    ['a folder of mode 000', directory('.git', '0000')],
    ['a file of mode 000', file('.git', 'gitdir: nowhere\n', '0000')],
  ])('leaves out .git that is %s, as an ordinary user', async (_what, node) => {
    const result = await mirrorAsOrdinaryUser(await workspaceWith(node, file('a')))
    expect(result).toEqual({ modes: { a: '644' }, gone: true, leftovers: [] })
  })
})

describe('leftovers', () => {
  const COPYING = `
    const controller = new AbortController()
    if (input.handlesSignal) process.on('SIGINT', () => controller.abort(new Error('interrupted')))
    let told = false
    const onProgress = ({ phase }) => {
      if (phase !== 'copy' || told) return
      told = true
      send('copying')
    }
    try {
      await sallyport.prepareContainedExecutionMirror({ ...input.options, onProgress, signal: controller.signal })
      send('finished')
    } catch (error) {
      send({ refused: error.message, left: fs.readdirSync(input.options.tempDirectory) })
    }
  `

  async function bigSource(): Promise<Workspace> {
    const workspace = createWorkspace()
    for (let index = 0; index < 25; index += 1) sparseFile(path.join(workspace.source, `part-${index}`), 20_000_000)
    return workspace
  }

  it.each(['SIGINT', 'SIGKILL'] as const)(
    '%s in the middle of a 500 MB copy leaves what is swept later',
    async (signal) => {
      const workspace = await bigSource()
      const child = startChild(COPYING, { workspace, input: { options: workspace.options() } })
      expect(await child.firstMessage).toBe('copying')
      child.process.kill(signal)
      expect(await child.finished).toMatchObject({ exitCode: null, signal })

      const [name, ...others] = workspace.leftovers()
      expect(others).toEqual([])
      expect(name).toMatch(MIRROR_NAME)
      const root = path.join(workspace.temp, name as string)
      const stats = fs.lstatSync(root)
      expect(stats.mode & 0o7777).toBe(0o700)
      expect(stats.uid).toBe(process.getuid?.())
      // It is younger than a minute, so the default leaves it alone.
      expect(await sweepAbandonedMirrors({ tempDirectory: workspace.temp })).toEqual({ removed: [], kept: 1 })
      expect(await sweepAbandonedMirrors({ tempDirectory: workspace.temp, olderThanMs: 0 })).toEqual({
        removed: [root],
        kept: 0,
      })
      expect(workspace.leftovers()).toEqual([])
    },
  )

  it('a program that turns SIGINT into an abort leaves nothing', async () => {
    const workspace = await bigSource()
    const input = { options: workspace.options(), handlesSignal: true }
    const child = startChild(COPYING, { workspace, input })
    expect(await child.firstMessage).toBe('copying')
    child.process.kill('SIGINT')
    const { messages, exitCode } = await child.finished
    expect(messages).toEqual(['copying', { refused: 'interrupted', left: [] }])
    expect(exitCode).toBe(0)
  })

  const FULL = `
    try {
      await sallyport.prepareContainedExecutionMirror(input.options)
      send({ accepted: true })
    } catch (error) {
      send({ error: describeError(error), left: fs.readdirSync(input.options.tempDirectory) })
    }
  `

  async function sourceOf64Megabytes(): Promise<Workspace> {
    const workspace = createWorkspace()
    fs.writeFileSync(path.join(workspace.source, 'big'), Buffer.alloc(64 * 1024 ** 2, 1))
    return workspace
  }

  it('a 16 MB tmpfs as temp ends in ENOSPC with the folder gone', async () => {
    const workspace = await sourceOf64Megabytes()
    // An ordinary user may mount in a user namespace of its own.
    const through = ['unshare', '--mount', ...(isRoot ? [] : ['--map-root-user'])]
    const shell = `mount -t tmpfs -o size=16m sallyport-test ${workspace.temp}`
    const [result] = await runChild(FULL, { workspace, input: { options: workspace.options() }, through, shell })
    expect(result.error).toMatchObject({ name: 'Error', code: 'ENOSPC', errno: -os.constants.errno.ENOSPC })
    expect(result.error.syscall).toBeTypeOf('string')
    expect(result.left).toEqual([])
  })

  it('a limit on the size of a file ends in EFBIG with the folder gone', async () => {
    const workspace = await sourceOf64Megabytes()
    const [result] = await runChild(FULL, {
      workspace,
      input: { options: workspace.options() },
      shell: 'ulimit -f 16384',
    })
    expect(result.error).toMatchObject({ name: 'Error', code: 'EFBIG', errno: -os.constants.errno.EFBIG })
    expect(result.left).toEqual([])
  })
})

describe('special-nodes', () => {
  it.each([
    ['fifo', 'p', fifo('p')],
    ['socket', '.overmind.sock', socket('.overmind.sock')],
  ])('refuses a %s at once', async (nodeKind, relativePath, node) => {
    const error = await refusalOf(await workspaceWith(file('a'), node))
    expect(error.constructor).toBe(Error)
    expect(error).toMatchObject({
      message: 'file_checkpoint_unsupported_node',
      code: 'file_checkpoint_unsupported_node',
      relativePath,
      nodeKind,
    })
  })

  it('names the first one in path order', async () => {
    const workspace = await workspaceWith(fifo('p'), socket('.overmind.sock'))
    expect(await refusalOf(workspace)).toMatchObject({ relativePath: '.overmind.sock', nodeKind: 'socket' })
  })

  it('never opens a FIFO, as an ordinary user who may not', async () => {
    const result = await mirrorAsOrdinaryUser(await workspaceWith(fifo('p', '0000')))
    expect(result.error).toMatchObject({
      code: 'file_checkpoint_unsupported_node',
      relativePath: 'p',
      nodeKind: 'fifo',
    })
    expect(result.leftovers).toEqual([])
  })

  it('accepts both below .git', async () => {
    const workspace = await workspaceWith(fifo('.git/p'), socket('.git/fsmonitor.sock'), file('a'))
    expect(await accepted(workspace, pathsOf)).toEqual(['a'])
  })
})

describe('dangling-link', () => {
  it("refuses an editor's lock with path and reason", async () => {
    const workspace = await workspaceWith(file('a.ts'), symlink('.#a.ts', 'user@host.123:456'))
    expect(await refusalOf(workspace)).toMatchObject({
      code: 'contained_execution_unsafe_symlink',
      relativePath: '.#a.ts',
      rule: 'unresolvable',
    })
  })

  it('refuses links that go round in a circle', async () => {
    const workspace = await workspaceWith(symlink('a', 'b'), symlink('b', 'a'))
    expect(await refusalOf(workspace)).toMatchObject({
      code: 'contained_execution_unsafe_symlink',
      relativePath: 'a',
      rule: 'unresolvable',
    })
  })

  it('copies harmless links with their exact text', async () => {
    const workspace = await workspaceWith(
      ...[directory('dir'), symlink('dir/up', '..'), symlink('here', '.'), symlink('slash', 'dir/')],
    )
    const targets = await accepted(workspace, (mirrorRoot) =>
      ['dir/up', 'here', 'slash'].map((link) => fs.readlinkSync(path.join(mirrorRoot, link))),
    )
    expect(targets).toEqual(['..', '.', 'dir/'])
  })
})

describe('unreadable', () => {
  it.each([
    ['file', file('d/secret', 'x', '0000')],
    ['folder', directory('d/secret', '0000')],
  ])('refuses a %s of mode 000 with EACCES and its path, as an ordinary user', async (_kind, node) => {
    const result = await mirrorAsOrdinaryUser(await workspaceWith(file('a'), node))
    expect(result.error).toMatchObject({ code: 'EACCES', errno: -os.constants.errno.EACCES, relativePath: 'd/secret' })
    expect(result.leftovers).toEqual([])
  })

  it('does not need to read what is excluded, as an ordinary user', async () => {
    const workspace = await workspaceWith(file('a'), directory('.control', '0000'))
    const controlPlaneRoots = [path.join(workspace.source, '.control')]
    expect(await mirrorAsOrdinaryUser(workspace, { controlPlaneRoots })).toEqual({
      modes: { a: '644' },
      gone: true,
      leftovers: [],
    })
  })
})

describe('roots', () => {
  it('refuses a temp directory that the walk would see, before anything is created', async () => {
    const workspace = await workspaceWith(file('a'), directory('tmp/deep'))
    for (const tempDirectory of ['.', 'tmp', 'tmp/deep'].map((name) => path.join(workspace.source, name))) {
      expect(await refusalOf(workspace, { tempDirectory })).toMatchObject({
        name: 'ContainedExecutionFailureError',
        code: 'contained_execution_boundary_failed',
      })
    }
    expect(pathsOf(workspace.source)).toEqual(['a', 'tmp', 'tmp/deep'])
  })

  it('refuses a temp directory inside the source that is named through a link', async () => {
    const workspace = await workspaceWith(file('a'), directory('tmp'))
    const alias = path.join(workspace.base, 'alias')
    fs.symlinkSync(path.join(workspace.source, 'tmp'), alias)
    expect(await refusalOf(workspace, { tempDirectory: alias })).toMatchObject({
      code: 'contained_execution_boundary_failed',
    })
    expect(pathsOf(workspace.source)).toEqual(['a', 'tmp'])
  })

  it('accepts a temp directory inside the source that is within a protected root', async () => {
    const workspace = await workspaceWith(file('a'), directory('.control/tmp'))
    const control = path.join(workspace.source, '.control')
    const overrides = { tempDirectory: path.join(control, 'tmp'), controlPlaneRoots: [control] }
    expect(await accepted(workspace, pathsOf, overrides)).toEqual(['a'])
    expect(fs.readdirSync(path.join(control, 'tmp'))).toEqual([])
  })

  it.each([
    ['empty', ''],
    ['with a NUL', '/tmp/a\0b'],
  ])('refuses a source that is %s', async (_what, sourceRoot) => {
    const error = await refusalOf(createWorkspace(), { sourceRoot })
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
    expect(error.message).toContain('sourceRoot')
  })

  it('refuses / because the temp directory is in it', async () => {
    const error = await refusalOf(createWorkspace(), { sourceRoot: '/' })
    expect(error.code).toBe('contained_execution_boundary_failed')
  })

  it('refuses a file and a missing source', async () => {
    const workspace = await workspaceWith(file('a'))
    const sourceRoot = path.join(workspace.source, 'a')
    expect(await refusalOf(workspace, { sourceRoot })).toMatchObject({
      name: 'ContainedExecutionFailureError',
      code: 'contained_execution_source_not_directory',
    })
    const missing = path.join(workspace.source, 'missing')
    const error = await refusalOf(workspace, { sourceRoot: missing })
    expect(error).toMatchObject({ code: 'ENOENT', errno: -os.constants.errno.ENOENT, path: missing })
    expect(error.syscall).toBeTypeOf('string')
  })

  it('takes a relative source, a link, and a trailing slash, and keeps links in guestWorkspacePath', async () => {
    const workspace = await workspaceWith(file('a'))
    const alias = path.join(workspace.base, 'alias')
    fs.symlinkSync('src', alias)
    const relative = path.relative(process.cwd(), workspace.source)
    for (const [sourceRoot, guestWorkspacePath] of [
      [relative, path.resolve(relative)],
      [alias, alias],
      [`${workspace.source}/`, workspace.source],
      [`${workspace.source}/../src/.`, workspace.source],
    ] as const) {
      const mirror = await prepareContainedExecutionMirror(workspace.options({ sourceRoot }))
      expect(mirror.guestWorkspacePath).toBe(guestWorkspacePath)
      expect(pathsOf(mirror.hostMirrorRoot)).toEqual(['a'])
      await mirror.cleanup()
    }
    expect(workspace.leftovers()).toEqual([])
  })

  it('honours a protected root in every spelling', async () => {
    const workspace = await workspaceWith(file('a'), file('.control/s'), file('.control2/t'))
    fs.symlinkSync('src', path.join(workspace.base, 'alias'))
    fs.symlinkSync('src/.control', path.join(workspace.base, 'control-alias'))
    const { source, base } = workspace
    for (const spelling of [
      `${source}/.control`,
      `${source}/.control/`,
      `${source}/./x/../.control`,
      `${base}/alias/.control`,
      `${base}/control-alias`,
      path.relative(process.cwd(), `${source}/.control`),
    ]) {
      const overrides = { controlPlaneRoots: [spelling] }
      expect(await accepted(workspace, pathsOf, overrides), spelling).toEqual(['.control2', '.control2/t', 'a'])
    }
  })

  it('refuses a source at or within a protected root in every spelling', async () => {
    const workspace = await workspaceWith(file('a'))
    const alias = path.join(workspace.base, 'alias')
    fs.symlinkSync('src', alias)
    for (const spelling of [workspace.source, `${workspace.source}/`, workspace.base, alias, '/']) {
      expect(await refusalOf(workspace, { controlPlaneRoots: [spelling] }), spelling).toMatchObject({
        code: 'contained_execution_source_is_protected',
      })
      expect(await refusalOf(workspace, { controlPlaneRoots: [spelling], sourceRoot: alias }), spelling).toMatchObject({
        code: 'contained_execution_source_is_protected',
      })
    }
  })
})

describe('deep-tree', () => {
  const DEEP = `
    const mirror = await sallyport.prepareContainedExecutionMirror(input.options)
    const { directories, files, treeHash } = sallyport.describeContainedExecutionMirror(mirror)
    const index = await sallyport.buildFileTreeIndex({ resourceRoot: input.options.sourceRoot })
    await mirror.cleanup()
    send({
      directories,
      files,
      sameHash: index.treeHash === treeHash,
      gone: !fs.existsSync(mirror.hostMirrorRoot),
      limit: /Max open files +(\\d+)/.exec(fs.readFileSync('/proc/self/limits', 'utf8'))[1],
    })
  `

  async function mirrorOf(workspace: Workspace) {
    const input = { options: workspace.options() }
    const [result] = await runChild(DEEP, { workspace, input, shell: 'ulimit -n 256' })
    expect(workspace.leftovers()).toEqual([])
    return result
  }

  it('mirrors 1,500 nested folders with 256 descriptors', async () => {
    const workspace = createWorkspace()
    const deepest = path.join(workspace.source, ...Array.from({ length: 1500 }, () => 'd'))
    fs.mkdirSync(deepest, { recursive: true })
    fs.writeFileSync(path.join(deepest, 'f'), 'x')
    const sameHash = true
    expect(await mirrorOf(workspace)).toEqual({ directories: 1500, files: 1, sameHash, gone: true, limit: '256' })
  })

  it('mirrors a path just under PATH_MAX', async () => {
    const workspace = createWorkspace()
    let deepest = workspace.source
    let directories = 0
    while (deepest.length + 202 < 4095) {
      deepest = path.join(deepest, 'n'.repeat(200))
      directories += 1
    }
    fs.mkdirSync(deepest, { recursive: true })
    const name = 'f'.repeat(Math.min(255, 4094 - deepest.length))
    expect(path.join(deepest, name).length).toBe(4095)
    fs.writeFileSync(path.join(deepest, name), 'x')
    const sameHash = true
    expect(await mirrorOf(workspace)).toEqual({ directories, files: 1, sameHash, gone: true, limit: '256' })
  })
})
