// /run/writ/status.json (0644; with `read` 0640, for its group): the part of the status report that every user of the host may read,
// without the socket. Written at each change, so that a poll without effect writes nothing, and at each keepalive of an agent. Not
// flushed, because it is written again and has no meaning after a power failure. Hook output and workers' answers are left out.

import type { Problem } from '../../core/cycle/cycle-report.js';
import { errorCodes } from '../../core/error-codes.js';
import { orUndefined } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { StatusReport } from '../../core/protocol/control-protocol.js';
import type { FleetStatus, GenerationUserStatus, GroupStatus } from '../../core/status/status.js';
import { fingerprintStatus } from '../../core/status/status-fingerprint.js';
import { readSmallFile } from '../../platform/read-file.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import type { Host } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';

const maxStatusBytes = 1_000_000;

/**
 * Writes the public part of a report, without the download. A failure is logged and changes no outcome.
 * @param when `news`: only if the report differs from that of the file in more than ages and times; `beat`: always
 */
export function writeStatusFile(
  host: Pick<Host, 'paths' | 'durable' | 'log' | 'config'>,
  report: StatusReport,
  when: 'news' | 'beat' = 'news',
): void {
  // Without the download, because an agent that is killed during a download would leave it in the file.
  const { downloading: _, ...next } = publicPart(report);
  try {
    const known = when === 'beat' ? undefined : readStatusFile(host.paths);
    if (known !== undefined && fingerprintStatus(known) === fingerprintStatus(next)) return;
    host.durable.replaceFile(
      'status',
      host.paths.status,
      `${JSON.stringify(next)}\n`,
      readersOf(host.config),
    );
  } catch (error) {
    host.log.warn({ err: error }, 'status.json could not be written');
  }
}

/** For an unknown group, only root can read the file. */
function readersOf({ read }: Pick<Host['config'], 'read'>): {
  readonly mode: number;
  readonly groupId?: number;
} {
  if (read === undefined) return { mode: 0o644 };
  const groupId = orUndefined(() => resolveGroup(read.group));
  return { mode: 0o640, ...given({ groupId }) };
}

/** @returns the report without the output of commands and workers, and without the reasons that operators gave */
export function publicPart(report: StatusReport): StatusReport {
  return {
    ...report,
    workers: report.workers.map((one) => ({ ...one, text: '' })),
    ...(report.groups === undefined ? {} : { groups: report.groups.map(publicGroup) }),
    refusals: report.refusals.map((one) => ({ ...one, reason: '' })),
    holds: report.holds.map((one) => ({ ...one, reason: '' })),
    ...(report.pause === undefined ? {} : { pause: { ...report.pause, reason: '' } }),
    // Without process details, because /proc may hide them from other users.
    ...(report.held === undefined ? {} : { held: report.held.map(publicHeld) }),
    ...(report.scrub === undefined ? {} : { scrub: { ...report.scrub, damage: [] } }),
    ...(report.fleet === undefined ? {} : { fleet: publicFleet(report.fleet) }),
    problems: report.problems.map(publicProblem),
  };
}

function publicProblem({ code, hint }: Problem): Problem {
  return { code, message: errorCodes[code].meaning, hint, facts: {} };
}

function publicFleet({ problem, ...fleet }: FleetStatus): FleetStatus {
  return problem === undefined ? fleet : { ...fleet, problem: publicProblem(problem) };
}

function publicGroup({ findings, ...group }: GroupStatus): GroupStatus {
  return { ...group, findings: findings.map((one) => ({ ...one, text: errorCodes[one.code].meaning })) };
}

function publicHeld({
  pid: _,
  command: _command,
  path: _path,
  ...one
}: GenerationUserStatus): GenerationUserStatus {
  return one;
}

/** @returns the last report; undefined without a file, and for one that is unreadable, above 1 MB, or no report */
export function readStatusFile(paths: Pick<HostPaths, 'status'>): StatusReport | undefined {
  const verdict = readSmallFile(paths.status, { maxBytes: maxStatusBytes });
  if (verdict.kind !== 'read') return undefined;
  try {
    const value: unknown = JSON.parse(verdict.bytes.toString('utf8'));
    return isReport(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isReport(value: unknown): value is StatusReport {
  if (typeof value !== 'object' || value === null) return false;
  const { type, freshness } = value as { type?: unknown; freshness?: unknown };
  return type === 'status.result' && typeof freshness === 'object' && freshness !== null;
}
