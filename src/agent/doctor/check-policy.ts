// `writ doctor` on the policy itself: whether there is one, and the worst that `writ health` knows of it. What a check of
// another subject says better is left to it. Pure.
import { judgeHostHealth } from '../../core/status/host-health.js';
import type { StatusReport } from '../../core/status/status.js';
import { workerCodes } from '../../core/status/worker-rules.js';
import { type Checks, type DoctorContext, reportOf } from './doctor-context.js';
import { couldNotLook, fail, type Judged, ok } from './judged.js';

export function policyChecks(context: DoctorContext): Checks {
  const report = reportOf(context);
  return [['policy', () => (report === undefined ? couldNotLook('no status') : judgePolicy(report))]];
}

const saidElsewhere: ReadonlySet<string> = new Set([...workerCodes, 'UNTRUSTED_ACTIVE']);

/** @returns a finding for each that is critical, or one that all is well */
export function judgePolicy(report: StatusReport): Judged | readonly Judged[] {
  const { generation } = report;
  if (generation === undefined) return fail('no policy is active', 'writ pull', 'NOTHING_ACTIVE');
  const worst = judgeHostHealth(report).findings.filter(
    ({ level, code }) => level === 'critical' && !saidElsewhere.has(code),
  );
  if (worst.length > 0) return worst.map(({ text, code }) => fail(text, 'writ status', code));
  return ok(`generation ${generation} is active`);
}
