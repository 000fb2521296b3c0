// A cycle, and the way out where what is active is trusted no more or withdrawn: the same with an agent and without one.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import type { RefreshAttempt } from '../../core/status/freshness.js';
import type { PolicyLeft } from '../cycle/combined-result-rules.js';
import type { PolicyExit } from '../cycle/policy-exit.js';
import { waitForNextRefresh } from '../cycle/refresh-trust.js';
import { runSync } from '../cycle/sync-cycle.js';
import { createUntrustedExit } from '../cycle/untrusted-exit.js';
import { createWithdrawnExit } from '../cycle/withdrawn-exit.js';
import type { ContactKeeper } from '../freshness/contact-memory.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { isEndedForAnotherJob } from '../job/exclusive.js';
import type { Recorder } from '../job/record.js';
import type { Host } from '../state/host.js';

/** Who asked for a cycle, and why, as history names them. */
export type Asked = Parameters<Recorder['record']>[2];

export interface AfterCycle {
  readonly contact: ContactKeeper;
  /** Called when a download begins and after each refresh during it: it may take longer than `maxStale`. */
  readonly onRefreshed: () => void;
  readonly exits: readonly PolicyExit[];
  /** Called at each end, in its order. */
  readonly note: (end: CycleEnd, asked: Asked) => void;
  /** Called in place of `note` for a cycle that ended for another job, which is not a failure. */
  readonly noteEndedEarly?: (end: CycleEnd) => void;
}

/** @returns the exits in their order: at most one of them moves after a cycle */
export function createPolicyExits(): readonly PolicyExit[] {
  return [createUntrustedExit(), createWithdrawnExit()];
}

/** @returns how the cycle ended, and the rollback behind it, if there was one. @throws WritError as runSync */
export async function runCycleAndExit(
  host: Host,
  run: Omit<Parameters<typeof runSync>[1], 'waitForRefresh' | 'onRefreshed'>,
  { contact, onRefreshed, exits, note, noteEndedEarly }: AfterCycle,
): Promise<{ readonly result: CycleResult; readonly exit: PolicyLeft | undefined }> {
  const noteNew = attemptsOfCycle(contact);
  const end = await runSync(host, {
    ...run,
    waitForRefresh: (ended) => waitForNextRefresh(host, ended),
    onRefreshed: (attempt) => {
      if (noteNew(attempt)) onRefreshed();
    },
  });
  noteNew(end.refresh);
  if (end.result.problems.some(isEndedForAnotherJob)) {
    noteEndedEarly?.(end);
    return { result: end.result, exit: undefined };
  }
  note(end, run.by === undefined ? {} : { by: run.by });
  // Nothing is left for what a directory that vanished does not contain.
  if (host.stateMark?.findVanished() !== undefined) return { result: end.result, exit: undefined };
  for (const { alarm, afterCycle } of exits) {
    const left = await afterCycle(host, end, run.signal);
    if (left === undefined) continue;
    note(left, { by: 'writ', reason: alarm });
    return { result: end.result, exit: { alarm, result: left.result } };
  }
  return { result: end.result, exit: undefined };
}

/** @returns a function that notes each attempt of a cycle once, and returns whether this one is new */
function attemptsOfCycle(contact: ContactKeeper): (attempt: RefreshAttempt | undefined) => boolean {
  let last: RefreshAttempt | undefined;
  return (attempt) => {
    const isNoted = attempt?.atMs === last?.atMs && attempt?.error?.code === last?.error?.code;
    if (attempt === undefined || isNoted) return false;
    last = attempt;
    contact.note(attempt);
    return true;
  };
}
