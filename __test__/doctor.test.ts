// The command line: `doctor` on this machine, without a layer (hidden by tests/tools/under_filter.rs) and on machines
// that are only told of; `evaluate`; and how a wrong command is answered. Whether the kernel holds everything is taken
// from `probeIsolation`, so that this passes wherever the package does.

import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'

import { type IsolationReport, probeIsolation } from '../index.mjs'
import { packageRoot } from './support/ordinary-user'
import { createWorkspace } from './support/workspace'

const program = path.join(packageRoot, 'bin', 'sallyport.js')
const examples = path.join(packageRoot, 'examples')
const target = process.env.CARGO_TARGET_DIR ?? path.join(packageRoot, 'target')
const underFilter = path.join(target, 'debug', 'examples', 'under_filter')

interface Surroundings {
  securityModules: string[] | null
  filtered: boolean | null
  profile: string | null
  container: string | null
  userNamespaces: string | null
}

const { adviceOn, describe: described } = createRequire(import.meta.url)('../bin/doctor.js') as {
  adviceOn(report: IsolationReport, around: Surroundings): string[]
  describe(findings: unknown): string
}

function sallyport(given: string[], { before = [] as string[], cwd = '/' } = {}) {
  const [first, ...rest] = [...before, process.execPath, program, ...given]
  // Neither a terminal nor a home is there.
  const options = { env: { PATH: process.env.PATH }, encoding: 'utf8', cwd } as const
  const { status, stdout, stderr } = spawnSync(first as string, rest, options)
  return { status, stdout, stderr }
}

describe('sallyport doctor', () => {
  it('tells as JSON what the probe finds, and ends with 0 where the kernel holds all of it', async () => {
    const isolation = await probeIsolation()
    const { status, stdout } = sallyport(['doctor', '--json'])
    const findings = JSON.parse(stdout)
    expect(findings.isolation).toEqual(isolation)
    expect(findings.nodePath).toBe(process.execPath)
    expect(findings.permissionFlag).toMatch(/^--(experimental-)?permission$/)
    expect(findings.run).toEqual({ works: true })
    expect(status).toBe(isolation.level === 'kernel' ? 0 : 1)
    expect(findings.healthy).toBe(status === 0)
    expect(findings.advice.length === 0).toBe(findings.healthy)
  })

  it('shows each guarantee in a line, and the program it is asked about', async () => {
    const isolation = await probeIsolation()
    const { stdout, stderr } = sallyport(['doctor', '--node', process.execPath])
    expect(stderr).toBe('')
    for (const [name, { held }] of Object.entries(isolation.guarantees)) {
      expect(stdout).toMatch(new RegExp(`^${name} +${held ? 'yes' : 'NO'} `, 'm'))
    }
    expect(stdout).toContain(process.execPath)
    expect(stdout).toMatch(/^a sandboxed run +works$/m)
  })

  it('shows what each layer refuses by itself, and whether user namespaces can be made', async () => {
    const { layers, userNamespaces } = await probeIsolation()
    const { stdout } = sallyport(['doctor'])
    for (const [name, { refused }] of Object.entries(layers)) {
      const [, told = ''] =
        new RegExp(`^${name} {2,}(.+)$`, 'm').exec(stdout.slice(stdout.indexOf('layer alone'))) ?? []
      expect(told === 'nothing' ? 0 : told.split(', ').length).toBe(refused.length)
    }
    expect(stdout).toMatch(userNamespaces ? /^user namespaces +can be made/m : /^user namespaces +(cannot|not)/m)
  })

  it('says of a program that is no Node that it is none', () => {
    const { status, stdout, stderr } = sallyport(['doctor', '--node', '/bin/sh'])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain('must be a Node program')
    expect(stderr).not.toContain('    at ')
  })

  it('says of a script that starts a Node what to give instead, and tries a run at what is left', async () => {
    const script = path.join(createWorkspace().source, 'node')
    fs.writeFileSync(script, `#!/bin/sh\nexec ${JSON.stringify(process.execPath)} "$@"\n`, { mode: 0o755 })
    const { status, stdout, stderr } = sallyport(['doctor', '--node', script])
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    expect(stdout).toMatch(/^a sandboxed run +works$/m)
    const { level, layers } = await probeIsolation()
    if (level !== 'kernel') return expect(layers.landlock.applied).toBe(false)
    expect(stdout).toMatch(/^level +partial$/m)
    expect(stdout.slice(stdout.indexOf('To do:'))).toMatch(
      /^To do:\n- Files: .*Give the program itself with --node.*\n$/,
    )
  })

  describe('without a layer', () => {
    beforeAll(() => {
      const build = ['build', '--quiet', '--locked', '--no-default-features', '--example', 'under_filter']
      execFileSync('cargo', build, { cwd: packageRoot })
    }, 300_000)

    it.each([
      ['landlock', ['files'], 'landlock_create_ruleset'],
      ['seccomp', ['network', 'processes', 'memory'], 'seccomp and prctl'],
    ])('%s: says what is not held, why, and what to do', (layer, missing, toDo) => {
      const { status, stdout } = sallyport(['doctor'], { before: [underFilter, layer] })
      expect(status).toBe(1)
      expect(stdout).toContain('under a filter')
      for (const name of missing) expect(stdout).toMatch(new RegExp(`^${name} +NO .*\n +why not: ${layer}: `, 'm'))
      expect(stdout).toMatch(/^a sandboxed run +works$/m)
      expect(stdout).toMatch(/^level +partial$/m)
      expect(stdout).toMatch(new RegExp(`^${layer} +nothing\n +why not: `, 'm'))
      expect(stdout.slice(stdout.indexOf('To do:'))).toContain(toDo)
    })
  })
})

describe('the advice', () => {
  const held = { held: true, by: ['x'] }
  const not = { held: false, by: [], reason: 'because' }
  const nothing: Surroundings = {
    securityModules: null,
    filtered: false,
    profile: null,
    container: null,
    userNamespaces: 'allowed',
  }

  function report(missing: string[], facts: Partial<IsolationReport> = {}): IsolationReport {
    const names = ['files', 'network', 'processes', 'signals', 'memory']
    const guarantees = Object.fromEntries(names.map((name) => [name, missing.includes(name) ? not : held]))
    return {
      level: 'partial',
      guarantees,
      kernel: '6.8.0-41-generic',
      landlockAbi: null,
      node: '24.0.0',
      ...facts,
    } as IsolationReport
  }

  it('is none where everything is held', () => {
    expect(adviceOn(report([]), nothing)).toEqual([])
  })

  it.each([
    ['an old kernel', report(['files'], { kernel: '5.10.0-28-amd64' }), {}, /5\.10\.0-28-amd64 has no Landlock.*5\.13/],
    [
      'a kernel that leaves Landlock out at its start',
      report(['files']),
      { securityModules: ['capability', 'yama'] },
      /lsm=landlock,capability,yama/,
    ],
    [
      'a container with a profile of its own',
      report(['files']),
      { filtered: true, container: 'docker', profile: 'docker-default (enforce)' },
      /in a container: docker, under a filter, profile docker-default.*landlock_restrict_self/,
    ],
    ['rules that hold nothing', report(['files'], { landlockAbi: 3 }), {}, /do not hold here: because/],
    ['a kernel without any', report(['files']), {}, /CONFIG_SECURITY_LANDLOCK/],
    [
      'a container whose filters are not known',
      report(['network', 'processes']),
      { container: 'podman', filtered: null },
      /filters not known.*Allow seccomp and prctl/,
    ],
    ['a container that no filter is around', report(['files']), { container: 'docker' }, /CONFIG_SECURITY_LANDLOCK/],
    [
      'a limit on memory whose other half is missing',
      { ...report([]), guarantees: { ...report([]).guarantees, memory: { ...not, by: ['resource-limits'] } } },
      {},
      /CONFIG_SECCOMP_FILTER/,
    ],
    ['no filters elsewhere', report(['network']), {}, /CONFIG_SECCOMP_FILTER/],
    ['no limit on memory', report(['memory']), {}, /RLIMIT_DATA/],
  ])('on %s', (_where, given, around, expected) => {
    const advice = adviceOn(given, { ...nothing, ...around })
    expect(advice).toHaveLength(1)
    expect(advice[0]).toMatch(expected)
  })

  it('is given where nothing could be tried at all', () => {
    const findings = {
      healthy: false,
      version: '1.2.3',
      system: 'Darwin',
      nodePath: '/node',
      permissionFlag: null,
      isolation: null,
      run: { works: false, reason: 'r' },
      surroundings: { ...nothing, filtered: null, userNamespaces: null },
      advice: ['Move.'],
    }
    expect(described(findings)).toContain('seccomp           not tried')
    expect(described(findings)).toContain('- Move.')
  })
})

describe('sallyport evaluate', () => {
  it('prints what the files declare and what went wrong', () => {
    const files = ['hostile/harmless.ts', 'hostile/read-a-file.ts']
    const { status, stdout } = sallyport(['evaluate', ...files], { cwd: examples })
    const { entities, errors } = JSON.parse(stdout)
    expect(entities.map(({ name }: { name: string }) => name)).toEqual(['harmless'])
    expect(errors).toMatchObject([{ file: path.join(examples, 'hostile', 'read-a-file.ts'), type: 'permission' }])
    expect(status).toBe(1)
  })

  it('takes the folder, the level and the program, and ends with 0 where nothing went wrong', async () => {
    const { level } = await probeIsolation()
    const root = path.join(examples, 'project')
    const options = ['--root', root, '--isolation', 'best-effort', '--node', process.execPath]
    const { status, stdout } = sallyport(['evaluate', path.join(root, 'storage.ts'), ...options])
    const { entities, errors, isolation } = JSON.parse(stdout)
    expect(entities.map(({ name }: { name: string }) => name)).toEqual(['logs', 'pages'])
    expect({ errors, isolation, status }).toEqual({ errors: [], isolation: level, status: 0 })
  })

  it('says where to read on where the files declare nothing', () => {
    const root = createWorkspace().source
    fs.writeFileSync(path.join(root, 'a.ts'), 'export const a = 1')
    const { status, stdout, stderr } = sallyport(['evaluate', path.join(root, 'a.ts'), '--root', root])
    expect(JSON.parse(stdout)).toMatchObject({ entities: [], errors: [] })
    expect({ status, said: stderr.includes('declare no entities') }).toEqual({ status: 0, said: true })
  })

  it('says what is wrong with its arguments', () => {
    const outside = createWorkspace().source
    fs.writeFileSync(path.join(outside, 'a.ts'), '')
    const { status, stderr } = sallyport(['evaluate', path.join(outside, 'a.ts'), '--root', examples])
    expect(status).toBe(1)
    expect(stderr).toContain('a file inside the build root')
  })
})

describe('a command', () => {
  it.each([
    [[], 'a command is missing'],
    [['cure'], 'there is no command "cure"'],
    [['doctor', '--loud'], '--loud'],
    [['doctor', 'me'], 'doctor takes no "me"'],
    [['evaluate'], 'at least one file'],
  ])('%j that is none ends with 2 and says so', (given, expected) => {
    const { status, stdout, stderr } = sallyport(given)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(expected)
    expect(stderr).toContain('sallyport --help')
  })

  it('that asks for help or the version gets it', () => {
    for (const given of [['--help'], ['doctor', '--help'], ['help']]) {
      const { status, stdout } = sallyport(given)
      expect(status).toBe(0)
      for (const command of ['sallyport doctor', 'sallyport evaluate']) expect(stdout).toContain(command)
    }
    const { version } = JSON.parse(fs.readFileSync(path.join(packageRoot, 'package.json'), 'utf8'))
    expect(sallyport(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  })
})
