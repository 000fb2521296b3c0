// Writes the record of a restore that a full disk prevented, as soon as the disk has space again. state/restore-memory.ts keeps the
// record in memory until then.
import type { CycleOrigin } from '../control/cycle-and-exit.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { newCycleId } from '../job/progress.js';
import { writeMissedEntries } from '../job/record.js';
import { recoverHost } from '../startup/recover-host.js';
import type { Host } from '../state/host.js';
import { recordRestore } from '../state/restore-memory.js';

export interface PendingRestoreOptions {
  readonly host: () => Host;
  readonly stop: AbortSignal;
  readonly note: (end: CycleEnd, asked: CycleOrigin) => void;
  /** Called after a record was written. */
  readonly onChange: () => void;
}

/** Called in each round; the caller holds the job lock. @throws WritError STATE_DAMAGED, DISK_* of a recovery */
export async function recordPendingRestore({
  host,
  stop,
  note,
  onChange,
}: PendingRestoreOptions): Promise<void> {
  const before = host();
  const left = recordRestore(before, { active: activeGenerationNumber(before.paths) });
  if (left === 'nothing' || left === 'full') return;
  if (left === 'unmoved') {
    const end = await recoverHost(before, { cycle: newCycleId(), signal: stop });
    if (end !== undefined) note(end, { by: 'writ', reason: 'RESTORE_UNRECORDED' });
  }
  writeMissedEntries(before);
  onChange();
}
