// Packs what is published: the main package, and the platform package with the addon and the launcher of this machine.
//
//   npm run release:pack [-- <folder>]      (default: dist/)
//
// The main package asks for the platform packages of its own version by `optionalDependencies`, so that npm installs the
// one that fits. They stand in what is packed alone: in the repository they would make npm look for a version that is
// not published yet. Links of the documents to files that are not packed lead to the repository. Prints the paths of the
// tarballs, the platform's first: it has to be there before what asks for it. Fails where something is not built.

import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const target = path.resolve(process.argv[2] ?? path.join(repository, 'dist'))

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Packs a folder; the path of the tarball. */
function pack(folder) {
  const given = ['pack', '--json', '--ignore-scripts', '--pack-destination', target]
  const [{ filename }] = JSON.parse(execFileSync('npm', given, { cwd: folder, encoding: 'utf8' }))
  return path.join(target, filename)
}

/** What npm would pack of the repository itself. */
function packedFiles() {
  const given = ['pack', '--json', '--dry-run', '--ignore-scripts']
  const [{ files }] = JSON.parse(execFileSync('npm', given, { cwd: repository, encoding: 'utf8' }))
  return files.map((file) => file.path)
}

function copy(files, from, to) {
  for (const file of files) {
    const source = path.join(from, file)
    if (!existsSync(source)) throw new Error(`${source} is missing: run \`npm run build\` first`)
    mkdirSync(path.dirname(path.join(to, file)), { recursive: true })
    copyFileSync(source, path.join(to, file))
  }
}

/** Links to what is not packed would lead nowhere on npm's page and in an installed package. */
function withWholeLinks(text, document, files, { repository: { url } }) {
  const base = `${url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/main/`
  return text.replace(/\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)/g, (whole, link, fragment = '') => {
    const led = path.posix.join(path.posix.dirname(document), link).replace(/\/$/, '')
    const isPacked = files.some((file) => file === led || file.startsWith(`${led}/`))
    return isPacked ? whole : `](${base}${led}${fragment})`
  })
}

function packMain(staging, manifest, platforms) {
  const files = packedFiles()
  if (!files.includes('runtime/prebuilt.mjs'))
    throw new Error('runtime/prebuilt.mjs is missing: run `npm run build` first')
  copy(files, repository, staging)
  const optionalDependencies = Object.fromEntries(platforms.map(({ name, version }) => [name, version]))
  const { devDependencies, scripts, ...published } = manifest
  writeFileSync(
    path.join(staging, 'package.json'),
    `${JSON.stringify({ ...published, optionalDependencies }, null, 2)}\n`,
  )
  for (const document of files.filter((file) => file.endsWith('.md'))) {
    const file = path.join(staging, document)
    writeFileSync(file, withWholeLinks(readFileSync(file, 'utf8'), document, files, manifest))
  }
  return pack(staging)
}

function packPlatform(staging, folder, { files }) {
  cpSync(folder, staging, { recursive: true })
  copy(files, repository, staging)
  return pack(staging)
}

const staging = mkdtempSync(path.join(tmpdir(), 'sallyport-pack-'))
try {
  mkdirSync(target, { recursive: true })
  const manifest = readJson(path.join(repository, 'package.json'))
  // One for each target that is built for; this machine has the files of its own.
  const folders = manifest.napi.targets.map((triple) => {
    if (triple !== 'x86_64-unknown-linux-gnu')
      throw new Error(`scripts/pack.mjs does not know where ${triple} is built`)
    return path.join(repository, 'npm', 'linux-x64-gnu')
  })
  const platforms = folders.map((folder) => readJson(path.join(folder, 'package.json')))
  for (const [index, folder] of folders.entries()) {
    console.log(packPlatform(path.join(staging, `platform-${index}`), folder, platforms[index]))
  }
  console.log(packMain(path.join(staging, 'main'), manifest, platforms))
} finally {
  rmSync(staging, { recursive: true, force: true })
}
