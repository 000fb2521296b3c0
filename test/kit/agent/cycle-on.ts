// Runs one cycle on a host that a test opened, for example after a restart.
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';

/** @param how the trigger; `force` also ignores activation delays */
export async function cycleOn(
  host: Host,
  how: 'poll' | 'force' = 'poll',
  signal: AbortSignal = new AbortController().signal,
): Promise<CycleResult> {
  const force = how === 'force' ? 'yes' : 'no';
  return (await syncCycle(host, { cycle: newCycleId(), trigger: how, force, signal })).result;
}
