// The tree index, its limits, the difference of two indices, observed changes, single nodes and relative paths.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import {
  FileCheckpointDiagnosticError,
  buildFileTreeIndex,
  compareRelativePathsBytewise,
  computeTreeHash,
  diffFileTreeIndices,
  hashFileContent,
  isExcludedTreePath,
  isNestedGitPath,
  isRootGitMetadataPath,
  joinRelativePath,
  presentNodeKind,
  readObservedChanges,
  readSnapshotNode,
  snapshotNodesEqual,
  validateRelativePath,
  type FileTreeBuildOptions,
  type FileTreeIndex,
  type SnapshotNode,
} from '../index.mjs'
import { hashTree, readTree, sha256, treeHashOf } from './support/reference'
import { refusal, thrownBy } from './support/refusal'
import {
  buildTree,
  createWorkspace,
  directory,
  fifo,
  file,
  gitDirectory,
  hardlink,
  socket,
  symlink,
  type TreeNode,
  type Workspace,
} from './support/workspace'

async function workspaceWith(...nodes: TreeNode[]): Promise<Workspace> {
  const workspace = createWorkspace()
  await buildTree(workspace, nodes)
  return workspace
}

function indexOf(workspace: Workspace, options: Partial<FileTreeBuildOptions> = {}): Promise<FileTreeIndex> {
  return buildFileTreeIndex({ resourceRoot: workspace.source, ...options })
}

async function pathsIn(workspace: Workspace, ...excluded: string[]): Promise<string[]> {
  const excludedRoots = excluded.map((relativePath) => path.join(workspace.source, relativePath))
  const { entries } = await indexOf(workspace, { excludedRoots })
  return entries.map(({ relativePath }) => relativePath)
}

describe('buildFileTreeIndex', () => {
  it('gives sorted entries with complete nodes', async () => {
    const workspace = await workspaceWith(
      ...[file('a/x', 'four', '4751'), file('a-b', '', '0400'), directory('a', '2775'), symlink('l', '/anywhere')],
    )
    const index = await indexOf(workspace)
    const reference = readTree(workspace.source)
    expect(Object.keys(index).sort()).toEqual(
      ['directoryCount', 'entries', 'fileCount', 'totalFileBytes', 'treeHash', 'version'].sort(),
    )
    expect(index).toMatchObject({ version: 1, treeHash: hashTree(reference), fileCount: 3, directoryCount: 1 })
    expect(index.totalFileBytes).toBe(4)
    const modeOf = (relativePath: string): number => fs.lstatSync(path.join(workspace.source, relativePath)).mode
    const hashes = new Map(reference.map(({ relativePath, hash }) => [relativePath, hash]))
    expect(index.entries).toEqual([
      { relativePath: 'a', node: { kind: 'directory', mode: modeOf('a'), hash: hashes.get('a') } },
      { relativePath: 'a-b', node: { kind: 'file', mode: modeOf('a-b'), size: 0, hash: hashes.get('a-b') } },
      { relativePath: 'a/x', node: { kind: 'file', mode: modeOf('a/x'), size: 4, hash: hashes.get('a/x') } },
      { relativePath: 'l', node: { kind: 'symlink', target: '/anywhere', hash: hashes.get('l') } },
    ])
  })

  it('records links whatever they point to and follows none', async () => {
    const workspace = await workspaceWith(
      ...[symlink('absolute', '/etc/passwd'), symlink('loop', 'loop'), symlink('missing', 'no/where')],
      ...[symlink('out', '../outside'), symlink('up', '..')],
    )
    expect(await pathsIn(workspace)).toEqual(['absolute', 'loop', 'missing', 'out', 'up'])
  })

  it('skips .git at the root in that exact case, whatever kind it is', async () => {
    expect(await pathsIn(await workspaceWith(...gitDirectory('.git'), file('a')))).toEqual(['a'])
    expect(await pathsIn(await workspaceWith(file('.git', 'gitdir: x\n'), file('a')))).toEqual(['a'])
    expect(await pathsIn(await workspaceWith(file('.GIT/x'), file('a/.Git/y')))).toEqual([
      ...['.GIT', '.GIT/x', 'a', 'a/.Git', 'a/.Git/y'],
    ])
  })

  it.each([
    ['folder', directory('a/b/.git')],
    ['file', file('a/b/.git', 'gitdir: x\n')],
    ['link', symlink('a/b/.git', 'x')],
  ])('refuses a nested repository by its .git %s unless that is excluded', async (_kind, node) => {
    const workspace = await workspaceWith(node, file('a/k'))
    const error = await refusal(indexOf(workspace))
    expect(error.constructor).toBe(Error)
    expect(error).toMatchObject({
      message: 'file_checkpoint_nested_repository',
      code: 'file_checkpoint_nested_repository',
      relativePath: 'a/b/.git',
    })
    expect(await pathsIn(workspace, 'a/b')).toEqual(['a', 'a/k'])
    expect(await pathsIn(workspace, 'a/b/.git')).toEqual(['a', 'a/b', 'a/k'])
  })

  it.each([
    ['fifo', fifo('p')],
    ['socket', socket('p')],
  ])('refuses a %s unless it is excluded', async (nodeKind, node) => {
    const workspace = await workspaceWith(node)
    expect(await refusal(indexOf(workspace))).toMatchObject({
      code: 'file_checkpoint_unsupported_node',
      relativePath: 'p',
      nodeKind,
    })
    expect(await pathsIn(workspace, 'p')).toEqual([])
  })

  it('refuses hard links with their count', async () => {
    const error = await refusal(indexOf(await workspaceWith(file('a'), hardlink('b', 'a'), hardlink('c', 'a'))))
    expect(error).toMatchObject({ code: 'file_checkpoint_hardlink_unsupported', relativePath: 'a', links: 3 })
  })

  it('leaves out what is at or within an excluded root, and nothing above it', async () => {
    const workspace = await workspaceWith(file('a/b/c/secret'), file('a/b/keep'), file('a/b/c2'), file('z'))
    expect(await pathsIn(workspace, 'a/b/c')).toEqual(['a', 'a/b', 'a/b/c2', 'a/b/keep', 'z'])
    expect(await pathsIn(workspace, 'a/b/keep')).toEqual(['a', 'a/b', 'a/b/c', 'a/b/c/secret', 'a/b/c2', 'z'])
    expect(await pathsIn(workspace, '.')).toEqual([])
  })

  it('leaves out a link that lies in an excluded root or leads to one, but not a link to the root itself', async () => {
    const workspace = await workspaceWith(
      ...[file('x/secret'), symlink('x/inner', '../a'), symlink('to-secret', 'x/secret'), symlink('to-x', 'x')],
      ...[symlink('to-root', '.'), file('a')],
    )
    expect(await pathsIn(workspace, 'x')).toEqual(['a', 'to-root'])
  })

  it('refuses a root that is a link, a file or missing', async () => {
    const workspace = await workspaceWith(file('real/a'), symlink('alias', 'real'))
    const below = (name: string): Promise<FileTreeIndex> =>
      buildFileTreeIndex({ resourceRoot: path.join(workspace.source, name) })
    expect(await refusal(below('alias'))).toMatchObject({ message: 'file_checkpoint_unsupported_node' })
    expect(await refusal(below('real/a'))).toMatchObject({ message: 'file_checkpoint_unsupported_node' })
    expect(await refusal(below('missing'))).toMatchObject({ code: 'ENOENT', errno: -os.constants.errno.ENOENT })
  })

  const quotas = { maxFiles: 4, maxSourceBytes: 9, prepareTimeoutMs: 60_000 }
  const counted = [file('a', '1234'), file('d/b', '56789'), symlink('l', 'a')]

  it('holds its quotas exactly', async () => {
    const workspace = await workspaceWith(...counted)
    expect((await indexOf(workspace, { quotas })).entries).toHaveLength(4)
    const tooMany = await refusal(indexOf(workspace, { quotas: { ...quotas, maxFiles: 3 } }))
    expect(tooMany).toBeInstanceOf(FileCheckpointDiagnosticError)
    expect(tooMany).toMatchObject({
      message: 'file_checkpoint_quota_exceeded',
      diagnostic: 'snapshot nodeCount=4 exceeds maxFiles=3',
      ...{ limit: 3, value: 4, relativePath: 'l' },
    })
    expect(await refusal(indexOf(workspace, { quotas: { ...quotas, maxSourceBytes: 8 } }))).toMatchObject({
      message: 'file_checkpoint_quota_exceeded',
      diagnostic: 'snapshot sourceBytes=9 exceeds maxSourceBytes=8',
      ...{ limit: 8, value: 9, relativePath: 'd/b' },
    })
  })

  it('does not count what is excluded', async () => {
    const workspace = await workspaceWith(...counted, file('x/1'), file('x/2'))
    const excludedRoots = [path.join(workspace.source, 'x')]
    expect((await indexOf(workspace, { quotas, excludedRoots })).entries).toHaveLength(4)
  })

  it('holds an absolute deadline', async () => {
    const workspace = await workspaceWith(...counted)
    const error = await refusal(indexOf(workspace, { deadlineMs: 1_000 }))
    expect(error).toBeInstanceOf(FileCheckpointDiagnosticError)
    expect(error).toMatchObject({
      message: 'file_checkpoint_prepare_timeout',
      diagnostic: 'snapshot preparation exceeded deadlineMs=1000',
    })
    expect((await indexOf(workspace, { deadlineMs: Date.now() + 600_000 })).entries).toHaveLength(4)
  })

  it('stops for a signal, before and during the work', async () => {
    const workspace = await workspaceWith(...counted)
    const reason = new Error('enough')
    expect(await refusal(indexOf(workspace, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    const controller = new AbortController()
    const running = indexOf(workspace, { signal: controller.signal })
    controller.abort(reason)
    expect(await refusal(running)).toBe(reason)
  })

  it.each([
    [{ resourceRoot: undefined }, 'ERR_INVALID_ARG_TYPE', 'options.resourceRoot'],
    [{ resourceRoot: '' }, 'ERR_INVALID_ARG_VALUE', 'options.resourceRoot'],
    [{ resourceRoot: '/a\0' }, 'ERR_INVALID_ARG_VALUE', 'options.resourceRoot'],
    [{ excludedRoots: '/x' }, 'ERR_INVALID_ARG_TYPE', 'options.excludedRoots'],
    [{ excludedRoots: [7] }, 'ERR_INVALID_ARG_TYPE', 'options.excludedRoots'],
    [{ quotas: { maxFiles: 1 } }, 'ERR_INVALID_ARG_TYPE', 'options.quotas.maxSourceBytes'],
    [{ deadlineMs: 'soon' }, 'ERR_INVALID_ARG_TYPE', 'options.deadlineMs'],
  ])('refuses %j', async (options, code, named) => {
    const workspace = await workspaceWith(file('a'))
    const error = await refusal(indexOf(workspace, options as never))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.code).toBe(code)
    expect(error.message).toContain(named)
  })
})

describe('a limit', () => {
  it('that is enough changes nothing, however many links are left out', async () => {
    const workspace = await workspaceWith(directory('excluded'))
    const names = Array.from({ length: 20_000 }, (_, index) => sha256(`${index}`))
    names.forEach((name, index) => {
      const absolute = path.join(workspace.source, name)
      if (index % 1000 === 0) fs.writeFileSync(absolute, name)
      else fs.symlinkSync('excluded', absolute)
    })
    const excludedRoots = [path.join(workspace.source, 'excluded')]
    const whole = await indexOf(workspace, { excludedRoots })
    expect(whole.fileCount).toBe(20)
    const quotas = { maxFiles: 20, maxSourceBytes: 1_000_000, prepareTimeoutMs: 60_000 }
    expect(await indexOf(workspace, { excludedRoots, quotas })).toEqual(whole)
    const tight = await refusal(indexOf(workspace, { excludedRoots, quotas: { ...quotas, maxFiles: 19 } }))
    expect(tight).toMatchObject({ relativePath: whole.entries.at(-1)?.relativePath, value: 20 })
  })
})

describe('names that are not UTF-8', () => {
  const names = [Buffer.from([0x61, 0xff]), Buffer.from([0x61, 0xfe]), Buffer.from('b')]

  function withRawNames(): Workspace {
    const workspace = createWorkspace()
    for (const name of names) {
      fs.writeFileSync(Buffer.concat([Buffer.from(`${workspace.source}/`), name]), name)
    }
    const folder = Buffer.concat([Buffer.from(`${workspace.source}/`), Buffer.from([0x7a, 0x80])])
    fs.mkdirSync(folder)
    fs.writeFileSync(Buffer.concat([folder, Buffer.from('/inner')]), 'x')
    return workspace
  }

  it('are ordered and hashed by their bytes, which the entries carry', async () => {
    const workspace = withRawNames()
    const { entries, treeHash } = await indexOf(workspace)
    expect(entries.map(({ rawPath }) => rawPath?.toString('hex') ?? null)).toEqual([
      ...['61fe', '61ff', null, '7a80', '7a802f696e6e6572'],
    ])
    expect(entries[0]).toMatchObject({ relativePath: 'a\uFFFD' })
    expect(treeHash).toBe(treeHashOf(workspace.source))
    expect(computeTreeHash([...entries].reverse())).toBe(treeHash)
  })

  it('are told apart by a difference, which carries them too', async () => {
    const workspace = withRawNames()
    const before = await indexOf(workspace)
    fs.writeFileSync(Buffer.concat([Buffer.from(`${workspace.source}/`), names[0] as Buffer]), 'changed')
    const changes = diffFileTreeIndices(before, await indexOf(workspace))
    expect(changes).toHaveLength(1)
    expect(changes[0]).toMatchObject({ kind: 'modified', relativePath: 'a\uFFFD', rawPath: names[0] })
  })
})

describe('diffFileTreeIndices', () => {
  it('lists what was added, deleted and modified in path order', async () => {
    const workspace = await workspaceWith(
      file('a', '1'),
      file('b', '2'),
      symlink('l', 'a'),
      directory('d'),
      file('same'),
    )
    const before = await indexOf(workspace)
    const at = (name: string): string => path.join(workspace.source, name)
    fs.writeFileSync(at('b'), '3')
    fs.rmSync(at('a'))
    fs.rmSync(at('l'))
    fs.symlinkSync('b', at('l'))
    fs.rmdirSync(at('d'))
    fs.writeFileSync(at('d'), 'a file now')
    fs.writeFileSync(at('Z'), 'new')
    const after = await indexOf(workspace)
    const nodeIn = (index: FileTreeIndex, name: string): SnapshotNode =>
      index.entries.find(({ relativePath }) => relativePath === name)?.node ?? { kind: 'absent' }
    expect(diffFileTreeIndices(before, after)).toEqual(
      [
        ['Z', 'added'],
        ['a', 'deleted'],
        ['b', 'modified'],
        ['d', 'modified'],
        ['l', 'modified'],
      ].map(([relativePath, kind]) => ({
        relativePath,
        kind,
        before: nodeIn(before, relativePath as string),
        after: nodeIn(after, relativePath as string),
      })),
    )
    expect(diffFileTreeIndices(after, after)).toEqual([])
  })

  it('sees a mode alone', async () => {
    const workspace = await workspaceWith(file('a', 'x', '0644'))
    const before = await indexOf(workspace)
    fs.chmodSync(path.join(workspace.source, 'a'), 0o755)
    expect(diffFileTreeIndices(before, await indexOf(workspace))).toMatchObject([
      { relativePath: 'a', kind: 'modified' },
    ])
  })
})

describe('readObservedChanges', () => {
  it('keeps the order that was given and leaves out what is the same', async () => {
    const baseline = await workspaceWith(file('a', '1'), file('b', '2'), file('same'))
    const execution = await workspaceWith(file('b', '3'), file('c', '4'), file('same'))
    const changes = await readObservedChanges(baseline.source, execution.source, ['c', 'same', 'b', 'a', 'nowhere'])
    expect(changes.map(({ relativePath, kind }) => `${kind} ${relativePath}`)).toEqual([
      'added c',
      'modified b',
      'deleted a',
    ])
    expect(changes[0]).toMatchObject({ before: { kind: 'absent' }, after: { kind: 'file', size: 1 } })
    expect(changes[2]).toMatchObject({ before: { kind: 'file', size: 1 }, after: { kind: 'absent' } })
  })

  it.each(['', '../b', '/b', 'a/../../b', 'a\0'])('refuses the path %j', async (relativePath) => {
    const workspace = await workspaceWith(file('a'))
    const error = await refusal(readObservedChanges(workspace.source, workspace.outside, ['a', relativePath]))
    expect(error.message).toBe('file_checkpoint_path_escape')
  })
})

describe('readSnapshotNode', () => {
  it('reads each kind, with the complete mode', async () => {
    const workspace = await workspaceWith(file('f', 'abc', '4755'), directory('d', '0700'), symlink('l', 'f'))
    const at = (name: string): string => path.join(workspace.source, name)
    const hashes = new Map(readTree(workspace.source).map(({ relativePath, hash }) => [relativePath, hash]))
    expect(await readSnapshotNode(at('f'))).toEqual({ kind: 'file', mode: 0o104755, size: 3, hash: hashes.get('f') })
    expect(await readSnapshotNode(at('d'))).toEqual({ kind: 'directory', mode: 0o040700, hash: hashes.get('d') })
    expect(await readSnapshotNode(at('l'))).toEqual({ kind: 'symlink', target: 'f', hash: hashes.get('l') })
  })

  it('is absent for what is missing, also below a file', async () => {
    const workspace = await workspaceWith(file('f'))
    expect(await readSnapshotNode(path.join(workspace.source, 'missing/deep'))).toEqual({ kind: 'absent' })
    expect(await readSnapshotNode(path.join(workspace.source, 'f/below'))).toEqual({ kind: 'absent' })
  })

  it.each([
    ['d/', 'd'],
    ['d/.', 'd'],
    ['d/..', '.'],
    ['l/..', 'd'],
    ['l/', 'd/e'],
    ['f/', null],
    ['f/.', null],
    ['f/..', null],
    ['none/', null],
    ['none/..', null],
    ['dangling/', null],
    ['loop/..', 'ELOOP'],
  ])('gives for %s what the system finds there', async (spelling, found) => {
    const workspace = await workspaceWith(
      ...[file('f'), directory('d', '0750'), directory('d/e', '0711'), symlink('l', 'd/e')],
      ...[symlink('dangling', 'no/where'), symlink('loop', 'loop')],
    )
    const node = readSnapshotNode(`${workspace.source}/${spelling}`)
    if (found === 'ELOOP') expect((await refusal(node)).code).toBe('ELOOP')
    else if (found === null) expect(await node).toEqual({ kind: 'absent' })
    else expect(await node).toMatchObject({ mode: fs.lstatSync(path.join(workspace.source, found)).mode })
  })

  it('refuses a special node', async () => {
    const workspace = await workspaceWith(fifo('p'))
    const error = await refusal(readSnapshotNode(path.join(workspace.source, 'p')))
    expect(error).toMatchObject({ code: 'file_checkpoint_unsupported_node', nodeKind: 'fifo' })
  })
})

describe('single nodes and paths', () => {
  it('hashes the content of a file', async () => {
    const workspace = await workspaceWith(file('f', 'content'))
    expect(await hashFileContent(path.join(workspace.source, 'f'))).toBe(sha256('content'))
    expect(await refusal(hashFileContent(path.join(workspace.source, 'g')))).toMatchObject({ code: 'ENOENT' })
  })

  it.runIf(process.platform === 'linux')('hashes a file whose size says nothing', async () => {
    expect(await hashFileContent('/proc/filesystems')).toBe(sha256(fs.readFileSync('/proc/filesystems')))
  })

  it('compares nodes by kind, mode, size, target and hash', () => {
    const node = { kind: 'file', mode: 0o100644, size: 1, hash: 'h' } as const
    expect(snapshotNodesEqual(node, { ...node })).toBe(true)
    for (const other of [{ mode: 0o100600 }, { size: 2 }, { hash: 'i' }]) {
      expect(snapshotNodesEqual(node, { ...node, ...other })).toBe(false)
    }
    expect(snapshotNodesEqual(node, { kind: 'absent' })).toBe(false)
    expect(snapshotNodesEqual({ kind: 'absent' }, { kind: 'absent' })).toBe(true)
    const link = { kind: 'symlink', target: 'a', hash: 'h' } as const
    expect(snapshotNodesEqual(link, { ...link, target: 'b' })).toBe(false)
    expect(presentNodeKind(link)).toBe('symlink')
  })

  it('orders by bytes, not by UTF-16 units', () => {
    expect(['\u{1F600}', 'a/x', '\uFF61', 'a.txt', 'a'].sort(compareRelativePathsBytewise)).toEqual([
      ...['a', 'a.txt', 'a/x', '\uFF61', '\u{1F600}'],
    ])
    expect(compareRelativePathsBytewise('a', 'a')).toBe(0)
  })

  it('refuses relative paths that are none', () => {
    for (const relativePath of ['', '/a', '..', '../a', 'a/../..', 'a\0b']) {
      const error = thrownBy(() => validateRelativePath(relativePath))
      expect(error).toMatchObject({ message: 'file_checkpoint_path_escape', code: 'file_checkpoint_path_escape' })
    }
    for (const relativePath of ['a', 'a/b', '..a', 'a..', '...']) validateRelativePath(relativePath)
  })

  it('joins on the canonical root', async () => {
    const workspace = createWorkspace()
    fs.symlinkSync('src', path.join(workspace.base, 'alias'))
    expect(joinRelativePath(path.join(workspace.base, 'alias'), 'a/b')).toBe(path.join(workspace.source, 'a/b'))
    expect(thrownBy(() => joinRelativePath(workspace.source, '../a')).message).toBe('file_checkpoint_path_escape')
  })

  it('knows Git paths and excluded paths', () => {
    expect(['.git', '.git/x', '.gitx', 'a/.git', '.GIT'].map(isRootGitMetadataPath)).toEqual([
      ...[true, true, false, false, false],
    ])
    expect(['.git', '.git/x', 'a/.git', 'a/.git/x', 'a/.gitx', 'a/.GIT'].map(isNestedGitPath)).toEqual([
      ...[false, false, true, true, false, false],
    ])
    expect(
      ['a', 'a/b', 'a/b/c', 'a/bc'].map((relativePath) => isExcludedTreePath(relativePath, ['/r/a/b'], '/r')),
    ).toEqual([...[false, true, true, false]])
  })
})
