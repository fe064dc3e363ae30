// Paths: canonical forms, roots, and the rules of relative paths. Nothing here needs a repository.

import fs from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'

import {
  canonicalPath,
  compareRelativePathsBytewise,
  isExcludedTreePath,
  isNestedGitPath,
  isPathOutsideRoot,
  isRootGitMetadataPath,
  joinRelativePath,
  pathWithinRoot,
  relativeWithinRepo,
  validateRelativePath,
} from '../index.mjs'
import { runChild } from './support/child'
import { thrownBy } from './support/refusal'
import { createWorkspace, type Workspace } from './support/workspace'

let workspace: Workspace
let root: string

beforeEach(() => {
  workspace = createWorkspace()
  root = workspace.source
})

const at = (...parts: string[]): string => path.join(root, ...parts)

/** Paths with more than their share of dots, slashes and repeated names. */
const anyPath = fc
  .array(fc.constantFrom('a', 'b', '..', '.', '', '.git', '..a'), { maxLength: 8 })
  .map((all) => all.join('/'))

describe('canonicalPath', () => {
  beforeEach(() => {
    fs.mkdirSync(at('real/sub'), { recursive: true })
    fs.symlinkSync('real', at('link'))
    fs.symlinkSync('nowhere/x', at('dangling'))
    fs.symlinkSync('circle-b', at('circle-a'))
    fs.symlinkSync('circle-a', at('circle-b'))
    fs.writeFileSync(at('file'), '')
  })

  it('resolves what exists as the system does', () => {
    for (const existing of ['real/sub', 'link/sub', 'link', 'file', '.']) {
      expect(canonicalPath(at(existing))).toBe(fs.realpathSync(at(existing)))
    }
    expect(canonicalPath('/')).toBe('/')
  })

  it('appends the missing rest as it is', () => {
    expect(canonicalPath(at('link/sub/none/x'))).toBe(at('real/sub/none/x'))
    expect(canonicalPath(at('none/link'))).toBe(at('none/link'))
    expect(canonicalPath(at('file/below'))).toBe(at('file/below'))
  })

  it('takes a dangling or circular link for missing', () => {
    expect(canonicalPath(at('link/../dangling/y'))).toBe(at('dangling/y'))
    expect(canonicalPath(at('circle-a/y'))).toBe(at('circle-a/y'))
  })

  it('resolves dots by text first, as path.resolve does', () => {
    expect(canonicalPath(`${root}/link/sub/../../link/./sub//`)).toBe(at('real/sub'))
    expect(canonicalPath(`${root}/none/../link`)).toBe(at('real'))
    expect(canonicalPath('/../..')).toBe('/')
  })

  it('takes a relative path from the working directory', () => {
    expect(canonicalPath('none-such/x')).toBe(path.join(fs.realpathSync(process.cwd()), 'none-such/x'))
    expect(canonicalPath(path.relative(process.cwd(), at('link/sub')))).toBe(at('real/sub'))
  })

  it('is not stopped by the length of a path or a name', () => {
    const long = at('link', 'x/'.repeat(20_000), 'y'.repeat(300))
    expect(canonicalPath(long)).toBe(at('real', 'x/'.repeat(20_000), 'y'.repeat(300)))
  })

  it('resolves as far as an ordinary user may look', async () => {
    fs.mkdirSync(at('locked/inside'), { recursive: true })
    fs.symlinkSync('locked', at('to-locked'))
    fs.symlinkSync('inside', at('locked/hidden'))
    fs.chmodSync(at('locked'), 0)
    const [answer] = await runChild('send(sallyport.canonicalPath(input))', {
      workspace,
      asOrdinaryUser: true,
      input: at('to-locked/hidden/x'),
    })
    fs.chmodSync(at('locked'), 0o755)
    expect(answer).toBe(at('locked/hidden/x'))
  })

  it('gives a canonical path back unchanged', () => {
    fc.assert(
      fc.property(anyPath, (tail) => {
        const once = canonicalPath(at('link', 'none', tail))
        return canonicalPath(once) === once
      }),
    )
  })
})

describe('roots', () => {
  it('hold themselves and what is beneath them, by components', () => {
    expect(pathWithinRoot(at('a'), at('a'))).toBe(true)
    expect(pathWithinRoot(at('a'), at('a/b/c'))).toBe(true)
    expect(pathWithinRoot('/', at('a'))).toBe(true)
    expect(pathWithinRoot(at('a'), at('ab'))).toBe(false)
    expect(pathWithinRoot(at('a'), at('a/../b'))).toBe(false)
    expect(pathWithinRoot(at('a/b'), at('a'))).toBe(false)
    expect(relativeWithinRepo(at('a'), at('a'))).toBe('')
    expect(relativeWithinRepo(at('a'), at('a/b/../c'))).toBe('c')
    expect(relativeWithinRepo(at('a'), at('ab'))).toBeNull()
    expect(relativeWithinRepo(at('a'), at('a/..b'))).toBe('..b')
  })

  it('are compared by where paths lead to', () => {
    fs.mkdirSync(at('real'))
    fs.symlinkSync('real', at('alias'))
    fs.symlinkSync(workspace.outside, at('real/out'))
    expect(relativeWithinRepo(at('alias'), at('real/x'))).toBe('x')
    expect(relativeWithinRepo(at('real'), at('alias/x'))).toBe('x')
    expect(pathWithinRoot(at('real'), at('real/out/o.txt'))).toBe(false)
    expect(pathWithinRoot(workspace.outside, at('real/out/o.txt'))).toBe(true)
  })

  it('agree with path.relative where there are no links', () => {
    fc.assert(
      fc.property(anyPath, anyPath, (left, right) => {
        const [base, target] = [path.resolve('/none-such', left), path.resolve('/none-such', right)]
        const relative = path.relative(base, target)
        const isOutside = relative === '..' || relative.startsWith('../')
        expect(isPathOutsideRoot(relative)).toBe(isOutside)
        expect(pathWithinRoot(base, target)).toBe(!isOutside)
        expect(relativeWithinRepo(base, target)).toBe(isOutside ? null : relative)
      }),
    )
  })
})

describe('isPathOutsideRoot', () => {
  it.each(['..', '../a', 'a/../..', 'a/../../b', './..', '/', '/a'])('%j is outside', (relativePath) => {
    expect(isPathOutsideRoot(relativePath)).toBe(true)
  })

  it.each(['', '.', 'a', '..a', 'a/..', 'a/../b', '...', 'a\\..\\..\\..'])('%j is not', (relativePath) => {
    expect(isPathOutsideRoot(relativePath)).toBe(false)
  })
})

describe('relative paths', () => {
  it('are ordered as bytes, not as UTF-16 units', () => {
    const ordered = ['a', 'a-b', 'a.txt', 'a/x', 'a0', 'e', 'l', '\uFF61', '\u{1F600}']
    expect([...ordered].reverse().sort(compareRelativePathsBytewise)).toEqual(ordered)
    expect(compareRelativePathsBytewise('', '')).toBe(0)
    const anyName = fc.string({ unit: 'binary' }).filter((name) => !name.includes('\0'))
    fc.assert(
      fc.property(anyName, anyName, (left, right) => {
        expect(compareRelativePathsBytewise(left, right)).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)))
      }),
    )
  })

  const unfit = ['', 'a\0b', '/', '/a', '..', '../a', 'a/../..', 'a/../../b']

  it.each(unfit)('%j is refused', (relativePath) => {
    for (const operation of [() => validateRelativePath(relativePath), () => joinRelativePath(root, relativePath)]) {
      const error = thrownBy(operation)
      expect(Object.getPrototypeOf(error)).toBe(Error.prototype)
      expect(error).toMatchObject({
        message: 'file_checkpoint_path_escape',
        code: 'file_checkpoint_path_escape',
        relativePath,
      })
    }
  })

  it.each(['a', 'a/b', '.', '..a', 'a/../b', 'a\\..\\..\\b', ' '])('%j is taken', (relativePath) => {
    expect(validateRelativePath(relativePath)).toBeUndefined()
    expect(joinRelativePath(root, relativePath)).toBe(path.resolve(root, relativePath))
  })

  it('are joined to the canonical root, and links below it are kept', () => {
    fs.mkdirSync(at('real'))
    fs.symlinkSync('real', at('alias'))
    fs.symlinkSync('.', at('real/self'))
    expect(joinRelativePath(at('alias'), 'self/x')).toBe(at('real/self/x'))
    expect(joinRelativePath(path.relative(process.cwd(), at('alias')), 'x')).toBe(at('real/x'))
  })

  it('are taken exactly where they stay beneath the root', () => {
    const stays = (relativePath: string): boolean =>
      relativePath !== '' && !path.isAbsolute(relativePath) && !/^\.\.(\/|$)/.test(path.normalize(relativePath))
    fc.assert(
      fc.property(anyPath, (relativePath) => {
        if (stays(relativePath)) {
          expect(pathWithinRoot('/none-such', joinRelativePath('/none-such', relativePath))).toBe(true)
        } else {
          expect(thrownBy(() => validateRelativePath(relativePath)).message).toBe('file_checkpoint_path_escape')
        }
      }),
    )
  })

  it.each([
    ['.git', true, false],
    ['.git/config', true, false],
    ['.gitignore', false, false],
    ['.GIT', false, false],
    ['a/.git', false, true],
    ['a/.git/b', false, true],
    ['.git/a/.git', true, true],
    ['a/.Git', false, false],
    ['a/.git2', false, false],
    ['', false, false],
  ])('%j: at the root %s, nested %s', (relativePath, atRoot, nested) => {
    expect(isRootGitMetadataPath(relativePath)).toBe(atRoot)
    expect(isNestedGitPath(relativePath)).toBe(nested)
  })
})

describe('isExcludedTreePath', () => {
  beforeEach(() => {
    fs.mkdirSync(at('a/b/c'), { recursive: true })
    fs.symlinkSync('a/b', at('to-b'))
    fs.symlinkSync('.', at('to-root'))
    fs.symlinkSync('src', path.join(workspace.base, 'alias'))
  })

  it.each([
    ['a', false],
    ['a/b', true],
    ['a/b/c', true],
    ['a/b/none', true],
    ['a/bc', false],
    ['a/other', false],
    ['to-b', true],
    ['to-root', false],
    ['', false],
  ])('%j with `a/b` excluded: %s', (relativePath, excluded) => {
    expect(isExcludedTreePath(relativePath, [at('a/b')], root)).toBe(excluded)
    const alias = path.join(workspace.base, 'alias')
    expect(isExcludedTreePath(relativePath, [at('none'), path.join(alias, 'to-b')], root)).toBe(excluded)
    expect(isExcludedTreePath(relativePath, [at('a/b')], alias)).toBe(excluded)
    expect(isExcludedTreePath(relativePath, [path.relative(process.cwd(), at('a/b'))], root)).toBe(excluded)
    expect(isExcludedTreePath(relativePath, [], root)).toBe(false)
  })
})

describe('arguments', () => {
  const paths: [string, (value: any) => unknown][] = [
    ['targetPath', (value) => canonicalPath(value)],
    ['root', (value) => pathWithinRoot(value, '/')],
    ['targetPath', (value) => pathWithinRoot('/', value)],
    ['repoRoot', (value) => relativeWithinRepo(value, '/')],
    ['targetPath', (value) => relativeWithinRepo('/', value)],
    ['root', (value) => joinRelativePath(value, 'a')],
    ['excludedRoots[0]', (value) => isExcludedTreePath('a', [value], '/')],
    ['resourceRoot', (value) => isExcludedTreePath('a', [], value)],
  ]

  it.each(paths)('a path that is no path is refused: %s', (argument, call) => {
    for (const [value, code] of [
      [undefined, 'ERR_INVALID_ARG_TYPE'],
      [1, 'ERR_INVALID_ARG_TYPE'],
      ['', 'ERR_INVALID_ARG_VALUE'],
      ['a\0b', 'ERR_INVALID_ARG_VALUE'],
    ] as const) {
      const error = thrownBy(() => call(value))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.code).toBe(code)
      expect(error.message).toContain(argument)
    }
  })

  const strings: ((value: any) => unknown)[] = [
    (value) => isPathOutsideRoot(value),
    (value) => compareRelativePathsBytewise(value, 'a'),
    (value) => compareRelativePathsBytewise('a', value),
    (value) => validateRelativePath(value),
    (value) => joinRelativePath('/', value),
    (value) => isRootGitMetadataPath(value),
    (value) => isNestedGitPath(value),
    (value) => isExcludedTreePath(value, [], '/'),
  ]

  it.each(strings)('a relative path that is no text is refused (%#)', (call) => {
    for (const value of [undefined, null, 1, {}]) {
      const error = thrownBy(() => call(value))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.code).toBe('ERR_INVALID_ARG_TYPE')
    }
  })

  it('a NUL has no place in a relative path', () => {
    expect(thrownBy(() => isPathOutsideRoot('a\0')).code).toBe('ERR_INVALID_ARG_VALUE')
  })
})
