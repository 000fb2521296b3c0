// What follows from a probe that is repeated between activations: when a worker is doubted, when it is notified again, and
// when that is given up. Pure. Never a restart, a load or a way back follows: the policy was good when it was activated.
import { computeBackoffMs } from '../../core/backoff.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { maxProbeNotices } from '../../core/status/worker-rules.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { WorkerGroup } from '../state/host.js';
import type { ProbeCounts, SecondProbe, WorkerLedger } from '../state/ledger.js';

/** So many wrong answers in a row make a worker pending: the first one may have met a daemon that reads its files. */
const wrongBeforeNotice = 3;
const backoff = { firstMs: 60_000, maxMs: 3_600_000 };

/** @returns the least time between a notification that wrong answers caused, the n-th of its generation, and the next one */
export function noticeGapMs(notices: number): number {
  return computeBackoffMs(notices, backoff);
}

/** True while its probe says that it uses something else. */
export function isDoubted({ probed }: Pick<WorkerLedger, 'probed'>): boolean {
  return (probed?.wrong ?? 0) > 0;
}

/** It is asked about: it is there and said that it took the generation, or only its probe says that it did not. */
export function isAskedAgain(worker: WorkerLedger): boolean {
  const { goneAtMs, state } = worker;
  return goneAtMs === undefined && (state === 'confirmed' || state === 'notified' || isDoubted(worker));
}

/** A daemon that lost the notification of a way back shows its old state first, and the refused policy later. */
const leastSecondProbeMs = 30_000;

/**
 * @param results of a way back
 * @returns the results, with those of a confirmed worker as `notified` where its group has a probe: one right answer proves
 *   nothing yet
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
    const secondProbeAtMs = nowMs + Math.max(leastSecondProbeMs, timeoutMs);
    const text = `${one.text}; its probe is asked again from ${utcTimeText(secondProbeAtMs)}, by a pull if no agent runs`;
    return { ...one, state: 'notified', text, secondProbeAtMs };
  });
}

/** @returns what is left to ask of a worker after this result; a further notification begins the time again */
export function secondProbeAfter(
  { secondProbeAtMs, generation, notificationId, atMs }: WorkerResult,
  known: WorkerLedger | undefined,
): SecondProbe | undefined {
  if (secondProbeAtMs !== undefined) return { atMs: secondProbeAtMs, wrong: 0 };
  const second = known?.wanted === generation ? known.secondProbe : undefined;
  const isSame = notificationId === undefined || notificationId === known?.notificationId;
  if (second === undefined || isSame) return second;
  return { ...second, atMs: Math.max(second.atMs, atMs + leastSecondProbeMs) };
}

export interface WrongAnswer {
  readonly text: string;
  readonly nowMs: number;
  /** Sooner after the last wrong answer that counted this one does not count; left out: each counts. */
  readonly minGapMs?: number | undefined;
  /** `no`: nobody could notify it, for its group has no `reset`. */
  readonly canBeNotified: 'yes' | 'no';
}

/** True of a further wrong answer that comes before its time, as where a person pulls several times within seconds. */
function isEarly(worker: WorkerLedger, { nowMs, minGapMs = 0 }: WrongAnswer): boolean {
  const { wrong, wrongAtMs } = worker.probed ?? { wrong: 0 };
  if (wrong === 0 || wrongAtMs === undefined || isSecondProbeTurn(worker, nowMs)) return false;
  // A time to come was noted by a clock that was set back since.
  return wrongAtMs <= nowMs && nowMs - wrongAtMs < minGapMs;
}

/** @returns the worker after a wrong answer: it is confirmed no longer, and after the third in a row it is pending */
export function afterWrong(worker: WorkerLedger, answer: WrongAnswer): WorkerLedger {
  const { text, nowMs, canBeNotified } = answer;
  const { silence: _, ...counts } = worker.probed ?? { wrong: 0 };
  if (isEarly(worker, answer)) return { ...worker, text, probed: { ...counts, text } };
  const probed: ProbeCounts = { ...counts, wrong: counts.wrong + 1, text, wrongAtMs: nowMs };
  if (worker.state !== 'confirmed' && worker.state !== 'notified') return { ...worker, probed };
  const { secondProbe } = worker;
  if (secondProbe !== undefined && secondProbe.atMs <= nowMs) {
    const again = { atMs: nowMs + leastSecondProbeMs, wrong: secondProbe.wrong + 1 };
    const isNotified = canBeNotified === 'yes' && secondProbe.wrong === 0;
    const state = isNotified ? 'pending' : 'notified';
    return { ...worker, state, text, atMs: nowMs, probed, secondProbe: again };
  }
  if (canBeNotified === 'yes' && isNoticeTurn(probed, nowMs)) {
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

function isNoticeTurn({ wrong, notices = 0, noticeAtMs }: ProbeCounts, nowMs: number): boolean {
  if (wrong < wrongBeforeNotice || notices >= maxProbeNotices) return false;
  // A time to come was noted by a clock that was set back since.
  return noticeAtMs === undefined || noticeAtMs > nowMs || nowMs - noticeAtMs >= noticeGapMs(notices);
}

/** @returns the worker after a try without a verdict: a finding, and nothing else */
export function afterSilence(worker: WorkerLedger, silence: string, nowMs: number): WorkerLedger {
  const { secondProbe } = worker;
  const silent = { ...worker, probed: unheard(worker.probed, silence) };
  if (secondProbe === undefined || secondProbe.atMs > nowMs) return silent;
  return { ...silent, secondProbe: { ...secondProbe, atMs: nowMs + leastSecondProbeMs } };
}

/** @returns the counts of a worker whose probe gave no verdict */
export function unheard(probed: ProbeCounts | undefined, silence: string): ProbeCounts {
  return { ...probed, wrong: probed?.wrong ?? 0, silence };
}

/** Its probe refused, or was not heard, and nothing has ended that. */
export function isOpen({ goneAtMs, probed }: WorkerLedger): boolean {
  return goneAtMs === undefined && probed !== undefined && (probed.wrong > 0 || probed.silence !== undefined);
}

/** True from the time on at which a second answer of its probe counts. */
export function isSecondProbeTurn(
  { secondProbe }: Pick<WorkerLedger, 'secondProbe'>,
  nowMs: number,
): boolean {
  return secondProbe !== undefined && secondProbe.atMs <= nowMs;
}

/** @returns the worker after a right answer */
export function afterRight(worker: WorkerLedger, nowMs: number): WorkerLedger {
  const { probed, tries: _, secondProbe, ...others } = worker;
  const isSoon = secondProbe !== undefined && secondProbe.atMs > nowMs;
  const rest = isSoon ? { ...others, secondProbe } : others;
  const left = settledCounts(probed);
  const same = { ...rest, ...(left === undefined ? {} : { probed: left }) };
  if (worker.state === 'confirmed' || isSoon) return same;
  const text = 'its probe shows the generation';
  return { ...same, state: 'confirmed', confirmed: worker.wanted, text, atMs: nowMs };
}

/** @returns what is left of the counts once the worker is proved: the notifications of its generation */
export function settledCounts({ notices, noticeAtMs }: Partial<ProbeCounts> = {}): ProbeCounts | undefined {
  return notices === undefined || noticeAtMs === undefined ? undefined : { wrong: 0, notices, noticeAtMs };
}
