// Git boundaries, over directories of the shapes that Git makes and of shapes that only look like them. Every shape is
// made by hand; where the `git` program is there, its own repositories are looked at too and its answers compared.
// The temp directory must not be inside a repository: the first test says so where it is.

import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'

import {
  containingGitRoot,
  inspectGitResourceIdentity,
  isGitMetadataPath,
  resolveGitResourceIdentity,
  resolveWorkspaceRootMatch,
  sameGitResourceIdentity,
} from '../index.mjs'
import { runChild } from './support/child'
import { thrownBy } from './support/refusal'
import {
  buildTree,
  createWorkspace,
  directory,
  fifo,
  file,
  gitDirectory,
  socket,
  type Workspace,
} from './support/workspace'

const SHA1 = '0123456789abcdefABCDEF0123456789abcdef01'
const absent = { status: 'absent' }

let workspace: Workspace
let root: string

beforeEach(() => {
  workspace = createWorkspace()
  root = workspace.source
})

const at = (...parts: string[]): string => path.join(root, ...parts)

function write(relativePath: string, text: string): string {
  const absolute = at(relativePath)
  fs.mkdirSync(path.dirname(absolute), { recursive: true })
  fs.writeFileSync(absolute, text)
  return absolute
}

/** A repository with a `.git` directory. */
async function repository(name: string): Promise<string> {
  await buildTree(workspace, [...gitDirectory(path.join(name, '.git')), directory(path.join(name, 'src/deep'))])
  return at(name)
}

/** A linked worktree of `main`, and the git dir of its own. */
function worktree(main: string, name: string): { side: string; own: string } {
  const own = path.join(main, '.git/worktrees', name)
  fs.mkdirSync(own, { recursive: true })
  fs.writeFileSync(path.join(own, 'HEAD'), 'ref: refs/heads/side\n')
  fs.writeFileSync(path.join(own, 'commondir'), '../..\n')
  fs.writeFileSync(path.join(own, 'gitdir'), `${at(name, '.git')}\n`)
  write(`${name}/.git`, `gitdir: ${own}\n`)
  return { side: at(name), own }
}

function resolved(repositoryRoot: string, gitEntryPath: string, gitDir = gitEntryPath, commonDir = gitDir) {
  return { status: 'resolved', identity: { repositoryRoot, gitDir, commonDir, gitEntryPath } }
}

function invalid(boundaryPath: string, ...metadataRoots: string[]) {
  return { status: 'invalid', boundaryPath, metadataRoots }
}

describe('no boundary', () => {
  it('is absent up to the root of the file system', () => {
    expect(inspectGitResourceIdentity(os.tmpdir()), 'the temp directory is inside a repository').toEqual(absent)
    expect(inspectGitResourceIdentity('/')).toEqual(absent)
    expect(resolveGitResourceIdentity(root)).toBeNull()
    expect(containingGitRoot(root)).toBeNull()
    expect(isGitMetadataPath(at('.git'))).toBe(false)
    expect(isGitMetadataPath(at('src/.git/config'))).toBe(false)
  })

  it('is not made by other letter cases or longer names', async () => {
    await buildTree(workspace, [...gitDirectory('.GIT'), ...gitDirectory('.git2'), file('.gitignore')])
    expect(inspectGitResourceIdentity(root)).toEqual(absent)
  })
})

describe('a `.git` directory', () => {
  it('is found from anywhere below it, existing or not', async () => {
    const main = await repository('main')
    const expected = resolved(main, path.join(main, '.git'))
    fs.writeFileSync(path.join(main, 'file'), '')
    for (const below of ['', 'src/deep', 'file', 'file/below', 'none/such', 'src/../src/./deep/']) {
      expect(inspectGitResourceIdentity(path.join(main, below)), below).toEqual(expected)
    }
    expect(resolveGitResourceIdentity(main)).toEqual(expected.identity)
  })

  it('is found from a relative path, which is taken from the working directory', async () => {
    const main = await repository('main')
    const relative = path.relative(process.cwd(), path.join(main, 'src'))
    expect(containingGitRoot(relative)).toBe(main)
  })

  it('is found through a link that leads into it, and not through one that leads away', async () => {
    const main = await repository('main')
    fs.mkdirSync(at('elsewhere'))
    fs.symlinkSync('main/src', at('into'))
    fs.symlinkSync('../elsewhere', at('main/away'))
    fs.symlinkSync('nowhere', at('main/dangling'))
    expect(containingGitRoot(at('into/deep'))).toBe(main)
    expect(containingGitRoot(at('main/away'))).toBeNull()
    expect(containingGitRoot(at('main/dangling/x'))).toBe(main)
  })

  it.each([
    'ref: refs/heads/main',
    'ref: refs/heads/main\r\n',
    `${SHA1}\n`,
    `${SHA1}abcdef\n`,
    `${SHA1}${SHA1.slice(0, 24)}\n`,
  ])('is resolved with the HEAD %j', async (head) => {
    const main = await repository('main')
    write('main/.git/HEAD', head)
    expect(containingGitRoot(main)).toBe(main)
    expect(inspectGitResourceIdentity(main).status).toBe('resolved')
  })

  it.each([
    '',
    'main\n',
    'ref: refs/\n',
    'ref: heads/main\n',
    'ref: refs/heads/a\nref: refs/heads/b\n',
    `${SHA1}\n${SHA1}\n`,
    SHA1.slice(1),
    `${SHA1}${SHA1.slice(0, 25)}`,
    `${SHA1.slice(1)}g`,
  ])('is invalid with the HEAD %j', async (head) => {
    const main = await repository('main')
    write('main/.git/HEAD', head)
    expect(inspectGitResourceIdentity(main)).toEqual(invalid(main, path.join(main, '.git')))
  })

  it.each([
    ['[CORE]', 'resolved'],
    ['# first\n[user]\n\tname = "a [core] b"\n[core]\n\tbare = false\n', 'resolved'],
    ['', 'invalid'],
    ['[core "x"]\n', 'invalid'],
    ['[user] # [core]\n', 'invalid'],
    ['[user]\n\tname = a\\\n[core]\n', 'invalid'],
  ])('with the config %j is %s', async (config, status) => {
    const main = await repository('main')
    write('main/.git/config', config)
    expect(inspectGitResourceIdentity(main).status).toBe(status)
  })

  it.each(['HEAD', 'config', 'objects', 'refs'])(
    'is invalid without %s, or with a link, pipe or other in its place',
    async (name) => {
      const main = await repository('main')
      const part = path.join(main, '.git', name)
      const expected = invalid(main, path.join(main, '.git'))
      fs.renameSync(part, at('moved'))
      expect(inspectGitResourceIdentity(main)).toEqual(expected)
      fs.symlinkSync(at('moved'), part)
      expect(inspectGitResourceIdentity(main)).toEqual(expected)
      fs.rmSync(part)
      execFileSync('mkfifo', [part])
      expect(inspectGitResourceIdentity(main)).toEqual(expected)
      fs.rmSync(part)
      if (fs.statSync(at('moved')).isDirectory()) fs.writeFileSync(part, '')
      else fs.mkdirSync(part)
      expect(inspectGitResourceIdentity(main)).toEqual(expected)
    },
  )

  it('is invalid when it is empty, and nothing above it is asked', async () => {
    await repository('main')
    fs.mkdirSync(at('main/src/.git'))
    expect(inspectGitResourceIdentity(at('main/src/deep'))).toEqual(invalid(at('main/src'), at('main/src/.git')))
  })
})

describe('a `.git` entry of another kind', () => {
  it('is invalid as a link, wherever it leads', async () => {
    await buildTree(workspace, gitDirectory('meta'))
    for (const target of ['meta', 'nowhere', '.git', 'meta/HEAD']) {
      fs.symlinkSync(target, at('.git'))
      expect(inspectGitResourceIdentity(root), target).toEqual(invalid(root, at('.git')))
      fs.rmSync(at('.git'))
    }
  })

  it('is invalid as a pipe or a socket, and is never opened', async () => {
    await buildTree(workspace, [fifo('pipe/.git'), socket('socket/.git')])
    expect(inspectGitResourceIdentity(at('pipe'))).toEqual(invalid(at('pipe'), at('pipe/.git')))
    expect(inspectGitResourceIdentity(at('socket'))).toEqual(invalid(at('socket'), at('socket/.git')))
  })

  it('is invalid where an ordinary user cannot read it', async () => {
    await repository('a')
    await repository('b')
    await repository('locked/c')
    worktree(at('b'), 'd')
    fs.chmodSync(at('a/.git'), 0)
    fs.chmodSync(at('b/.git/HEAD'), 0)
    fs.chmodSync(at('d/.git'), 0)
    fs.chmodSync(at('locked'), 0)
    const [answers] = await runChild(`send(input.map((target) => sallyport.inspectGitResourceIdentity(target)))`, {
      workspace,
      asOrdinaryUser: true,
      input: [at('a/src'), at('b'), at('d'), at('locked/c/src')],
    })
    fs.chmodSync(at('locked'), 0o755)
    expect(answers).toEqual([
      invalid(at('a'), at('a/.git')),
      invalid(at('b'), at('b/.git')),
      invalid(at('d'), at('d/.git')),
      // Whether there is a boundary cannot be told, so there is no telling that there is none.
      invalid(at('locked'), at('locked/.git')),
    ])
  })
})

describe('a `.git` file', () => {
  let main: string
  let side: string
  let own: string

  beforeEach(async () => {
    main = await repository('main')
    ;({ side, own } = worktree(main, 'side'))
  })

  const sideEntry = (): string => path.join(side, '.git')
  const common = (): string => path.join(main, '.git')

  it('of a linked worktree is resolved', () => {
    expect(inspectGitResourceIdentity(path.join(side, 'x/y'))).toEqual(resolved(side, sideEntry(), own, common()))
  })

  it('may hold relative paths, each taken from its own place', () => {
    fs.writeFileSync(sideEntry(), 'gitdir: ../main/.git/worktrees/side\n')
    fs.writeFileSync(path.join(own, 'gitdir'), '../../../../side/.git\n')
    expect(inspectGitResourceIdentity(side)).toEqual(resolved(side, sideEntry(), own, common()))
  })

  it('may hold paths through links, resolved as the system does it', () => {
    fs.symlinkSync('main/src/deep', at('link'))
    fs.writeFileSync(sideEntry(), `gitdir: ${root}/link/../../.git/worktrees/side\n`)
    expect(inspectGitResourceIdentity(side)).toEqual(resolved(side, sideEntry(), own, common()))
    fs.writeFileSync(sideEntry(), `gitdir: ${root}/link/../main/.git/worktrees/side\n`)
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry()))
  })

  it.each([
    ['nothing', ''],
    ['no prefix', '../main/.git/worktrees/side\n'],
    ['no path', 'gitdir: \n'],
    ['two lines', 'gitdir: ../main/.git/worktrees/side\ngitdir: ../main/.git\n'],
    ['a path to nothing', 'gitdir: ../none\n'],
    ['a path to a file', 'gitdir: ../main/.git/HEAD\n'],
    ['a path that is too long', `gitdir: ${'x/'.repeat(10_000)}\n`],
  ])('is invalid with %s', (_what, text) => {
    fs.writeFileSync(sideEntry(), text)
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry()))
  })

  it('is invalid where HEAD or the back pointer is not right, with all its metadata roots', () => {
    const all = invalid(side, sideEntry(), own, common())
    const back = path.join(own, 'gitdir')
    for (const text of ['/none/.git\n', `${path.join(main, '.git')}\n`, `${side}\n`, '']) {
      fs.writeFileSync(back, text)
      expect(inspectGitResourceIdentity(side), text).toEqual(all)
    }
    fs.rmSync(back)
    expect(inspectGitResourceIdentity(side)).toEqual(all)
    fs.writeFileSync(back, `${sideEntry()}\n`)
    expect(inspectGitResourceIdentity(side).status).toBe('resolved')
    fs.writeFileSync(path.join(own, 'HEAD'), 'x\n')
    expect(inspectGitResourceIdentity(side)).toEqual(all)
  })

  it('is invalid where the common dir is not right, with the metadata roots that could be reached', () => {
    const commondir = path.join(own, 'commondir')
    for (const text of ['../none\n', '../../HEAD\n', '', '../..\n../..\n']) {
      fs.writeFileSync(commondir, text)
      expect(inspectGitResourceIdentity(side), text).toEqual(invalid(side, sideEntry(), own))
    }
    fs.writeFileSync(commondir, '.\n')
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry(), own))
    fs.writeFileSync(commondir, '../../..\n')
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry(), own, main))
    fs.writeFileSync(commondir, '../..\n')
    fs.rmSync(path.join(common(), 'refs'), { recursive: true })
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry(), own, common()))
  })

  it('is invalid where its git dir is not one of the `worktrees` of the common dir', () => {
    const moved = at('moved')
    fs.renameSync(own, moved)
    fs.writeFileSync(path.join(moved, 'commondir'), `${common()}\n`)
    fs.writeFileSync(sideEntry(), `gitdir: ${moved}\n`)
    expect(inspectGitResourceIdentity(side)).toEqual(invalid(side, sideEntry(), moved, common()))
  })

  it('copied elsewhere is invalid: the back pointer is to the first', () => {
    write('copy/.git', fs.readFileSync(sideEntry(), 'utf8'))
    expect(inspectGitResourceIdentity(at('copy'))).toEqual(invalid(at('copy'), at('copy/.git'), own, common()))
  })

  it('of a submodule or with a separate git dir is invalid', async () => {
    await buildTree(workspace, [...gitDirectory('main/.git/modules/sub'), ...gitDirectory('meta')])
    write('main/sub/.git', 'gitdir: ../.git/modules/sub\n')
    write('separate/.git', `gitdir: ${at('meta')}\n`)
    expect(inspectGitResourceIdentity(at('main/sub/x'))).toEqual(
      invalid(at('main/sub'), at('main/sub/.git'), at('main/.git/modules/sub')),
    )
    expect(inspectGitResourceIdentity(at('separate'))).toEqual(invalid(at('separate'), at('separate/.git'), at('meta')))
    expect(isGitMetadataPath(at('meta/config'), at('separate'))).toBe(true)
    expect(isGitMetadataPath(at('main/.git/modules/sub/config'), at('main/sub'))).toBe(true)
  })
})

describe('a bare repository', () => {
  it('is resolved with all its parts, and is its own everything', async () => {
    await buildTree(workspace, gitDirectory('bare'))
    expect(inspectGitResourceIdentity(at('bare/objects/none'))).toEqual(resolved(at('bare'), at('bare')))
    expect(isGitMetadataPath(at('bare'))).toBe(true)
    expect(isGitMetadataPath(at('bare/anything'))).toBe(true)
  })

  const names = ['HEAD', 'config', 'objects', 'refs']

  it.each(names)('is not assumed for %s alone', (name) => {
    fs.mkdirSync(at('x', name), { recursive: true })
    expect(inspectGitResourceIdentity(at('x', name))).toEqual(absent)
  })

  it.each(names.flatMap((first, index) => names.slice(index + 1).map((second) => [first, second] as const)))(
    'is assumed for %s and %s, of whatever kind, and invalid',
    (first, second) => {
      fs.mkdirSync(at('x', first), { recursive: true })
      fs.symlinkSync('nowhere', at('x', second))
      expect(inspectGitResourceIdentity(at('x', first))).toEqual(invalid(at('x'), at('x')))
      expect(containingGitRoot(at('x'))).toBe(at('x'))
    },
  )

  it('is invalid with three parts, or with a part of the wrong kind', async () => {
    await buildTree(workspace, gitDirectory('bare'))
    fs.rmdirSync(at('bare/refs'))
    expect(inspectGitResourceIdentity(at('bare'))).toEqual(invalid(at('bare'), at('bare')))
    write('bare/refs', '')
    expect(inspectGitResourceIdentity(at('bare'))).toEqual(invalid(at('bare'), at('bare')))
  })

  it('is not assumed where there is a `.git`', async () => {
    const main = await repository('main')
    fs.mkdirSync(path.join(main, 'config'))
    fs.mkdirSync(path.join(main, 'objects'))
    expect(containingGitRoot(path.join(main, 'objects'))).toBe(main)
    expect(isGitMetadataPath(path.join(main, 'objects'))).toBe(false)
  })
})

describe('isGitMetadataPath', () => {
  it('takes the entry, the git dir and the common dir of a resolved boundary, and nothing else', async () => {
    const main = await repository('main')
    const { side, own } = worktree(main, 'side')
    fs.mkdirSync(path.join(main, '.git/logs/refs'), { recursive: true })
    write('main/.git/logs/HEAD', '')
    for (const inside of [
      at('main/.git'),
      at('main/.git/config'),
      at('main/.git/none/such'),
      at('main/.git/refs/heads'),
      at('main/.git/logs/HEAD'),
      path.join(side, '.git'),
      own,
      path.join(own, 'index'),
    ]) {
      expect(isGitMetadataPath(inside), inside).toBe(true)
    }
    for (const outside of [
      main,
      at('main/src'),
      at('main/.gitignore'),
      at('main/.git2'),
      side,
      path.join(side, 'x'),
      root,
    ]) {
      expect(isGitMetadataPath(outside), outside).toBe(false)
    }
  })

  it('is no test for segments: a folder `.git` that is no boundary of its own is not metadata', async () => {
    const main = await repository('main')
    expect(isGitMetadataPath(path.join(main, 'src/.git'))).toBe(false)
    expect(isGitMetadataPath(path.join(main, 'src/.git/config'))).toBe(false)
    expect(isGitMetadataPath(path.join(main, 'src/.GIT/config'))).toBe(false)
    // Once it is there it is a boundary, and its entry is metadata.
    fs.mkdirSync(path.join(main, 'src/.git'))
    expect(isGitMetadataPath(path.join(main, 'src/.git'), path.join(main, 'src'))).toBe(true)
    expect(isGitMetadataPath(path.join(main, 'src/.git/config'), path.join(main, 'src'))).toBe(true)
    expect(isGitMetadataPath(path.join(main, 'src/deep'))).toBe(false)
  })

  it('judges where a path leads to', async () => {
    const main = await repository('main')
    fs.symlinkSync('.git', path.join(main, 'alias'))
    fs.symlinkSync('src', path.join(main, 'plain'))
    fs.symlinkSync('main/.git/config', at('from-outside'))
    expect(isGitMetadataPath(path.join(main, 'alias'))).toBe(true)
    expect(isGitMetadataPath(path.join(main, 'alias/hooks/new'))).toBe(true)
    expect(isGitMetadataPath(at('from-outside'))).toBe(true)
    expect(isGitMetadataPath(path.join(main, 'plain/x'))).toBe(false)
  })

  it('takes everything at or within a metadata root of an invalid boundary', async () => {
    const main = await repository('main')
    const { side, own } = worktree(main, 'side')
    fs.rmSync(path.join(own, 'gitdir'))
    expect(isGitMetadataPath(path.join(side, '.git'))).toBe(true)
    expect(isGitMetadataPath(path.join(own, 'HEAD'), side)).toBe(true)
    expect(isGitMetadataPath(path.join(main, '.git/config'), side)).toBe(true)
    expect(isGitMetadataPath(path.join(main, 'src'), side)).toBe(false)
    expect(isGitMetadataPath(path.join(side, 'x'))).toBe(false)
    fs.mkdirSync(at('two/config'), { recursive: true })
    fs.mkdirSync(at('two/objects'))
    expect(isGitMetadataPath(at('two/config/x'))).toBe(true)
    expect(isGitMetadataPath(at('two/x'))).toBe(true)
  })

  it('goes by the boundary of the second path where one is given', async () => {
    const main = await repository('main')
    const other = await repository('other')
    expect(isGitMetadataPath(path.join(main, '.git/config'), path.join(main, 'src'))).toBe(true)
    expect(isGitMetadataPath(path.join(main, '.git/config'), other)).toBe(false)
    expect(isGitMetadataPath(path.join(main, '.git/config'), root)).toBe(false)
    expect(isGitMetadataPath(path.join(main, '.git/config'), undefined)).toBe(true)
  })
})

describe('sameGitResourceIdentity', () => {
  it('goes by the common dir of two resolved boundaries', async () => {
    const main = await repository('main')
    const other = await repository('other')
    const { side, own } = worktree(main, 'side')
    expect(sameGitResourceIdentity(main, path.join(main, 'src/none'))).toBe(true)
    expect(sameGitResourceIdentity(main, side)).toBe(true)
    expect(sameGitResourceIdentity(main, path.join(main, '.git/objects'))).toBe(true)
    expect(sameGitResourceIdentity(main, other)).toBe(false)
    expect(sameGitResourceIdentity(main, root)).toBe(false)
    expect(sameGitResourceIdentity(root, root)).toBe(false)
    fs.rmSync(path.join(own, 'gitdir'))
    expect(sameGitResourceIdentity(side, side)).toBe(false)
  })
})

describe('containingGitRoot', () => {
  it('gives the repository root, the boundary of an invalid one, or null', async () => {
    const main = await repository('main')
    const { side } = worktree(main, 'side')
    expect(containingGitRoot(path.join(main, 'src/deep'))).toBe(main)
    expect(containingGitRoot(path.join(side, 'x'))).toBe(side)
    fs.writeFileSync(path.join(side, '.git'), 'x')
    expect(containingGitRoot(path.join(side, 'x'))).toBe(side)
    expect(containingGitRoot(root)).toBeNull()
  })
})

describe('resolveWorkspaceRootMatch', () => {
  const repo = (found: string, relativePath: string) => ({ kind: 'repo', root: found, relativePath })
  const trusted = (found: string, relativePath: string) => ({ kind: 'trusted', root: found, relativePath })

  it('gives the root of the target where both are of one repository', async () => {
    const main = await repository('main')
    const { side } = worktree(main, 'side')
    expect(resolveWorkspaceRootMatch(main, undefined, path.join(main, 'src/x'))).toEqual(repo(main, 'src/x'))
    expect(resolveWorkspaceRootMatch(path.join(main, 'src'), [], main)).toEqual(repo(main, ''))
    expect(resolveWorkspaceRootMatch(main, [side], path.join(side, 'a/b'))).toEqual(repo(side, 'a/b'))
    expect(resolveWorkspaceRootMatch(side, [], path.join(main, 'src'))).toEqual(repo(main, 'src'))
  })

  it('gives nothing where the repositories differ, whatever is trusted', async () => {
    const main = await repository('main')
    const nested = await repository('main/nested')
    const other = await repository('other')
    expect(resolveWorkspaceRootMatch(main, [nested, main, root], path.join(nested, 'x'))).toBeNull()
    expect(resolveWorkspaceRootMatch(main, [other, root], path.join(other, 'x'))).toBeNull()
  })

  it('gives nothing for a target in an invalid boundary', async () => {
    const main = await repository('main')
    fs.mkdirSync(path.join(main, 'src/.git'))
    fs.mkdirSync(at('plain/.git'), { recursive: true })
    expect(resolveWorkspaceRootMatch(main, [main, path.join(main, 'src')], path.join(main, 'src/x'))).toBeNull()
    expect(resolveWorkspaceRootMatch(at('plain'), [root, at('plain')], at('plain/x'))).toBeNull()
  })

  it('gives the repo root where neither is in a repository and the target is within it', () => {
    fs.mkdirSync(at('plain/sub'), { recursive: true })
    fs.symlinkSync('plain', at('alias'))
    expect(resolveWorkspaceRootMatch(at('plain'), [at('plain/sub')], at('plain/sub/x'))).toEqual(
      repo(at('plain'), 'sub/x'),
    )
    expect(resolveWorkspaceRootMatch(at('alias'), undefined, at('alias'))).toEqual(repo(at('plain'), ''))
    expect(resolveWorkspaceRootMatch(at('plain'), undefined, at('plainer'))).toBeNull()
  })

  it('gives the longest trusted root otherwise, by where paths lead to', async () => {
    const main = await repository('main')
    fs.mkdirSync(at('plain/sub'), { recursive: true })
    fs.symlinkSync('plain/sub', at('alias'))
    const roots = [root, at('alias'), at('plain'), at('none')]
    expect(resolveWorkspaceRootMatch(main, roots, at('plain/sub/x'))).toEqual(trusted(at('plain/sub'), 'x'))
    expect(resolveWorkspaceRootMatch(main, roots, at('plain/x'))).toEqual(trusted(at('plain'), 'x'))
    expect(resolveWorkspaceRootMatch(main, roots, at('none/y'))).toEqual(trusted(at('none'), 'y'))
    expect(resolveWorkspaceRootMatch(main, roots, '/')).toBeNull()
    expect(resolveWorkspaceRootMatch(at('plain'), [root], path.join(main, 'src'))).toEqual(trusted(root, 'main/src'))
    // A link inside a trusted root does not take its target along.
    fs.symlinkSync(workspace.outside, at('plain/out'))
    expect(resolveWorkspaceRootMatch(main, roots, at('plain/out/o.txt'))).toBeNull()
  })

  it('never gives the repo root by way of a trusted root', async () => {
    const nested = await repository('plain/nested')
    fs.symlinkSync('plain', at('alias'))
    expect(resolveWorkspaceRootMatch(at('plain'), [at('plain'), at('alias')], path.join(nested, 'x'))).toBeNull()
    expect(resolveWorkspaceRootMatch(at('plain'), [at('plain'), root], path.join(nested, 'x'))).toEqual(
      trusted(root, 'plain/nested/x'),
    )
  })
})

describe('arguments', () => {
  const calls: [string, string, (value: any) => unknown][] = [
    ['inspectGitResourceIdentity', 'targetPath', (value) => inspectGitResourceIdentity(value)],
    ['resolveGitResourceIdentity', 'targetPath', (value) => resolveGitResourceIdentity(value)],
    ['sameGitResourceIdentity', 'leftPath', (value) => sameGitResourceIdentity(value, '/')],
    ['sameGitResourceIdentity', 'rightPath', (value) => sameGitResourceIdentity('/', value)],
    ['isGitMetadataPath', 'targetPath', (value) => isGitMetadataPath(value)],
    ['containingGitRoot', 'targetPath', (value) => containingGitRoot(value)],
    ['resolveWorkspaceRootMatch', 'repoRoot', (value) => resolveWorkspaceRootMatch(value, [], '/')],
    ['resolveWorkspaceRootMatch', 'targetPath', (value) => resolveWorkspaceRootMatch('/', [], value)],
    ['resolveWorkspaceRootMatch', 'trustedRoots[0]', (value) => resolveWorkspaceRootMatch('/', [value], '/')],
  ]

  it.each(calls)('%s refuses a wrong %s', (_name, argument, call) => {
    for (const value of [undefined, null, 1, {}, ['/']]) {
      const error = thrownBy(() => call(value))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.code).toBe('ERR_INVALID_ARG_TYPE')
      expect(error.message).toContain(argument)
    }
    for (const value of ['', 'a\0b']) {
      const error = thrownBy(() => call(value))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.code).toBe('ERR_INVALID_ARG_VALUE')
      expect(error.message).toContain(argument)
    }
  })

  it('refuses a wrong optional argument', () => {
    expect(thrownBy(() => isGitMetadataPath('/', '')).code).toBe('ERR_INVALID_ARG_VALUE')
    expect(thrownBy(() => isGitMetadataPath('/', 1 as any)).code).toBe('ERR_INVALID_ARG_TYPE')
    expect(thrownBy(() => resolveWorkspaceRootMatch('/', '/' as any, '/')).code).toBe('ERR_INVALID_ARG_TYPE')
  })
})

/** Runs git with no configuration but what is given here; throws where it fails. */
function git(folder: string, ...args: string[]): string {
  const env = {
    ...process.env,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  }
  const options = ['-c', 'init.defaultBranch=main', '-c', 'protocol.file.allow=always']
  return execFileSync('git', [...options, ...args], { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' }).trim()
}

/** What git itself says of the repository that a folder is in. */
function identityByGit(folder: string) {
  const tell = (...args: string[]): string =>
    fs.realpathSync(git(folder, 'rev-parse', '--path-format=absolute', ...args))
  return { repositoryRoot: tell('--show-toplevel'), gitDir: tell('--git-dir'), commonDir: tell('--git-common-dir') }
}

// Only a comparison: every shape is tested above without the program, which a machine need not have.
if (spawnSync('git', ['--version']).status === 0) {
  describe('compared with git', () => {
    beforeEach(() => {
      fs.mkdirSync(at('main/src'), { recursive: true })
      git(at('main'), 'init')
      git(at('main'), 'commit', '--allow-empty', '--message', 'first')
    })

    it('agrees on a repository, before and after the first commit and with a detached HEAD', () => {
      fs.mkdirSync(at('empty'))
      git(at('empty'), 'init')
      expect(resolveGitResourceIdentity(at('empty'))).toMatchObject(identityByGit(at('empty')))
      expect(resolveGitResourceIdentity(at('main/src'))).toMatchObject(identityByGit(at('main/src')))
      git(at('main'), 'checkout', '--detach')
      expect(resolveGitResourceIdentity(at('main/src'))).toMatchObject(identityByGit(at('main/src')))
    })

    it('agrees on repositories with packed references and with SHA-256', () => {
      git(at('main'), 'gc')
      expect(resolveGitResourceIdentity(at('main'))).toMatchObject(identityByGit(at('main')))
      fs.mkdirSync(at('long'))
      git(at('long'), 'init', '--object-format=sha256')
      git(at('long'), 'commit', '--allow-empty', '--message', 'first')
      git(at('long'), 'checkout', '--detach')
      expect(resolveGitResourceIdentity(at('long'))).toMatchObject(identityByGit(at('long')))
    })

    it('agrees on a linked worktree, with absolute and with relative pointers', () => {
      git(at('main'), 'worktree', 'add', at('side'))
      expect(resolveGitResourceIdentity(at('side'))).toMatchObject(identityByGit(at('side')))
      expect(sameGitResourceIdentity(at('side'), at('main/src'))).toBe(true)
      const own = at('main/.git/worktrees/side')
      fs.writeFileSync(at('side/.git'), `gitdir: ${path.relative(at('side'), own)}\n`)
      expect(resolveGitResourceIdentity(at('side'))).toMatchObject(identityByGit(at('side')))
    })

    it('agrees on a bare repository and its worktree', () => {
      git(root, 'clone', '--bare', at('main'), at('bare.git'))
      expect(resolveGitResourceIdentity(at('bare.git'))?.gitDir).toBe(
        fs.realpathSync(git(at('bare.git'), 'rev-parse', '--absolute-git-dir')),
      )
      git(at('bare.git'), 'worktree', 'add', at('side'))
      expect(resolveGitResourceIdentity(at('side'))).toMatchObject(identityByGit(at('side')))
      expect(sameGitResourceIdentity(at('side'), at('bare.git'))).toBe(true)
    })

    it('takes a submodule and a separate git dir for invalid, and knows the git dir', () => {
      git(root, 'clone', at('main'), at('library'))
      git(at('main'), 'submodule', 'add', at('library'), 'sub')
      fs.mkdirSync(at('separate'))
      git(at('separate'), 'init', '--separate-git-dir', at('meta'))
      expect(inspectGitResourceIdentity(at('main/sub'))).toEqual(
        invalid(at('main/sub'), at('main/sub/.git'), identityByGit(at('main/sub')).gitDir),
      )
      expect(inspectGitResourceIdentity(at('separate'))).toEqual(
        invalid(at('separate'), at('separate/.git'), identityByGit(at('separate')).gitDir),
      )
    })

    it('takes a worktree that was moved by hand for invalid', () => {
      git(at('main'), 'worktree', 'add', at('side'))
      fs.renameSync(at('side'), at('moved'))
      expect(inspectGitResourceIdentity(at('moved')).status).toBe('invalid')
      git(at('moved'), 'worktree', 'repair')
      expect(resolveGitResourceIdentity(at('moved'))).toMatchObject(identityByGit(at('moved')))
    })
  })
}
