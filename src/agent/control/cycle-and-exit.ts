// Runs a cycle, and then the exit rollback if the active release is withdrawn or not trusted any more. The agent and the standalone
// pull use the same function.
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

/** The caller of a cycle and the reason, as in the history. */
export type CycleOrigin = Parameters<Recorder['record']>[2];

export interface CycleHandlers {
  readonly contact: ContactKeeper;
  /** Called when a download begins and after each refresh during it: it may take longer than `maxStale`. */
  readonly onRefreshed: () => void;
  readonly exits: readonly PolicyExit[];
  /** Called for the end of the cycle, and then for that of an exit rollback. */
  readonly note: (end: CycleEnd, asked: CycleOrigin) => void;
  /** Called in place of `note` for a cycle that ended for another job, which is not a failure. */
  readonly noteEndedEarly?: (end: CycleEnd) => void;
}

/** @returns the exit rollbacks in their order: at most one of them moves the policy after a cycle */
export function createExitRollbacks(): readonly PolicyExit[] {
  return [createUntrustedExit(), createWithdrawnExit()];
}

/** @returns the result of the cycle, and that of the exit rollback; undefined for none. @throws WritError as runSync */
export async function runCycleWithExit(
  host: Host,
  run: Omit<Parameters<typeof runSync>[1], 'waitForRefresh' | 'onRefreshed'>,
  { contact, onRefreshed, exits, note, noteEndedEarly }: CycleHandlers,
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
  // Without the state directory no exit rollback is possible.
  if (host.stateMark?.findVanished() !== undefined) return { result: end.result, exit: undefined };
  for (const { alarm, afterCycle } of exits) {
    const left = await afterCycle(host, end, run.signal);
    if (left === undefined) continue;
    note(left, { by: 'writ', reason: alarm });
    return { result: end.result, exit: { alarm, result: left.result } };
  }
  return { result: end.result, exit: undefined };
}

/** @returns a function that records each refresh attempt of a cycle once, and returns true for a new one */
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
