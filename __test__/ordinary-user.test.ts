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

  it('removes a mirror in which folders, or whose root, were taken from their owner', async () => {
    const workspace = await readableSource()
    const [results] = await runChild(
      `
      const results = {}
      for (const mode of [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600]) {
        for (const place of ['', 'x', 'x/y']) {
          const mirror = await sallyport.prepareContainedExecutionMirror(input)
          fs.mkdirSync(path.join(mirror.hostMirrorRoot, 'x/y/z'), { recursive: true })
          fs.writeFileSync(path.join(mirror.hostMirrorRoot, 'x/y/f'), 'x')
          fs.chmodSync(path.join(mirror.hostMirrorRoot, place), mode)
          try { await mirror.cleanup() } catch (error) { results[mode.toString(8) + place] = describeError(error) }
        }
      }
      send([results, fs.readdirSync(input.tempDirectory)])
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(results).toEqual([{}, []])
  })

  it('sweeps an abandoned root that was taken from its owner, and leaves a live one as it is', async () => {
    const workspace = await readableSource()
    const [abandoned] = await runChild(
      `
      const { hostMirrorRoot } = await sallyport.prepareContainedExecutionMirror(input)
      fs.chmodSync(hostMirrorRoot, 0)
      send(hostMirrorRoot)
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    const [result] = await runChild(
      `
      const live = await sallyport.prepareContainedExecutionMirror(input)
      fs.chmodSync(live.hostMirrorRoot, 0)
      const swept = await sallyport.sweepAbandonedMirrors({ tempDirectory: input.tempDirectory, olderThanMs: 0 })
      const mode = fs.lstatSync(live.hostMirrorRoot).mode & 0o7777
      await live.cleanup()
      send({ swept, mode, left: fs.readdirSync(input.tempDirectory) })
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(result).toEqual({ swept: { removed: [abandoned], kept: 1 }, mode: 0, left: [] })
  })

  it.each([0o300, 0o1733])('uses a temp directory of mode %o, which it cannot read', async (mode) => {
    const workspace = await readableSource()
    const [result] = await runChild(
      `
      const tempDirectory = path.join(input.tempDirectory, 'unreadable')
      fs.mkdirSync(tempDirectory)
      fs.chmodSync(tempDirectory, ${mode})
      const mirror = await sallyport.prepareContainedExecutionMirror({ ...input, tempDirectory })
      await mirror.cleanup()
      fs.chmodSync(tempDirectory, 0o700)
      send(fs.readdirSync(tempDirectory))
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(result).toEqual([])
  })

  it.each(['777', '477', '277', '177'])('makes the same mirror under a umask of %s', async (umask) => {
    const workspace = await readableSource()
    const [result] = await runChild(
      `
      process.umask(0o${umask})
      const mirror = await sallyport.prepareContainedExecutionMirror(input)
      const { treeHash } = sallyport.describeContainedExecutionMirror(mirror)
      const mode = (fs.lstatSync(mirror.hostMirrorRoot).mode & 0o7777).toString(8)
      await mirror.cleanup()
      send({ treeHash, mode, left: fs.readdirSync(input.tempDirectory) })
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    expect(result).toEqual({ treeHash: treeHashOf(workspace.source), mode: '700', left: [] })
  })

  it('mirrors what it may read only by its group, with the same bits', async () => {
    const workspace = createWorkspace()
    await buildTree(workspace, [directory('d'), file('d/f', 'by group')])
    // Only root can give files away; an ordinary user who is the owner has no way to read these.
    if (isRoot) {
      for (const [name, mode] of Object.entries({ 'd/f': 0o040, d: 0o050 })) {
        fs.chownSync(path.join(workspace.source, name), 0, ORDINARY_USER)
        fs.chmodSync(path.join(workspace.source, name), mode)
      }
    }
    fs.chmodSync(workspace.temp, 0o777)
    const [result] = await runChild(
      `
      const mirror = await sallyport.prepareContainedExecutionMirror(input)
      const modeOf = (name) => fs.lstatSync(path.join(mirror.hostMirrorRoot, name)).mode & 0o7777
      const modes = [modeOf('d')]
      const { treeHash } = sallyport.describeContainedExecutionMirror(mirror)
      fs.chmodSync(path.join(mirror.hostMirrorRoot, 'd'), 0o700)
      modes.push(modeOf('d/f'))
      await mirror.cleanup()
      send({ treeHash, modes, left: fs.readdirSync(input.tempDirectory) })
      `,
      { workspace, asOrdinaryUser: true, input: workspace.options() },
    )
    const modes = isRoot ? [0o050, 0o040] : [0o755, 0o644]
    expect(result).toEqual({ treeHash: treeHashOf(workspace.source), modes, left: [] })
  })
})
