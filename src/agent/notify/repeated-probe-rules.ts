// Decides what follows from a repeated probe: when a worker becomes suspect, when it is notified again, and when notifications
// end. Pure. A failed probe causes no restart, load or rollback here, because the policy was good when it was activated.
import { computeBackoffMs } from '../../core/backoff.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { maxProbeNotices } from '../../core/status/worker-rules.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { WorkerGroup } from '../state/host.js';
import type { ProbeCounts, SecondProbe, WorkerLedger } from '../state/ledger.js';

/** A worker is notified after this many failures in a row, because its daemon may be reading its files during the first one. */
const failuresBeforeNotice = 3;
const backoff = { firstMs: 60_000, maxMs: 3_600_000 };

/** @param notices notifications that failed probes caused in this generation. @returns milliseconds until the next is allowed */
export function noticeGapMs(notices: number): number {
  return computeBackoffMs(notices, backoff);
}

/** @returns true while the last counted probe of the worker failed */
export function isSuspect({ probed }: Pick<WorkerLedger, 'probed'>): boolean {
  return (probed?.wrong ?? 0) > 0;
}

/** @returns true for a member that accepted the generation, or that is suspect */
export function isProbedAgain(worker: WorkerLedger): boolean {
  const { goneAtMs, state } = worker;
  return goneAtMs === undefined && (state === 'confirmed' || state === 'notified' || isSuspect(worker));
}

/** A daemon that lost the notification of a restore may show the restored state at first, and the refused policy later. */
const minSecondProbeMs = 30_000;

/**
 * Requires a second passed probe after a restore, because one pass does not show that the restored policy stays in use.
 * @param results of a restore
 * @returns the results; a confirmed worker of a group with a probe is `notified` until then
 */
export function withSecondProbe(
  groups: readonly Pick<WorkerGroup, 'config'>[],
  results: readonly WorkerResult[],
  nowMs: number,
): WorkerResult[] {
  return results.map((one): WorkerResult => {
    const { config } = groups.find(({ config: { name } }) => name === one.group) ?? {};
    if (config?.probe === undefined || one.state !== 'confirmed') return one;
    const { timeoutMs } = config.reset ?? config.probe;
    const secondProbeAtMs = nowMs + Math.max(minSecondProbeMs, timeoutMs);
    const text = `${one.text}; its probe is asked again from ${utcTimeText(secondProbeAtMs)}, by a pull if no agent runs`;
    return { ...one, state: 'notified', text, secondProbeAtMs };
  });
}

/** @returns the second probe that is still required after this result; a new notification delays it */
export function secondProbeAfter(
  { secondProbeAtMs, generation, notificationId, atMs }: WorkerResult,
  known: WorkerLedger | undefined,
): SecondProbe | undefined {
  if (secondProbeAtMs !== undefined) return { atMs: secondProbeAtMs, wrong: 0 };
  const second = known?.wanted === generation ? known.secondProbe : undefined;
  const isSame = notificationId === undefined || notificationId === known?.notificationId;
  if (second === undefined || isSame) return second;
  return { ...second, atMs: Math.max(second.atMs, atMs + minSecondProbeMs) };
}

export interface FailedProbe {
  readonly text: string;
  readonly nowMs: number;
  /** Least milliseconds since the last failure that counted, for this one to count; absent: each counts. */
  readonly minGapMs?: number | undefined;
  /** False for a group without `reset`: its worker takes no notification. */
  readonly canBeNotified: boolean;
}

/** @returns true for a further failure within the least gap, such as when an operator pulls several times within seconds */
function isEarly(worker: WorkerLedger, { nowMs, minGapMs = 0 }: FailedProbe): boolean {
  const { wrong, wrongAtMs } = worker.probed ?? { wrong: 0 };
  if (wrong === 0 || wrongAtMs === undefined || isSecondProbeDue(worker, nowMs)) return false;
  // A time in the future is from before the clock was set back.
  return wrongAtMs <= nowMs && nowMs - wrongAtMs < minGapMs;
}

/** @returns the entry after a failed probe: no longer confirmed, and pending after `failuresBeforeNotice` in a row */
export function afterFailedProbe(worker: WorkerLedger, answer: FailedProbe): WorkerLedger {
  const { text, nowMs, canBeNotified } = answer;
  const { silence: _, ...counts } = worker.probed ?? { wrong: 0 };
  if (isEarly(worker, answer)) return { ...worker, text, probed: { ...counts, text } };
  const probed: ProbeCounts = { ...counts, wrong: counts.wrong + 1, text, wrongAtMs: nowMs };
  if (worker.state !== 'confirmed' && worker.state !== 'notified') return { ...worker, probed };
  const { secondProbe } = worker;
  if (secondProbe !== undefined && secondProbe.atMs <= nowMs) {
    const again = { atMs: nowMs + minSecondProbeMs, wrong: secondProbe.wrong + 1 };
    const isNotified = canBeNotified && secondProbe.wrong === 0;
    const state = isNotified ? 'pending' : 'notified';
    return { ...worker, state, text, atMs: nowMs, probed, secondProbe: again };
  }
  if (canBeNotified && isNoticeDue(probed, nowMs)) {
    const notices = (probed.notices ?? 0) + 1;
    return {
      ...worker,
      state: 'pending',
      text,
      atMs: nowMs,
      probed: { ...probed, notices, noticeAtMs: nowMs },
    };
  }
  return {
    ...worker,
    ...(worker.state === 'confirmed' ? { state: 'notified', atMs: nowMs } : {}),
    text,
    probed,
  };
}

function isNoticeDue({ wrong, notices = 0, noticeAtMs }: ProbeCounts, nowMs: number): boolean {
  if (wrong < failuresBeforeNotice || notices >= maxProbeNotices) return false;
  // A time in the future is from before the clock was set back.
  return noticeAtMs === undefined || noticeAtMs > nowMs || nowMs - noticeAtMs >= noticeGapMs(notices);
}

/** @returns the entry after a probe without a verdict, which only adds a finding */
export function afterProbeWithoutVerdict(worker: WorkerLedger, silence: string, nowMs: number): WorkerLedger {
  const { secondProbe } = worker;
  const silent = { ...worker, probed: withProbeSilence(worker.probed, silence) };
  if (secondProbe === undefined || secondProbe.atMs > nowMs) return silent;
  return { ...silent, secondProbe: { ...secondProbe, atMs: nowMs + minSecondProbeMs } };
}

/** @returns the counts with the text of a probe that gave no verdict */
export function withProbeSilence(probed: ProbeCounts | undefined, silence: string): ProbeCounts {
  return { ...probed, wrong: probed?.wrong ?? 0, silence };
}

/** @returns true for a member after a failed probe or one without a verdict, until a later result clears that */
export function hasOpenProbe({ goneAtMs, probed }: WorkerLedger): boolean {
  return goneAtMs === undefined && probed !== undefined && (probed.wrong > 0 || probed.silence !== undefined);
}

/** @returns true if the worker requires a second probe, and the time from which it counts has come */
export function isSecondProbeDue({ secondProbe }: Pick<WorkerLedger, 'secondProbe'>, nowMs: number): boolean {
  return secondProbe !== undefined && secondProbe.atMs <= nowMs;
}

/** @returns the entry after a passed probe; not yet confirmed if a required second probe is not due */
export function afterPassedProbe(worker: WorkerLedger, nowMs: number): WorkerLedger {
  const { probed, tries: _, secondProbe, ...others } = worker;
  const isSoon = secondProbe !== undefined && secondProbe.atMs > nowMs;
  const rest = isSoon ? { ...others, secondProbe } : others;
  const left = countsAfterProof(probed);
  const same = { ...rest, ...(left === undefined ? {} : { probed: left }) };
  if (worker.state === 'confirmed' || isSoon) return same;
  const text = 'its probe shows the generation';
  return { ...same, state: 'confirmed', confirmed: worker.wanted, text, atMs: nowMs };
}

/** @returns the counts that remain after a confirmation: the notifications in this generation */
export function countsAfterProof({
  notices,
  noticeAtMs,
}: Partial<ProbeCounts> = {}): ProbeCounts | undefined {
  return notices === undefined || noticeAtMs === undefined ? undefined : { wrong: 0, notices, noticeAtMs };
}
