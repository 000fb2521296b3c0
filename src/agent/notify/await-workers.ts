// Workers that come to the agent by themselves: where a command without an agent opens their socket, they need a moment to find
// it. Waits for those that are known, or a pull would move the policy without them. Tells nobody.
import type { Host, WorkerGroup } from '../state/host.js';
import { readMembers } from './worker-groups.js';
import { groupOf, workerOf } from './worker-ledger.js';

const lookAgainMs = 50;

/** Resolves when all that were there have come again, or their time for it is over. Never rejects for what workers do. */
export async function awaitWorkers(
  host: Pick<Host, 'groups' | 'ledger' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = host;
  for (const group of host.groups) {
    const endMs = clock.monotonicMs() + (group.driver?.mayComeForMs?.() ?? 0);
    while (clock.monotonicMs() < endMs && !signal.aborted && (await isSomebodyMissing(host, group)))
      await clock.sleep(lookAgainMs, signal);
  }
}

async function isSomebodyMissing({ ledger }: Pick<Host, 'ledger'>, group: WorkerGroup): Promise<boolean> {
  const members = await readMembers(group);
  if (!Array.isArray(members)) return false;
  const there = new Set(members.map((one) => one.worker));
  return Object.entries(ledger.read().workers).some(
    ([key, { goneAtMs }]) =>
      groupOf(key) === group.config.name && goneAtMs === undefined && !there.has(workerOf(key)),
  );
}
