// What `npm start` shows, on the Node that runs the tests: a mirror of a small folder, what the example project declares
// in the sandbox, and what the hostile example was refused. It is run without a terminal, without a home and with no
// variable but PATH.

import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

import { probeIsolation } from '../index.mjs'
import { packageRoot } from './support/ordinary-user'
import { createWorkspace } from './support/workspace'

function start(folder: string) {
  const script = path.join(packageRoot, 'scripts', 'start.mjs')
  const options = { env: { PATH: process.env.PATH }, encoding: 'utf8', cwd: '/' } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, folder], options)
  return { status, stderr, lines: stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, '  ').trim()) }
}

describe('npm start', () => {
  it('shows a mirror, the entities of the example by name, type and file, and what the hostile one was refused', async () => {
    const workspace = createWorkspace()
    fs.writeFileSync(path.join(workspace.source, 'page.txt'), 'a page')
    const { status, stderr, lines } = start(workspace.source)

    expect(lines).toContain('bytes  6')
    expect(lines.find((line) => line.startsWith('index of mirror'))).toContain('the same tree hash')
    expect(lines.filter((line) => /(storage|site)\.ts$/.test(line))).toEqual([
      'logs  Bucket  storage.ts',
      'pages  Bucket  storage.ts',
      'accessReader  Role  site.ts',
      'accessWriter  Role  site.ts',
      'address  output SiteAddress  site.ts',
      'certificate  Certificate  site.ts',
      'distribution  Distribution  site.ts',
    ])

    const { level } = await probeIsolation()
    expect(lines.find((line) => line.startsWith('isolation'))).toContain(level)
    expect(lines).toContain('harmless.ts  evaluated, unharmed by the others')
    const hostile = path.join(packageRoot, 'examples', 'hostile')
    const refusals = {
      'change-the-project.ts': `FileSystemWrite (${path.join(hostile, 'harmless.ts')})`,
      'read-a-file.ts': 'FileSystemRead (/etc/passwd)',
      'start-a-program.ts': 'ChildProcess',
      'write-a-file.ts': 'FileSystemWrite (/tmp/sallyport-example-was-here)',
      // Below the level `kernel` these two may go through.
      ...(level === 'kernel' ? { 'reach-the-network.ts': 'Net (127.0.0.1:9)', 'signal-the-parent.ts': 'Signal' } : {}),
    }
    for (const [file, refusal] of Object.entries(refusals)) {
      const shown = lines.find((line) => line.startsWith(file))
      expect(shown).toContain(`${file}  refused: sandbox denied ${refusal}`)
    }
    expect(status).toBe(0)
    if (level === 'kernel') expect(stderr).toBe('')
  })

  it('ends with 1 and the reason where the mirror is refused, and shows the rest all the same', () => {
    const workspace = createWorkspace()
    fs.symlinkSync('/etc/passwd', path.join(workspace.source, 'passwords'))
    const { status, lines } = start(workspace.source)
    expect(status).toBe(1)
    expect(lines).toContain('code  contained_execution_unsafe_symlink')
    expect(lines).toContain('relativePath  passwords')
    expect(lines).toContain('pages  Bucket  storage.ts')
  })
})
