// Where the active release of each bundle stands in its bake time, for a status report. Reads the ledger alone.
import { bakeOf } from '../../core/config/config.js';
import type { BakeStatus } from '../../core/status/status.js';
import { groupOf } from '../notify/worker-ledger.js';
import { bakeLeftMs, isSameRelease, isUntaken } from '../settled/bake-rules.js';
import { isInBake } from '../settled/evidence-rules.js';
import type { Host } from '../state/host.js';
import type { AcceptedRelease, Bake, Ledger } from '../state/ledger.js';

/** @returns undefined for a release without a bake time, and where no agent of this version has run yet */
export function bakeStatus(
  { config }: Pick<Host, 'config'>,
  ledger: Ledger,
  { bundle, release }: { readonly bundle: string; readonly release: AcceptedRelease },
): BakeStatus | undefined {
  const bake = ledger.bakes?.[bundle];
  if (bake !== undefined && isSameRelease(bake, release)) {
    const { failure } = bake;
    const ends = endsSince(config, ledger, { bundle, bake });
    const { forMs } = bakeOf(config, bundle);
    const untaken = isUntaken(bake) ? { untaken: true } : {};
    if (failure === undefined)
      return { state: 'baking', leftMs: bakeLeftMs(bake, forMs), forMs, ...untaken, ends };
    return { state: 'failed', cause: failure.cause, text: failure.text, atMs: failure.atMs, ends };
  }
  const settled = ledger.settledReleases?.[bundle]?.find((one) => isSameRelease(one, release));
  return settled && { state: 'settled', atMs: settled.atMs, observed: settled.isObserved };
}

/** How often processes of workers that use the release ended since its activation; workers without an end are left out. */
function endsSince(
  { workers }: Host['config'],
  { runs = {} }: Ledger,
  { bundle, bake }: { readonly bundle: string; readonly bake: Bake },
): NonNullable<BakeStatus['ends']> {
  const using = workers.filter((one) => one.uses.includes(bundle)).map((one) => one.name);
  return Object.entries(runs).flatMap(([worker, { ends }]) => {
    if (!using.includes(groupOf(worker))) return [];
    const own = ends.filter((one) => isInBake(one, bake));
    const count = (kind: 'abnormal' | 'unrecorded'): number => own.filter((one) => one.kind === kind).length;
    const counts = { worker, abnormal: count('abnormal'), unexplained: count('unrecorded') };
    return counts.abnormal + counts.unexplained === 0 ? [] : [counts];
  });
}
