// A cycle, and the way out where it found that what is active is trusted no more: the same with an agent and without one.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { runSync } from '../cycle/sync-cycle.js';
import type { UntrustedExit } from '../cycle/untrusted-exit.js';
import type { ContactKeeper } from '../freshness/contact-memory.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Recorder } from '../job/record.js';
import type { Host } from '../state/host.js';

/** Who asked for a cycle, and why, as history names them. */
export type Asked = Parameters<Recorder['record']>[2];

export interface AfterCycle {
  readonly contact: ContactKeeper;
  readonly untrustedExit: UntrustedExit;
  /** Called at each end, in its order. */
  readonly note: (end: CycleEnd, asked: Asked) => void;
}

/** @returns how the cycle ended, and the rollback behind it, if there was one. @throws WritError as runSync */
export async function runCycleAndExit(
  host: Host,
  run: Parameters<typeof runSync>[1],
  { contact, untrustedExit, note }: AfterCycle,
): Promise<{ readonly result: CycleResult; readonly exit: CycleResult | undefined }> {
  const end = await runSync(host, run);
  contact.note(end.refresh);
  note(end, run.by === undefined ? {} : { by: run.by });
  const left = await untrustedExit.afterCycle(host, end, run.signal);
  if (left !== undefined) note(left, { by: 'writ', reason: 'UNTRUSTED_ACTIVE' });
  return { result: end.result, exit: left?.result };
}
