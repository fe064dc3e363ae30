'use strict'

// Loads the native addon, once per JavaScript environment. Where it cannot be loaded, an Error with the code
// ERR_NATIVE_BINDING says what to do, and its `cause` is the loader's own error, which has no code.

/**
 * A job of the addon, running on the addon's own threads.
 * @typedef {object} NativeJob
 * @property {() => void} cancel asks the work to stop; the last event still comes
 * @property {(id: number, response: string) => void} answer answers a hook event, in JSON
 * @property {() => void} begin tells the child of a sandboxed run to begin
 * @property {() => NativeLease | null} takeLease the lease of a finished mirror job, once
 */

/**
 * What the addon remembers of a mirror. Only the addon can make one.
 * @typedef {object} NativeLease
 * @property {number} id
 * @property {boolean} live
 * @property {() => void} end ends the lease at once
 * @property {(hostMirrorRoot: string, guestWorkspacePath: string, backend: string, sourceRoot: string,
 *   protectedRoots: string[]) => boolean} matches
 * @property {() => string} report the MirrorReport in JSON
 */

/**
 * The exports of the addon. Paths are absolute, and arguments are checked before they get here; what is called `Json`
 * or returns text for a structure is JSON.
 * @typedef {object} NativeBinding
 * @property {(kind: string, request: string, notify: (event: string) => void) => NativeJob} startJob
 * @property {() => void} endJobs cancels all jobs of this environment and waits until they have removed what they made
 * @property {() => WeakMap<object, NativeLease>} leaseTable
 * @property {() => string} failureTable
 * @property {(taskJson: string, modulesJson: string) => string} generateDriverSource
 * @property {(file: string, rawJson: string, fallbackJson: string) => string} classifyError
 * @property {(what: string) => boolean} isToldFirst
 * @property {(pid: number, bytes: number) => void} limitProcessMemory
 * @property {(key: string) => string | null} externalPackageCacheGet
 * @property {(key: string, json: string) => void} externalPackageCacheSet
 * @property {(mode: number, contentHash: string) => string} hashFileNode
 * @property {(mode: number) => string} hashDirectoryNode
 * @property {(target: string) => string} hashSymlinkTarget
 * @property {(left: string, right: string) => number} compareRelativePathsBytewise
 * @property {(entriesJson: string) => string} computeTreeHash
 * @property {(baselineEntriesJson: string, observedEntriesJson: string) => string} diffFileTreeIndices
 * @property {(leftJson: string, rightJson: string) => boolean} snapshotNodesEqual
 * @property {(relativePath: string) => string | null} validateRelativePath
 * @property {(root: string, relativePath: string) => string} joinRelativePath
 * @property {(relativePath: string) => boolean} isRootGitMetadataPath
 * @property {(relativePath: string) => boolean} isNestedGitPath
 * @property {(relativePath: string, excludedRoots: string[], resourceRoot: string) => boolean} isExcludedTreePath
 * @property {(path: string) => string} inspectGitResourceIdentity
 * @property {(left: string, right: string) => boolean} sameGitResourceIdentity
 * @property {(path: string, repositoryPath?: string) => boolean} isGitMetadataPath
 * @property {(path: string) => string} canonicalPath
 * @property {(relativePath: string) => boolean} isPathOutsideRoot
 * @property {(root: string, target: string) => boolean} pathWithinRoot
 * @property {(repoRoot: string, target: string) => string | null} relativeWithinRepo
 * @property {(target: string) => string | null} containingGitRoot
 * @property {(repoRoot: string, trustedRoots: string[] | undefined, target: string) => string | null} resolveWorkspaceRootMatch
 */

/**
 * The packages that hold the addon, by platform and architecture.
 * @type {Record<string, string | undefined>}
 */
const PACKAGES = { 'linux-x64': 'sallyport-linux-x64-gnu' }

/** @returns {NativeBinding} */
function load() {
  try {
    return require('../binding.cjs')
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}`
    const place = PACKAGES[platform]
    const error = new Error(
      `sallyport could not load its native addon for ${platform} (Node ${process.version}). ` +
        (place === undefined
          ? `There is none for this platform yet, only for ${Object.keys(PACKAGES).join(', ')}. `
          : `It is in a package of its own, ${place}, which needs glibc. `) +
        'From npm: install again without `--omit=optional` or `--no-optional`, on the platform it will run on, with ' +
        'node_modules and the lock file of another platform removed first. From a checkout: run `npm run build`. ' +
        'The cause of this error says what the loader tried.',
      { cause },
    )
    throw Object.assign(error, { code: 'ERR_NATIVE_BINDING' })
  }
}

module.exports = load()
