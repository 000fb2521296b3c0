// Groups that use more by the configuration of today than by the one under which their workers were told: a move that changed
// it went past them. Owns this look alone; it is taken when a configuration is read, and tells nobody.
import { orUndefined } from '../../core/errors.js';
import { concernsGroup } from '../../core/release/affected-groups.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import { changesTo } from './notify-verbs.js';
import { groupOf, waiting } from './worker-ledger.js';

/** Makes workers due that were told of another generation than the active one, where what their group uses differs. */
export function noteNewlyConcerned(host: Host): void {
  // A link that cannot be read is the cycle's to say.
  const active = orUndefined(() => activeGenerationNumber(host.paths));
  if (active === undefined) return;
  const ledger = host.ledger.read();
  const older = Object.entries(ledger.workers).filter(([, one]) => one.wanted !== active);
  const changedSince = changesTo(host, active);
  const concerned = older.filter(([key, { wanted }]) => {
    const group = host.config.workers.find((one) => one.name === groupOf(key));
    if (group === undefined) return false;
    const changed = changedSince(wanted);
    // Where a generation cannot be compared any more nobody knows: such a worker is told.
    return changed === undefined || concernsGroup(group, changed);
  });
  if (concerned.length === 0) return;
  const now = { wanted: active, text: 'its group uses what has changed since', nowMs: host.clock.nowMs() };
  const due = concerned.map(([key, entry]): [string, WorkerLedger] => [key, waiting(entry, now)]);
  host.ledger.write({ ...ledger, workers: { ...ledger.workers, ...Object.fromEntries(due) } });
}
