// Compares the platform packages under `npm/` with package.json and with the loader that asks for them: one for each
// target, made as `napi create-npm-dirs` makes it and with the launcher beside the addon on Linux, and no other. Exit
// code 1, and a line for each difference, where they disagree; `napi create-npm-dirs` makes them anew, but for the
// launcher, which it does not know.

import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { fileURLToPath } from 'node:url'

const repository = join(dirname(fileURLToPath(import.meta.url)), '..')

/** What a Rust target is called by Node and npm. A target that is not here cannot be published yet. */
const PLATFORMS = {
  'x86_64-unknown-linux-gnu': { folder: 'linux-x64-gnu', os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
}

/** The program that starts a sandboxed child; `js/sandbox/launcher.js` looks for it beside the addon. */
const LAUNCHER = 'sallyport-launch'

/** What a platform package repeats from the main one. */
const SHARED = ['version', 'description', 'keywords', 'license', 'engines', 'repository']

function readJson(...parts) {
  return JSON.parse(readFileSync(join(repository, ...parts), 'utf8'))
}

function differences() {
  const main = readJson('package.json')
  const loader = readFileSync(join(repository, 'binding.cjs'), 'utf8')
  const advice = readFileSync(join(repository, 'js', 'binding.js'), 'utf8')
  const { binaryName, targets } = main.napi
  const found = []
  const expectedFolders = []
  for (const target of targets) {
    const platform = PLATFORMS[target]
    if (platform === undefined) {
      found.push(`package.json names ${target}, which scripts/check-npm.mjs does not know`)
      continue
    }
    const { folder, ...where } = platform
    expectedFolders.push(folder)
    const file = `${binaryName}.${folder}.node`
    const name = `${main.name}-${folder}`
    const expected = { name, main: file, ...where, ...Object.fromEntries(SHARED.map((field) => [field, main[field]])) }
    let actual
    try {
      actual = readJson('npm', folder, 'package.json')
    } catch (error) {
      found.push(`npm/${folder}/package.json cannot be read: ${error.message}`)
      continue
    }
    for (const [field, value] of Object.entries(expected)) {
      if (isDeepStrictEqual(actual[field], value)) continue
      found.push(`npm/${folder}: ${field} is ${JSON.stringify(actual[field])}, not ${JSON.stringify(value)}`)
    }
    for (const shipped of [file, ...(where.os.includes('linux') ? [LAUNCHER] : [])]) {
      if (!actual.files?.includes(shipped)) found.push(`npm/${folder}: ${shipped} is not among its files`)
    }
    for (const text of [`require('${name}')`, `!== '${main.version}'`]) {
      if (!loader.includes(text)) found.push(`binding.cjs does not hold ${text}: build the addon again`)
    }
    if (!advice.includes(`'${name}'`)) found.push(`js/binding.js does not name ${name} where the addon is missing`)
  }
  const folders = readdirSync(join(repository, 'npm'), { withFileTypes: true })
  for (const { name } of folders.filter((entry) => entry.isDirectory())) {
    if (!expectedFolders.includes(name)) found.push(`npm/${name} is for no target of package.json`)
  }
  return found
}

const found = differences()
for (const difference of found) console.error(`check:npm: ${difference}`)
process.exitCode = found.length === 0 ? 0 : 1
