// `writ doctor`, check `policy`: whether a generation is active, and the critical findings of `writ health`. Codes that another check
// reports in more detail are left out. Pure.
import { judgeHostHealth } from '../../core/status/host-health.js';
import type { StatusReport } from '../../core/status/status.js';
import { workerCodes } from '../../core/status/worker-rules.js';
import { type Checks, type DoctorContext, reportOf } from './doctor-context.js';
import { couldNotCheck, fail, type Judged, ok } from './judged.js';

/** @returns the check `policy`; without a status report it finds that it could not check */
export function policyChecks(context: DoctorContext): Checks {
  const report = reportOf(context);
  return [['policy', () => (report === undefined ? couldNotCheck('no status') : judgePolicy(report))]];
}

const codesOfOtherChecks: ReadonlySet<string> = new Set([...workerCodes, 'UNTRUSTED_ACTIVE']);

/** @returns one failure for each critical finding of the host's health; ok if there is none */
export function judgePolicy(report: StatusReport): Judged | readonly Judged[] {
  const { generation } = report;
  if (generation === undefined) return fail('no policy is active', 'writ pull', 'NOTHING_ACTIVE');
  const worst = judgeHostHealth(report).findings.filter(
    ({ level, code }) => level === 'critical' && !codesOfOtherChecks.has(code),
  );
  if (worst.length > 0) return worst.map(({ text, code }) => fail(text, 'writ status', code));
  return ok(`generation ${generation} is active`);
}
