// How vitest runs the tests of the package, on the Node that started it.
//
// The package itself is loaded by Node and never transformed: what is tested is what a caller gets, and an addon must
// be loaded once per process. Test files run in processes of their own (`forks`), because the tests count descriptors,
// change the umask and end processes.

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['__test__/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // A bound against a test that hangs, far above what any of them takes: nothing is measured by it.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    server: { deps: { external: [/\/index\.m?js$/, /\/binding\.cjs$/, /\.node$/] } },
  },
})
