// The health of a host, judged from its status report by one table of rules, which `writ health`, `writ status` and the
// image's health check use. One missed poll is not a finding; refused metadata is.
import type { ErrorCode } from '../errors.js';
import { describeCaller } from '../names.js';
import { classifyRefreshFailure } from './freshness.js';
import type { StatusReport } from './status.js';
import { workerCodes } from './worker-rules.js';

export type HealthLevel = 'ok' | 'warning' | 'critical';

/** A state of a host that is not an error. `writ help CODE` explains each. */
export type HostStateCode = 'NOTHING_ACTIVE' | 'NO_AGENT' | 'STALE' | 'FROZEN' | 'REFUSED' | 'EXPIRES_SOON';

/** A state in /healthz of `writ serve` that is not an error. `writ help CODE` explains each. */
export type ServerStateCode = 'EXPIRES_SOON' | 'PUBLISH_PENDING';

export interface HealthFinding {
  readonly level: Exclude<HealthLevel, 'ok'>;
  /** An error code, or the code of a state that is not an error. */
  readonly code: ErrorCode | HostStateCode;
  /** One short line for operators. */
  readonly text: string;
}

export interface HostHealth {
  readonly level: HealthLevel;
  /** Critical findings first. */
  readonly findings: readonly HealthFinding[];
}

type Rule = (report: StatusReport) => readonly HealthFinding[];

const rules: readonly Rule[] = [
  ...[
    findNothingActive,
    findProblems,
    findStaleMetadata,
    findRefusedReleases,
    findWorkerProblems,
    findWorkerEnds,
  ],
  ...[findEndlessPause, findHeldOffers, findExpiringRoles, findMissingAgent],
];

/** @returns the findings, each once, and the level of the worst of them */
export function judgeHostHealth(report: StatusReport): HostHealth {
  const found = rules.flatMap((rule) => rule(report));
  const unique = found.filter(
    (one, index) => found.findIndex((other) => other.code === one.code && other.text === one.text) === index,
  );
  const findings = (['critical', 'warning'] as const).flatMap((level) =>
    unique.filter((one) => one.level === level),
  );
  return { level: findings[0]?.level ?? 'ok', findings };
}

function findNothingActive({ generation }: StatusReport): HealthFinding[] {
  if (generation !== undefined) return [];
  return [{ level: 'critical', code: 'NOTHING_ACTIVE', text: 'no policy is active' }];
}

const criticalCodes: ReadonlySet<ErrorCode> = new Set([
  'ACTIVATION_BLOCKED',
  'UNTRUSTED_ACTIVE',
  'POLICY_STALE',
  'STATE_DAMAGED',
  'STATE_VANISHED',
  'BAKE_FAILED',
  'BAKE_OVERDUE',
  'RESTORE_UNRECORDED',
]);

/** States that an operator requested, and problems that another rule reports. */
const ignoredCodes: ReadonlySet<ErrorCode> = new Set([
  'CHECK_DEFERRED',
  'RELEASE_HELD',
  'LOADER_DEFERRED',
  'ACTIVATION_PAUSED',
  'ACTIVATION_PACED',
  'BAKE_GAP',
  'REMEMBERED_REFUSAL',
  // The rule of the workers reports these with their level.
  ...workerCodes,
  'AGENT_STOPPING',
  'INTERRUPTED',
]);

function findProblems(report: StatusReport): HealthFinding[] {
  return report.problems.flatMap(({ code, message, facts }): HealthFinding[] => {
    // One failed contact is not a finding: `staleAfter` and `release.staleAfter` decide when it becomes a finding.
    if (ignoredCodes.has(code) || classifyRefreshFailure(code) === 'unreached') return [];
    // A withdrawal is critical only after a cycle could not follow it.
    const isStuck = code === 'ACTIVE_WITHDRAWN' && 'why' in facts;
    const isOverdue = code === 'RELEASE_STALE' && facts['state'] === 'overdue';
    const level = criticalCodes.has(code) || isStuck || isOverdue ? 'critical' : 'warning';
    return [
      {
        level,
        code,
        text: truncateToLine(message, code === 'RELEASE_STALE' ? maxCharactersWithUrl : undefined),
      },
    ];
  });
}

/** Enough for a URL, because an operator cannot request a truncated URL. */
const maxCharactersWithUrl = 700;

function truncateToLine(message: string, maxCharacters = 200): string {
  const [text = ''] = message.split('\n', 1);
  return text.slice(0, maxCharacters);
}

const freshnessCodes = { stale: 'STALE', frozen: 'FROZEN', refused: 'REFUSED' } as const;

function findStaleMetadata({
  freshness: { state, expired, refused, failing },
}: StatusReport): HealthFinding[] {
  if (state === 'fresh') return [];
  const attempt = refused ?? failing;
  const why = [
    ...(expired === undefined ? [] : [`${expired.role} has expired`]),
    ...(attempt === undefined
      ? []
      : [attempt.times === 1 ? attempt.code : `${attempt.times} times ${attempt.code}`]),
  ];
  const text = `metadata is ${state}${why.length === 0 ? '' : ` (${why.join(', ')})`}`;
  return [{ level: 'warning', code: freshnessCodes[state], text }];
}

function findRefusedReleases(report: StatusReport): HealthFinding[] {
  return report.refusals.map(({ bundle, serial, code }) => ({
    level: 'warning',
    code: 'REMEMBERED_REFUSAL',
    text: `${bundle} ${serial} is refused (${code})`,
  }));
}

function findWorkerProblems({ groups = [] }: StatusReport): HealthFinding[] {
  return groups.flatMap(({ findings }) =>
    findings.map(({ level, code, text }) => ({ level, code, text: truncateToLine(text) })),
  );
}

/**
 * @returns a warning for each worker with a process that ended within the bake time of a release. It is only a warning, because an
 *   operator can have restarted the worker; it can also be the first sign of a faulty release
 */
export function findWorkerEnds({ bundles }: Pick<StatusReport, 'bundles'>): HealthFinding[] {
  return bundles.flatMap(({ bundle, serial, bake }) =>
    (bake?.ends ?? []).map(({ worker, abnormal, unexplained }): HealthFinding => {
      const text = `${worker} ${formatWorkerEnds({ abnormal, unexplained })} since ${bundle} ${serial} became active`;
      return { level: 'warning', code: 'WORKER_RESTARTED', text };
    }),
  );
}

/** @returns as `had 1 abnormal end and 2 unexplained restarts` */
export function formatWorkerEnds(counts: {
  readonly abnormal: number;
  readonly unexplained: number;
}): string {
  const { abnormal, unexplained } = counts;
  const parts = [
    ...(abnormal === 0 ? [] : [formatCount(abnormal, 'abnormal end')]),
    ...(unexplained === 0 ? [] : [formatCount(unexplained, 'unexplained restart')]),
  ];
  return `had ${parts.join(' and ')}`;
}

function formatCount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Warns only of a pause without an end, because the policy stays unchanged until an operator ends it. */
function findEndlessPause({ pause }: StatusReport): HealthFinding[] {
  if (pause === undefined || pause.untilMs !== undefined) return [];
  const text = `this host was paused without an end by ${describeCaller(pause.by)}`;
  return [{ level: 'warning', code: 'ACTIVATION_PAUSED', text }];
}

/** Warns only of a held release that is still offered, because another hold blocks no release. */
function findHeldOffers({ holds, bundles }: StatusReport): HealthFinding[] {
  return holds.flatMap(({ bundle, serial, by }): HealthFinding[] => {
    const isOffered = bundles.some((one) => one.bundle === bundle && one.server?.serial === serial);
    if (!isOffered) return [];
    const text = `${bundle} ${serial}, which the server offers, is held by ${describeCaller(by)}`;
    return [{ level: 'warning', code: 'RELEASE_HELD', text }];
  });
}

const dayMs = 86_400_000;
/** Longer for offline roles, because a person signs them; a running server signs the online roles. */
const offlineMarginMs = 14 * dayMs;
const snapshotMarginMs = 3 * dayMs;
const timestampMarginMs = dayMs;

function findExpiringRoles({ trust, atMs }: StatusReport): HealthFinding[] {
  return trust.flatMap(({ role, expiresAtMs, signedAtMs }): HealthFinding[] => {
    const leftMs = expiresAtMs - atMs;
    const validityMs = signedAtMs === undefined ? Number.POSITIVE_INFINITY : expiresAtMs - signedAtMs;
    // An expired role is reported as frozen.
    if (leftMs <= 0 || leftMs >= warningMarginMs(role, validityMs)) return [];
    const text = `${role} expires in ${Math.floor(leftMs / 3_600_000)} h`;
    return [{ level: 'warning', code: 'EXPIRES_SOON', text }];
  });
}

/** At most a quarter of the validity period of a timestamp, because one that is valid for a day would always warn. */
function warningMarginMs(role: string, validityMs: number): number {
  if (role === 'timestamp') return Math.min(timestampMarginMs, validityMs / 4);
  return role === 'snapshot' ? snapshotMarginMs : offlineMarginMs;
}

function findMissingAgent({ agent, bundles }: StatusReport): HealthFinding[] {
  if (agent !== 'stop') return [];
  const waiting = bundles.filter(({ bake }) => bake?.waitsFor?.what === 'agent').map(({ bundle }) => bundle);
  const bakes = waiting.length === 0 ? '' : `, and the bake time of ${waiting.join(', ')} does not pass`;
  const text = truncateToLine(`no agent runs, nothing is pulled automatically${bakes}`);
  return [{ level: 'warning', code: 'NO_AGENT', text }];
}
