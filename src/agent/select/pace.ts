// Applies `settle` and `minInterval` of worker groups: while a group waits, the bundles with changes that affect it keep their active
// releases, and the newest ones are taken afterwards. Delays the swap and not the notification, because a reader of `current` must
// never see a generation that the workers are not notified of.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { WritError } from '../../core/errors.js';
import { affectsGroup, changedPaths, type PolicyFiles } from '../../core/release/affected-groups.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withdraws } from '../../core/release/withdrawn.js';
import type { ActiveBundle, ActivePolicy } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';
import type { WaitingRelease } from '../state/ledger.js';
import { waitsUntilMs } from './pace-rules.js';
import { holdBack, type Selection, taken } from './selection.js';
import { withWaiting } from './waits.js';
import { pacedError } from './why-not-now-rules.js';

/**
 * Judges a release before its download, by the groups that any change of the bundle affects.
 * @param active the active release of the bundle; a host without one gets the policy at once
 * @returns the error of a release that waits; undefined also where its files are needed to know the affected groups
 */
export function pacedUnseen(
  host: Host,
  release: ReleaseInfo,
  active: ActiveBundle | undefined,
): WritError | undefined {
  if (active === undefined || active.record.release.manifest.digest === release.manifest.digest)
    return undefined;
  const groups = host.config.workers.filter(
    (one) => hasPace(one) && one.when.length === 0 && one.uses.includes(release.bundle),
  );
  const wait = judgeWait(host, release, groups);
  if (wait?.untilMs === undefined) return undefined;
  noteWaits(host, { [release.bundle]: wait }, new Map([[release.bundle, active]]));
  return pacedError(release.bundle, wait, wait.untilMs);
}

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
    // A withdrawn release is replaced at once.
    if (withdraws(target.release, active?.bundles.get(bundle.name)?.record.release)) continue;
    const concerned = affectedBy(host, bundle.name, options);
    const wait = judgeWait(host, target.release, concerned);
    if (wait === undefined) continue;
    waits[bundle.name] = wait;
    if (wait.untilMs !== undefined) held.set(bundle.name, pacedError(bundle.name, wait, wait.untilMs));
  }
  noteWaits(host, waits, active?.bundles ?? new Map());
  return holdBack(host, selections, held);
}

/** @returns the groups with a pace that the difference affects */
function affectedBy(
  host: Host,
  bundle: string,
  { active, staged }: PaceOptions,
): readonly WorkerGroupConfig[] {
  const before = active?.bundles.get(bundle);
  const after = staged.get(bundle);
  // A host without this policy gets it at once.
  if (before === undefined || after === undefined) return [];
  const changed = changedPaths(new Map([[bundle, before]]), new Map([[bundle, after]]));
  return host.config.workers.filter((one) => hasPace(one) && affectsGroup(one, changed));
}

function hasPace({ settleMs, minIntervalMs }: WorkerGroupConfig): boolean {
  return settleMs !== undefined || minIntervalMs !== undefined;
}

/** @returns the wait of a release that affects these groups; undefined without groups, and without `untilMs` where it need not wait */
function judgeWait(
  host: Host,
  { bundle, serial, manifest }: ReleaseInfo,
  groups: readonly WorkerGroupConfig[],
): WaitingRelease | undefined {
  if (groups.length === 0) return undefined;
  const nowMs = host.clock.nowMs();
  const { waiting = {}, movedAtMs = {} } = host.ledger.read();
  const known = waiting[bundle];
  const sinceMs = known?.sinceMs ?? nowMs;
  const changedAtMs = known?.manifestDigest === manifest.digest ? known.changedAtMs : nowMs;
  const ends = groups.flatMap((one) => {
    const moved = movedAtMs[one.name];
    const times = { sinceMs, changedAtMs, nowMs, ...(moved === undefined ? {} : { movedAtMs: moved }) };
    const untilMs = waitsUntilMs(one, times);
    return untilMs === undefined ? [] : [{ name: one.name, untilMs }];
  });
  const wait = { serial, manifestDigest: manifest.digest, sinceMs, changedAtMs };
  const { vain } = known ?? {};
  if (ends.length === 0) return { ...wait, groups: [], ...(vain === undefined ? {} : { vain }) };
  return {
    ...wait,
    groups: ends.map((one) => one.name),
    untilMs: Math.max(...ends.map((one) => one.untilMs)),
  };
}

/** Writes the waits, without those of bundles that have the release by now or are not configured any more. */
function noteWaits(
  host: Host,
  waits: Readonly<Record<string, WaitingRelease>>,
  active: ReadonlyMap<string, ActiveBundle>,
): void {
  const ledger = host.ledger.read();
  const names = host.config.bundles.map((one) => one.name);
  const left = Object.entries({ ...ledger.waiting, ...waits }).filter(([name, { manifestDigest }]) => {
    const digest = active.get(name)?.record.release.manifest.digest;
    return names.includes(name) && digest !== manifestDigest;
  });
  host.ledger.write(withWaiting(ledger, left));
}
