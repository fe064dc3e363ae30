// The package as an ordinary user, from loading to sweeping. When these tests run as root, a child changes its user;
// otherwise the child is an ordinary user already. What needs one in the cases of reported bugs is in
// cases-mirror.test.ts.

import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { runChild } from './support/child'
import { ORDINARY_USER, ordinaryUserInstallation } from './support/ordinary-user'
import { treeHashOf } from './support/reference'
import { buildTree, createWorkspace, directory, file, isRoot, symlink, type Workspace } from './support/workspace'

async function readableSource(): Promise<Workspace> {
  const workspace = createWorkspace()
  await buildTree(workspace, [
    ...[
      file('a', 'hello'),
      file('d/b', 'x', '0444'),
      file('d/run', '#!', '0755'),
      directory('ro', '0555'),
      symlink('l', 'd/b'),
    ],
  ])
  fs.chmodSync(workspace.temp, 0o777)
  return workspace
}

describe('an ordinary user', () => {
  it('is one', async () => {
    const workspace = createWorkspace()
    const [identity] = await runChild('send([process.getuid(), process.getgid(), process.getgroups()])', {
      workspace,
      asOrdinaryUser: true,
    })
    if (isRoot) expect(identity).toEqual([ORDINARY_USER, ORDINARY_USER, [ORDINARY_USER]])
    else expect(identity[0]).toBe(process.getuid?.())
    expect(fs.existsSync(path.join(ordinaryUserInstallation().packageRoot, 'index.mjs'))).toBe(true)
  })

  it('mirrors a source that belongs to somebody else, indexes it and removes it', async () => {
    const workspace = await readableSource()
    const [result] = await runChild(
      `
      const mirror = await sallyport.prepareContainedExecutionMirror(input)
      const { treeHash } = sallyport.describeContainedExecutionMirror(mirror)
      const index = await sallyport.buildFileTreeIndex({ resourceRoot: mirror.hostMirrorRoot })
      const source = await sallyport.buildFileTreeIndex({ resourceRoot: input.sourceRoot })
      const { uid, mode } = fs.lstatSync(mirror.hostMirrorRoot)
      const lease = sallyport.validateContainedExecutionMirrorLease(mirror, { sourceRoot: input.sourceRoot, protectedRoots: [] })
      await mirror.cleanup()
      send({
        hashes: [treeHash, index.treeHash, source.treeHash],
        owned: uid === process.getuid(),
        mode: (mode & 0o7777).toString(8),
        lease,
        left: fs.readdirSync(input.tempDirectory),
      })
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    const treeHash = treeHashOf(workspace.source)
    expect(result).toEqual({ hashes: [treeHash, treeHash, treeHash], owned: true, mode: '700', lease: true, left: [] })
  })

  it('is refused a temp directory that it may not write to', async () => {
    const workspace = await readableSource()
    fs.chmodSync(workspace.temp, 0o555)
    const [error] = await runChild(
      `
      try { send(await sallyport.prepareContainedExecutionMirror(input)) } catch (error) { send(describeError(error)) }
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(error).toMatchObject({ name: 'Error', code: 'EACCES' })
    expect(workspace.leftovers()).toEqual([])
  })

  it('sweeps its own abandoned roots and no others', async () => {
    const workspace = await readableSource()
    const [root] = await runChild('send((await sallyport.prepareContainedExecutionMirror(input)).hostMirrorRoot)', {
      workspace,
      asOrdinaryUser: true,
      input: workspace.options(),
    })
    fs.mkdirSync(path.join(workspace.temp, 'belay-contained-mirror-abcdef'))
    const [swept] = await runChild('send(await sallyport.sweepAbandonedMirrors(input))', {
      workspace,
      asOrdinaryUser: true,
      input: { tempDirectory: workspace.temp, olderThanMs: 0 },
    })
    if (isRoot) {
      expect(swept).toEqual({ removed: [root], kept: 1 })
      expect(workspace.leftovers()).toEqual(['belay-contained-mirror-abcdef'])
    } else {
      expect(swept.removed).toContain(root)
      expect(workspace.leftovers()).toEqual([])
    }
  })
})
