// What a service manager is notified of a host: whether a verified policy is served, and one line. Pure; holds no times that
// run, or the line would be new at every look.
import type { ErrorCode } from '../error-codes.js';
import { judgeHealth } from './host-health.js';
import type { StatusReport } from './status.js';

/** With one of these nobody vouches for what is on disk. */
const unverified: ReadonlySet<ErrorCode> = new Set(['STATE_DAMAGED', 'UNTRUSTED_ACTIVE', 'INTERNAL']);

/**
 * Whether a policy is active that was verified: at this start, or by the cycle that brought it. Its metadata may have
 * expired since, and the server may be away: the last good policy stays in use.
 */
export function servesVerifiedPolicy({ generation, problems, untrusted = [] }: StatusReport): boolean {
  if (generation === undefined || untrusted.some(({ active }) => active)) return false;
  return !problems.some(({ code }) => unverified.has(code));
}

const maxFindings = 3;

/** @returns as `generation 18 (dns-edge 42) is active, 2 of 2 workers confirmed; warning: metadata is stale [STALE]` */
export function statusLine(report: StatusReport): string {
  const { level, findings } = judgeHealth(report);
  const shown = findings
    .filter(({ code }) => code !== 'NOTHING_ACTIVE')
    .slice(0, maxFindings)
    .map(({ text, code }) => `${text.slice(0, 80)} [${code}]`);
  const trouble = shown.length === 0 ? '' : `; ${level}: ${shown.join(', ')}`;
  return `${policyText(report)}${trouble}`;
}

function policyText(report: StatusReport): string {
  const { generation, bundles, last } = report;
  if (generation === undefined) {
    const outcome = last === undefined ? '' : `, the last try: ${last.outcome}`;
    return `no policy is active, waiting for the first${outcome}`;
  }
  const serials = bundles.flatMap(({ bundle, serial }) =>
    serial === undefined ? [] : [`${bundle} ${serial}`],
  );
  const shown = serials.length > maxFindings ? [...serials.slice(0, maxFindings), '...'] : serials;
  return `generation ${generation}${shown.length === 0 ? '' : ` (${shown.join(', ')})`} is active${workersText(report)}`;
}

function workersText({ workers }: StatusReport): string {
  if (workers.length === 0) return '';
  const confirmed = workers.filter(({ state }) => state === 'confirmed').length;
  return `, ${confirmed} of ${workers.length} workers confirmed`;
}
