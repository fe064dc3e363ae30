// How `npm test` counts: whatever goes wrong with a runner must show as a failure, never as nothing.

import { describe, expect, it } from 'vitest'

// @ts-expect-error -- a script without declarations; what it gives is checked here, value by value
import { countCargo, countVitest } from '../scripts/counts.mjs'

function vitestReport(...files: [string, string[]][]): string {
  return JSON.stringify({
    testResults: files.map(([status, tests]) => ({
      status,
      assertionResults: tests.map((test) => ({ status: test })),
    })),
  })
}

describe('countVitest', () => {
  it.each([
    ['all is well', vitestReport(['passed', ['passed', 'passed']]), 0, 2, 0],
    ['a test failed', vitestReport(['failed', ['passed', 'failed']]), 1, 1, 1],
    ['a test was skipped', vitestReport(['passed', ['passed', 'skipped']]), 0, 1, 1],
    ['a file could not be loaded', vitestReport(['failed', []], ['passed', ['passed']]), 1, 1, 1],
    ['the runner failed by itself', vitestReport(['passed', ['passed']]), 1, 1, 1],
    ['the runner was killed', vitestReport(['passed', ['passed']]), null, 1, 1],
    ['nothing ran', vitestReport(), 0, 0, 1],
    ['there is no report', null, 1, 0, 1],
    ['half a report', '{"testResults":[', 0, 0, 1],
  ])('when %s', (_what, report, exitCode, passed, failed) => {
    expect(countVitest({ report, exitCode })).toEqual({ passed, failed })
  })
})

describe('countCargo', () => {
  const line = (passed: number, failed: number, ignored = 0): string =>
    `test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed; ${ignored} ignored; 0 measured; 0 filtered out\n`

  it.each([
    ['all is well', `running 3 tests\n${line(3, 0)}\n${line(4, 0)}`, 0, 7, 0],
    ['tests failed', line(3, 2), 101, 3, 2],
    ['a test was ignored', line(3, 0, 1), 0, 3, 1],
    ['it does not compile', 'error: could not compile\n', 101, 0, 1],
    ['a program crashed after another had passed', line(3, 0), 101, 3, 1],
    ['nothing was printed', '', 0, 0, 1],
  ])('when %s', (_what, report, exitCode, passed, failed) => {
    expect(countCargo({ report, exitCode })).toEqual({ passed, failed })
  })
})
