// Tells due workers apart from a cycle, as the agent's timer does, at once.
import { tellIds } from '../../src/agent/cycle-story.js';
import type { Host } from '../../src/agent/host.js';
import { newCycleId } from '../../src/agent/run-cycle.js';
import { type SettleOptions, type SettleResult, settleDue } from '../../src/agent/settle-due.js';
import { openStagingArea } from '../../src/agent/staging-area.js';

export async function settleNow(host: Host, more: Partial<SettleOptions> = {}): Promise<SettleResult> {
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  const { signal } = new AbortController();
  try {
    const staging = (): string => area.path();
    return await settleDue(host, { staging, signal, nextTell: tellIds(cycle), who: 'all', ...more });
  } finally {
    area.remove(host.log);
  }
}
