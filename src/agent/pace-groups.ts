// `settle` and `minInterval` of worker groups: a bundle whose change concerns a group that is to be left alone just now
// keeps its active release, and the newest one is taken when the wait is over. Delays the swap and not the tell: a reader
// of `current` never sees a generation that the workers are not told of. Owns this part of the ledger.
import type { WritError } from '../core/errors.js';
import { waitsUntilMs } from '../core/pace.js';
import type { ReleaseInfo } from '../core/release.js';
import type { ActivePolicy } from './active-bundles.js';
import { changedPaths, concernsGroup } from './changed-groups.js';
import type { Host } from './host.js';
import type { WaitingRelease } from './ledger.js';
import type { Selection } from './select-releases.js';
import type { StagedBundle } from './stage-bundle.js';
import { holdBack, taken } from './stage-candidates.js';
import { pacedError } from './waiting-releases.js';

export interface PaceOptions {
  readonly active: ActivePolicy | undefined;
  readonly staged: ReadonlyMap<string, StagedBundle>;
  readonly force: 'yes' | 'no';
}

/** @returns the selections in which the bundles that have to wait, with their sets, keep their active release */
export function holdBackPaced(
  host: Host,
  selections: readonly Selection[],
  options: PaceOptions,
): Selection[] {
  if (options.force === 'yes' || !host.config.workers.some(hasPace)) return [...selections];
  const waits: Record<string, WaitingRelease> = {};
  const held = new Map<string, WritError>();
  for (const { bundle, target } of taken(selections)) {
    const wait = judgeWait(host, target.release, options);
    if (wait === undefined) continue;
    waits[bundle.name] = wait;
    if (wait.untilMs !== undefined) held.set(bundle.name, pacedError(bundle.name, wait));
  }
  noteWaits(host, waits, options.active);
  return holdBack(host, selections, held);
}

function hasPace({ settleMs, minIntervalMs }: Host['config']['workers'][number]): boolean {
  return settleMs !== undefined || minIntervalMs !== undefined;
}

/** @returns what is known of a release that changes what a group with a pace uses; without an end it may go on */
function judgeWait(
  host: Host,
  release: ReleaseInfo,
  { active, staged }: PaceOptions,
): WaitingRelease | undefined {
  const { bundle, serial, manifest } = release;
  const before = active?.bundles.get(bundle);
  const after = staged.get(bundle);
  // A host without this policy gets it at once.
  if (before === undefined || after === undefined) return undefined;
  const changed = changedPaths(new Map([[bundle, before]]), new Map([[bundle, after]]));
  const groups = host.config.workers.filter((one) => hasPace(one) && concernsGroup(one, changed));
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
  const { deferrals } = known ?? {};
  if (ends.length === 0) return { ...wait, groups: [], ...(deferrals === undefined ? {} : { deferrals }) };
  return {
    ...wait,
    groups: ends.map((one) => one.name),
    untilMs: Math.max(...ends.map((one) => one.untilMs)),
  };
}

/** A bundle that has what it waited for, or is not configured any more, waits for nothing. */
function noteWaits(
  host: Host,
  waits: Readonly<Record<string, WaitingRelease>>,
  active: ActivePolicy | undefined,
): void {
  const { waiting = {}, ...ledger } = host.ledger.read();
  const names = host.config.bundles.map((one) => one.name);
  const left = Object.entries({ ...waiting, ...waits }).filter(([name, { manifestDigest }]) => {
    const digest = active?.bundles.get(name)?.record.release.manifest.digest;
    return names.includes(name) && digest !== manifestDigest;
  });
  host.ledger.write({ ...ledger, ...(left.length === 0 ? {} : { waiting: Object.fromEntries(left) }) });
}
