// `settle` and `minInterval` of worker groups: a bundle whose change concerns a group that is to be left alone just now
// keeps its active release, and the newest one is taken when the wait is over. Delays the swap and not the tell: a reader
// of `current` never sees a generation that the workers are not told of. How long each waits is judge-pace's.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { WritError } from '../../core/errors.js';
import { changedPaths, concernsGroup, type PolicyFiles } from '../../core/release/affected-groups.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';
import type { WaitingRelease } from '../state/ledger.js';
import { hasPace, judgeWait, noteWaits } from './judge-pace.js';
import { pacedError } from './pacing.js';
import { holdBack, type Selection, taken } from './selection.js';

export interface PaceOptions {
  readonly active: ActivePolicy | undefined;
  readonly staged: PolicyFiles;
  readonly force: 'yes' | 'no';
}

/** @returns the selections in which the bundles that have to wait, with their sets, keep their active release */
export function holdBackPaced(
  host: Host,
  selections: readonly Selection[],
  options: PaceOptions,
): Selection[] {
  const { active, force } = options;
  if (force === 'yes' || !host.config.workers.some(hasPace)) return [...selections];
  const waits: Record<string, WaitingRelease> = {};
  const held = new Map<string, WritError>();
  for (const { bundle, target } of taken(selections)) {
    const concerned = concernedGroups(host, bundle.name, options);
    const wait = judgeWait(host, target.release, concerned);
    if (wait === undefined) continue;
    waits[bundle.name] = wait;
    if (wait.untilMs !== undefined) held.set(bundle.name, pacedError(bundle.name, wait));
  }
  noteWaits(host, waits, active?.bundles ?? new Map());
  return holdBack(host, selections, held);
}

/** @returns the groups with a pace that the difference concerns */
function concernedGroups(
  host: Host,
  bundle: string,
  { active, staged }: PaceOptions,
): readonly WorkerGroupConfig[] {
  const before = active?.bundles.get(bundle);
  const after = staged.get(bundle);
  // A host without this policy gets it at once.
  if (before === undefined || after === undefined) return [];
  const changed = changedPaths(new Map([[bundle, before]]), new Map([[bundle, after]]));
  return host.config.workers.filter((one) => hasPace(one) && concernsGroup(one, changed));
}
