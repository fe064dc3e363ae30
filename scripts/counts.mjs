// Counts what a test runner did, from its report. Pure; unreadable reports count as one failure, never as nothing.

/**
 * @typedef {{ passed: number, failed: number }} Counts
 * @typedef {{ report: string | null, exitCode: number | null }} RunnerResult
 */

/** A runner that ended badly without naming a failed test has failed all the same. */
function withExit(passed, failed, exitCode) {
  return { passed, failed: exitCode === 0 || failed > 0 ? failed : 1 }
}

/**
 * From vitest's JSON report. A file that could not be loaded, and a test that was skipped, count as failed.
 * @param {RunnerResult} result
 * @returns {Counts}
 */
export function countVitest({ report, exitCode }) {
  let parsed
  try {
    parsed = JSON.parse(report ?? '')
  } catch {
    return { passed: 0, failed: 1 }
  }
  const files = Array.isArray(parsed.testResults) ? parsed.testResults : []
  let passed = 0
  let failed = 0
  for (const file of files) {
    const tests = file.assertionResults ?? []
    const passedHere = tests.filter((test) => test.status === 'passed').length
    passed += passedHere
    failed += tests.length - passedHere
    if (file.status !== 'passed' && passedHere === tests.length) failed += 1
  }
  return withExit(passed, passed + failed === 0 ? 1 : failed, exitCode)
}

/**
 * From the `test result:` lines that cargo prints, one for each test program. An ignored test counts as failed.
 * @param {RunnerResult} result
 * @returns {Counts}
 */
export function countCargo({ report, exitCode }) {
  let passed = 0
  let failed = 0
  let programs = 0
  for (const match of (report ?? '').matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/gm)) {
    programs += 1
    passed += Number(match[1])
    failed += Number(match[2]) + Number(match[3])
  }
  return withExit(passed, programs === 0 ? 1 : failed, exitCode)
}
