// The state of a host for its service manager: whether a verified policy is active, and one status line. The line contains no
// elapsed time, because it would then differ at every update.
import type { ErrorCode } from '../error-codes.js';
import { judgeHostHealth } from './host-health.js';
import type { StatusReport } from './status.js';

/** With one of these problems the policy on disk is not known to be verified. */
const unverifiedCodes: ReadonlySet<ErrorCode> = new Set(['STATE_DAMAGED', 'UNTRUSTED_ACTIVE', 'INTERNAL']);

/**
 * @returns true if the active policy was verified, at this start or by the cycle that activated it. It stays true with expired
 *   metadata or an unreachable server, because the last good policy stays in use
 */
export function hasVerifiedPolicy({ generation, problems, untrusted = [] }: StatusReport): boolean {
  if (generation === undefined || untrusted.some(({ active }) => active)) return false;
  return !problems.some(({ code }) => unverifiedCodes.has(code));
}

const maxFindings = 3;

/** @returns as `generation 18 (dns-edge 42) is active, 2 of 2 workers confirmed; warning: metadata is stale [STALE]` */
export function formatSystemdStatus(report: StatusReport): string {
  const { level, findings } = judgeHostHealth(report);
  const shown = findings
    .filter(({ code }) => code !== 'NOTHING_ACTIVE')
    .slice(0, maxFindings)
    .map(({ text, code }) => `${text.slice(0, 80)} [${code}]`);
  const warnings = shown.length === 0 ? '' : `; ${level}: ${shown.join(', ')}`;
  return `${formatActivePolicy(report)}${warnings}`;
}

function formatActivePolicy(report: StatusReport): string {
  const { generation, bundles, last } = report;
  if (generation === undefined) {
    const outcome = last === undefined ? '' : `, the last try: ${last.outcome}`;
    return `no policy is active, waiting for the first${outcome}`;
  }
  const serials = bundles.flatMap(({ bundle, serial }) =>
    serial === undefined ? [] : [`${bundle} ${serial}`],
  );
  const shown = serials.length > maxFindings ? [...serials.slice(0, maxFindings), '...'] : serials;
  return `generation ${generation}${shown.length === 0 ? '' : ` (${shown.join(', ')})`} is active${formatConfirmations(report)}`;
}

function formatConfirmations({ workers }: StatusReport): string {
  if (workers.length === 0) return '';
  const confirmed = workers.filter(({ state }) => state === 'confirmed').length;
  return `, ${confirmed} of ${workers.length} workers confirmed`;
}
