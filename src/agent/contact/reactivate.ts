// Activates releases again that had lost contact, while the server is unreachable: from their trees on disk, with the checks of an
// update. A release that was withdrawn or refused since, or is not trusted any more, is not activated.
import { changedPaths } from '../../core/release/affected-groups.js';
import { activate } from '../activation/activate.js';
import { affectedGroups } from '../activation/affected-groups.js';
import { suitableBundle } from '../bake/settled-policy.js';
import { placeSettled } from '../bake/settled-target.js';
import { readActivePolicy } from '../generations/generation-contents.js';
import { bundleBefore, bundleMoved, type CycleEnd, noteBundles } from '../job/cycle-result.js';
import { endOf, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import type { Host } from '../state/host.js';
import type { LostContact } from '../state/ledger.js';
import { recordBlamedReleases } from '../state/refusals.js';

/** @returns the end of the cycle; undefined if a release may not be activated. @throws WritError DISK_*, STATE_DAMAGED */
export function reactivate(
  host: Host,
  lost: readonly (readonly [string, LostContact])[],
  signal: AbortSignal,
): Promise<CycleEnd | undefined> {
  const options = { cycle: newCycleId(), trigger: 'pending', firstStep: 'swap' } as const;
  return withJob(host, options, async (job) => {
    const { progress, record, area } = job;
    const active = readActivePolicy(host.paths);
    if (active === undefined) return undefined;
    const bundles = new Map(active.bundles);
    for (const [bundle, release] of lost) {
      const found = await suitableBundle(host, bundle, release);
      if (found === undefined) return undefined;
      bundles.set(bundle, found);
    }
    const placed = await placeSettled(job, active, bundles);
    if (placed === undefined) return undefined;
    const from = active.generation.number;
    record.fromGeneration = from;
    const releases = lost.flatMap(([bundle]) => bundles.get(bundle)?.record.release ?? []);
    const moved = await activate(host, progress, {
      ...{ kind: 'update', from, to: placed.generation, releases, staging: area.path(), signal },
      groups: affectedGroups(host, { paths: changedPaths(active.bundles, bundles) }),
      onRefused: (error, groups) => recordBlamedReleases(host, releases, error, groups),
    });
    record.moves.push(moved);
    const results = releases.map((one) =>
      bundleMoved(bundleBefore(one, active.bundles.get(one.bundle)?.record.release.serial), moved),
    );
    noteBundles(record, results);
    return endOf(job);
  });
}
