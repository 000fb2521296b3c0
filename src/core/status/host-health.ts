// The health of a host, judged from its status report: one table of rules, used by `writ health`, `writ status` and
// the image's health check. Pure. A poll that was missed once is no news; metadata that was refused is.
import type { ErrorCode } from '../errors.js';
import { describeCaller } from '../names.js';
import { troubleOf } from './freshness.js';
import type { StatusReport } from './status.js';
import { workerCodes } from './worker-rules.js';

export type HealthLevel = 'ok' | 'warning' | 'critical';

export interface HealthFinding {
  readonly level: Exclude<HealthLevel, 'ok'>;
  /** An error code, or one of the few that are states and no errors. */
  readonly code: ErrorCode | 'NOTHING_ACTIVE' | 'NO_AGENT' | 'STALE' | 'FROZEN' | 'REFUSED' | 'EXPIRES_SOON';
  /** For people, in few words. */
  readonly text: string;
}

export interface HostHealth {
  readonly level: HealthLevel;
  /** The worst first. */
  readonly findings: readonly HealthFinding[];
}

type Rule = (report: StatusReport) => readonly HealthFinding[];

const rules: readonly Rule[] = [
  ...[nothingActive, problems, freshness, refusals, workers, endsInBake],
  ...[paused, held, roleEnds, noAgent],
];

/** @returns the judgement; the level is that of the worst finding */
export function judgeHealth(report: StatusReport): HostHealth {
  const found = rules.flatMap((rule) => rule(report));
  const unique = found.filter(
    (one, index) => found.findIndex((other) => other.code === one.code && other.text === one.text) === index,
  );
  const findings = (['critical', 'warning'] as const).flatMap((level) =>
    unique.filter((one) => one.level === level),
  );
  return { level: findings[0]?.level ?? 'ok', findings };
}

function nothingActive({ generation }: StatusReport): HealthFinding[] {
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
  'RESTORE_UNRECORDED',
]);

/** What is as somebody wished it, or said by another rule. */
const quietCodes: ReadonlySet<ErrorCode> = new Set([
  'CHECK_DEFERRED',
  'RELEASE_HELD',
  'LOADER_DEFERRED',
  'ACTIVATION_PAUSED',
  'ACTIVATION_PACED',
  'BAKE_GAP',
  'REMEMBERED_REFUSAL',
  // Said by the rule of the workers, with its level.
  ...workerCodes,
  'AGENT_STOPPING',
  'INTERRUPTED',
]);

function problems(report: StatusReport): HealthFinding[] {
  return report.problems.flatMap(({ code, message, facts }): HealthFinding[] => {
    // A server that did not answer once: `staleAfter` and `release.staleAfter` say when that is news.
    if (quietCodes.has(code) || troubleOf(code) === 'unreached') return [];
    // Until a cycle has tried it, a withdrawal is only on its way.
    const isStuck = code === 'ACTIVE_WITHDRAWN' && 'why' in facts;
    const isOverdue = code === 'RELEASE_STALE' && facts['state'] === 'overdue';
    const level = criticalCodes.has(code) || isStuck || isOverdue ? 'critical' : 'warning';
    return [{ level, code, text: headOf(message, code === 'RELEASE_STALE' ? maxWithUrl : undefined) }];
  });
}

/** A URL that is cut cannot be asked for. */
const maxWithUrl = 700;

function headOf(message: string, maxCharacters = 200): string {
  const [text = ''] = message.split('\n', 1);
  return text.slice(0, maxCharacters);
}

const staleCode = { stale: 'STALE', frozen: 'FROZEN', refused: 'REFUSED' } as const;

function freshness({ freshness: { state, expired, refused, failing } }: StatusReport): HealthFinding[] {
  if (state === 'fresh') return [];
  const attempt = refused ?? failing;
  const why = [
    ...(expired === undefined ? [] : [`${expired.role} has expired`]),
    ...(attempt === undefined
      ? []
      : [attempt.times === 1 ? attempt.code : `${attempt.times} times ${attempt.code}`]),
  ];
  const text = `metadata is ${state}${why.length === 0 ? '' : ` (${why.join(', ')})`}`;
  return [{ level: 'warning', code: staleCode[state], text }];
}

function refusals(report: StatusReport): HealthFinding[] {
  return report.refusals.map(({ bundle, serial, code }) => ({
    level: 'warning',
    code: 'REMEMBERED_REFUSAL',
    text: `${bundle} ${serial} is refused (${code})`,
  }));
}

function workers({ groups = [] }: StatusReport): HealthFinding[] {
  return groups.flatMap(({ findings }) =>
    findings.map(({ level, code, text }) => ({ level, code, text: headOf(text) })),
  );
}

/**
 * @returns a warning for each worker with ends in the bake time of a release. A person may have restarted it, or it may be the first
 * sign of a fault of the release
 */
export function endsInBake({ bundles }: Pick<StatusReport, 'bundles'>): HealthFinding[] {
  return bundles.flatMap(({ bundle, serial, bake }) =>
    (bake?.ends ?? []).map(({ worker, abnormal, unexplained }): HealthFinding => {
      const text = `${worker} ${endedText({ abnormal, unexplained })} since ${bundle} ${serial} became active`;
      return { level: 'warning', code: 'WORKER_RESTARTED', text };
    }),
  );
}

/** @returns as `had 1 abnormal end and 2 unexplained restarts` */
export function endedText(counts: { readonly abnormal: number; readonly unexplained: number }): string {
  const { abnormal, unexplained } = counts;
  const parts = [
    ...(abnormal === 0 ? [] : [countOf(abnormal, 'abnormal end')]),
    ...(unexplained === 0 ? [] : [countOf(unexplained, 'unexplained restart')]),
  ];
  return `had ${parts.join(' and ')}`;
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** One that ends by itself was meant so; one that nobody ends is a policy that never changes again. */
function paused({ pause }: StatusReport): HealthFinding[] {
  if (pause === undefined || pause.untilMs !== undefined) return [];
  const text = `this host was paused without an end by ${describeCaller(pause.by)}`;
  return [{ level: 'warning', code: 'ACTIVATION_PAUSED', text }];
}

/** A hold of what nobody offers any more keeps nothing out. */
function held({ holds, bundles }: StatusReport): HealthFinding[] {
  return holds.flatMap(({ bundle, serial, by }): HealthFinding[] => {
    const waits = bundles.some((one) => one.bundle === bundle && one.server?.serial === serial);
    if (!waits) return [];
    const text = `${bundle} ${serial}, which the server offers, is held by ${describeCaller(by)}`;
    return [{ level: 'warning', code: 'RELEASE_HELD', text }];
  });
}

const dayMs = 86_400_000;
/** Offline roles need people, online ones a server that runs. */
const offlineMarginMs = 14 * dayMs;
const snapshotMarginMs = 3 * dayMs;
const timestampMarginMs = dayMs;

function roleEnds({ trust, atMs }: StatusReport): HealthFinding[] {
  return trust.flatMap(({ role, expiresAtMs, signedAtMs }): HealthFinding[] => {
    const leftMs = expiresAtMs - atMs;
    const lifeMs = signedAtMs === undefined ? Number.POSITIVE_INFINITY : expiresAtMs - signedAtMs;
    // What has expired is said as frozen.
    if (leftMs <= 0 || leftMs >= marginMs(role, lifeMs)) return [];
    const text = `${role} expires in ${Math.floor(leftMs / 3_600_000)} h`;
    return [{ level: 'warning', code: 'EXPIRES_SOON', text }];
  });
}

/** A role that lives for a day would warn for ever of ending within one. */
function marginMs(role: string, lifeMs: number): number {
  if (role === 'timestamp') return Math.min(timestampMarginMs, lifeMs / 4);
  return role === 'snapshot' ? snapshotMarginMs : offlineMarginMs;
}

function noAgent({ agent, bundles }: StatusReport): HealthFinding[] {
  if (agent !== 'stop') return [];
  const waiting = bundles.filter(({ bake }) => bake?.waitsFor?.what === 'agent').map(({ bundle }) => bundle);
  const bakes = waiting.length === 0 ? '' : `, and the bake time of ${waiting.join(', ')} does not pass`;
  const text = headOf(`no agent runs, nothing is pulled automatically${bakes}`);
  return [{ level: 'warning', code: 'NO_AGENT', text }];
}
