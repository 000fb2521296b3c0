// One cycle on a host that a test opened itself, as after a restart or with another configuration.
import type { Host } from '../../src/agent/host.js';
import { newCycleId } from '../../src/agent/run-cycle.js';
import { syncCycle } from '../../src/agent/sync-cycle.js';
import type { CycleResult } from '../../src/core/cycle-report.js';

export async function cycleOn(
  host: Host,
  how: 'poll' | 'force' = 'poll',
  signal: AbortSignal = new AbortController().signal,
): Promise<CycleResult> {
  const force = how === 'force' ? 'yes' : 'no';
  return (await syncCycle(host, { cycle: newCycleId(), trigger: how, force, signal })).result;
}
