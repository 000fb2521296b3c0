// Each turn of an agent: what a full disk kept of a way back in memory is written as soon as the disk takes it. Owns when;
// what is written is state/restore-memory's.
import type { CycleOrigin } from '../control/cycle-and-exit.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { newCycleId } from '../job/progress.js';
import { writeMissedEntries } from '../job/record.js';
import { recoverHost } from '../startup/recover-host.js';
import type { Host } from '../state/host.js';
import { recordRestore } from '../state/restore-memory.js';

export interface RecordTurnOptions {
  readonly host: () => Host;
  readonly stop: AbortSignal;
  readonly note: (end: CycleEnd, asked: CycleOrigin) => void;
  readonly onNews: () => void;
}

/** Its caller has the host for itself. @throws WritError STATE_DAMAGED, DISK_* of a recovery */
export async function recordTurn({ host, stop, note, onNews }: RecordTurnOptions): Promise<void> {
  const before = host();
  const left = recordRestore(before, { active: activeGenerationNumber(before.paths) });
  if (left === 'nothing' || left === 'full') return;
  if (left === 'unmoved') {
    const end = await recoverHost(before, { cycle: newCycleId(), signal: stop });
    if (end !== undefined) note(end, { by: 'writ', reason: 'RESTORE_UNRECORDED' });
  }
  writeMissedEntries(before);
  onNews();
}
