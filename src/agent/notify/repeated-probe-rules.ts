// What follows from a probe that is repeated between activations: when a worker is doubted, when it is notified again, and
// when that is given up. Pure. Never a restart, a load or a way back follows: the policy was good when it was activated.
import { maxProbeNotices } from '../../core/status/worker-rules.js';
import type { ProbeCounts, WorkerLedger } from '../state/ledger.js';

/** So many wrong answers in a row make a worker pending: the first one may have met a daemon that reads its files. */
const wrongBeforeNotice = 3;
const firstGapMs = 60_000;
const maxGapMs = 3_600_000;

/** @returns the least time between a notification that wrong answers caused, the n-th of its generation, and the next one */
export function noticeGapMs(notices: number): number {
  return Math.min(firstGapMs * 2 ** Math.max(notices - 1, 0), maxGapMs);
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

export interface WrongAnswer {
  readonly text: string;
  readonly nowMs: number;
  /** `no`: nobody could notify it, for its group has no `reset`. */
  readonly canBeNotified: 'yes' | 'no';
}

/** @returns the worker after a wrong answer: it is confirmed no longer, and after the third in a row it is pending */
export function afterWrong(worker: WorkerLedger, { text, nowMs, canBeNotified }: WrongAnswer): WorkerLedger {
  const { silence: _, ...counts } = worker.probed ?? { wrong: 0 };
  const probed: ProbeCounts = { ...counts, wrong: counts.wrong + 1, text };
  if (worker.state !== 'confirmed' && worker.state !== 'notified') return { ...worker, probed };
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
export function afterSilence(worker: WorkerLedger, silence: string): WorkerLedger {
  return { ...worker, probed: unheard(worker.probed, silence) };
}

/** @returns the counts of a worker whose probe gave no verdict */
export function unheard(probed: ProbeCounts | undefined, silence: string): ProbeCounts {
  return { ...probed, wrong: probed?.wrong ?? 0, silence };
}

/** Its probe refused, or was not heard, and nothing has ended that. */
export function isOpen({ goneAtMs, probed }: WorkerLedger): boolean {
  return goneAtMs === undefined && probed !== undefined && (probed.wrong > 0 || probed.silence !== undefined);
}

/** @returns the worker after a right answer */
export function afterRight(worker: WorkerLedger, nowMs: number): WorkerLedger {
  const { probed, tries: _, ...rest } = worker;
  const left = settledCounts(probed);
  const same = { ...rest, ...(left === undefined ? {} : { probed: left }) };
  if (worker.state === 'confirmed') return same;
  const text = 'its probe shows the generation';
  return { ...same, state: 'confirmed', confirmed: worker.wanted, text, atMs: nowMs };
}

/** @returns what is left of the counts once the worker is proved: the notifications of its generation */
export function settledCounts({ notices, noticeAtMs }: Partial<ProbeCounts> = {}): ProbeCounts | undefined {
  return notices === undefined || noticeAtMs === undefined ? undefined : { wrong: 0, notices, noticeAtMs };
}
