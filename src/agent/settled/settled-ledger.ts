// The members of the ledger about releases after their activation. Computes ledgers; writes none.
import { type AgentConfig, bakeOf, setOf } from '../../core/config/config.js';
import { given } from '../../core/given.js';
import type { NamedRelease } from '../../core/release/release.js';
import {
  type AcceptedRelease,
  type Bake,
  type BakeContact,
  type BakeFailure,
  type Ledger,
  ledgerSection,
  type SettledRelease,
  type WorkerRuns,
} from '../state/ledger.js';
import { addSettled, type BakeNow, isSameRelease, startBake } from './bake-rules.js';
import { passesAsCorrection } from './correction-rules.js';

const changeSettled = ledgerSection('bakes', 'settledReleases', 'unsettled', 'runs');

type BakeSettings = Pick<AgentConfig, 'bundles' | 'together'>;

/** Releases by bundle. */
export type ActiveReleaseMap = ReadonlyMap<string, AcceptedRelease>;

export interface BakeStart extends BakeNow {
  readonly config: BakeSettings;
  /** Left out: contact with the server is not watched. */
  readonly contactOf?: (bundle: string, release: AcceptedRelease) => BakeContact | undefined;
}

/**
 * @param active what is active now
 * @returns the ledger in which each active release is settled or in its bake time. A bake that runs goes on; a release that
 * settled before does not bake again; one without a bake time does neither
 */
export function withBakesOf(ledger: Ledger, active: ActiveReleaseMap, start: BakeStart): Ledger {
  const { bakes = {}, settledReleases = {} } = ledger;
  const entries = [...active].flatMap(([bundle, release]): [string, Bake][] => {
    const running = bakes[bundle];
    if (running !== undefined && isSameRelease(running, release)) return [[bundle, running]];
    if (isSettled(ledger, bundle, release) || bakeOf(start.config, bundle).forMs === 0) return [];
    const contact = start.contactOf?.(bundle, release);
    return [[bundle, { ...startBake(release, start), ...given({ contact }) }]];
  });
  const unsettled = Object.fromEntries(
    entries.map(([bundle]) => {
      const known = ledger.unsettled?.[bundle];
      return [bundle, known ?? { sinceMs: start.nowMs, restores: 0, failed: [] }];
    }),
  );
  return changeSettled(ledger, {
    bakes: orNone(Object.fromEntries(entries)),
    settledReleases,
    unsettled: orNone({ ...ledger.unsettled, ...unsettled }),
  });
}

/** Failed releases that are remembered of one bundle, because a bundle may fail again and again. */
const maxFailed = 16;

/** @returns the ledger with these releases noted as taken back */
export function withRestored(
  ledger: Ledger,
  releases: readonly (AcceptedRelease & { readonly bundle: string })[],
  nowMs: number,
): Ledger {
  const unsettled = { ...ledger.unsettled };
  for (const { bundle, serial, manifestDigest } of releases) {
    const { sinceMs = nowMs, restores = 0, failed = [], corrections } = unsettled[bundle] ?? {};
    const others = failed.filter((one) => !isSameRelease(one, { serial, manifestDigest }));
    unsettled[bundle] = {
      ...{ sinceMs, restores: restores + 1, restoredAtMs: nowMs, ...given({ corrections }) },
      failed: [...others, { serial, manifestDigest }].slice(-maxFailed),
    };
  }
  return changeSettled(ledger, { unsettled });
}

/**
 * @returns the ledger after the swap to a correction: the gap of its bundle ends. The age of the unsettled period stays, so that
 * an ordinary release does not replace the correction within its bake time
 */
export function withCorrection(ledger: Ledger, bundle: string): Ledger {
  const known = ledger.unsettled?.[bundle];
  if (known === undefined || !passesAsCorrection(known)) return ledger;
  const corrections = (known.corrections ?? 0) + 1;
  return changeSettled(ledger, {
    unsettled: { ...ledger.unsettled, [bundle]: { ...known, restores: 0, corrections } },
  });
}

/** @returns true where this release was taken back before, and no other of its bundle has settled since */
export function wasTakenBack(
  { unsettled }: Pick<Ledger, 'unsettled'>,
  bundle: string,
  release: AcceptedRelease,
): boolean {
  return (unsettled?.[bundle]?.failed ?? []).some((one) => isSameRelease(one, release));
}

/**
 * For the first start after an upgrade from 0.1.0, which had no bake time: a release that has been active for longer counts as
 * settled and unobserved.
 */
export function withBakesAfterUpgrade(
  ledger: Ledger,
  active: ActiveReleaseMap,
  { generation, ...start }: BakeStart & { readonly generation: number },
): Ledger {
  if (ledger.settledReleases !== undefined) return withBakesOfSets(ledger, active, start);
  const old = [...active].filter(([bundle]) => {
    // Unknown in a ledger that was lost and made again: such a release proves itself from now on.
    const activatedAtMs = ledger.activatedAtMs?.[bundle] ?? start.nowMs;
    return start.nowMs - activatedAtMs > bakeOf(start.config, bundle).forMs;
  });
  const settled = old.map(([bundle, { serial, manifestDigest }]): [string, SettledRelease[]] => {
    return [bundle, [{ serial, manifestDigest, atMs: start.nowMs, isObserved: false, generation }]];
  });
  return withBakesOf(changeSettled(ledger, { settledReleases: Object.fromEntries(settled) }), active, start);
}

/** Earlier versions ended the bake of a member before its set had settled: such a member bakes again. */
function withBakesOfSets(ledger: Ledger, active: ActiveReleaseMap, start: BakeStart): Ledger {
  const { bakes = {} } = ledger;
  const isMissing = ([bundle, release]: readonly [string, AcceptedRelease]): boolean =>
    bakes[bundle] === undefined &&
    !isSettled(ledger, bundle, release) &&
    setOf(start.config, bundle).some((name) => bakes[name] !== undefined);
  return [...active].some(isMissing) ? withBakesOf(ledger, active, start) : ledger;
}

/**
 * Sets the bakes of some bundles. Throws nothing.
 * @param bakes pairs of bundle and bake; the others stay as they are. Of two pairs for one bundle the last one counts
 * @returns the changed ledger, or the same ledger for an empty list. The caller writes it
 */
export function withBakes(ledger: Ledger, bakes: readonly (readonly [string, Bake])[]): Ledger {
  if (bakes.length === 0) return ledger;
  return changeSettled(ledger, { bakes: orNone({ ...ledger.bakes, ...Object.fromEntries(bakes) }) });
}

/** @returns the ledger with evidence of failure noted on the bakes of these bundles; evidence that is known stays */
export function withFailure(ledger: Ledger, bundles: readonly string[], failure: BakeFailure): Ledger {
  const failed = bundles.flatMap((bundle): [string, Bake][] => {
    const bake = ledger.bakes?.[bundle];
    return bake === undefined || bake.failure !== undefined ? [] : [[bundle, { ...bake, failure }]];
  });
  return withBakes(ledger, failed);
}

export interface Settling {
  readonly active: ActiveReleaseMap;
  readonly config: BakeSettings;
  readonly generation: number;
  readonly nowMs: number;
  /** @returns whether an agent observed the bake times of a complete set, given its bundles */
  readonly isObserved: (set: readonly string[]) => boolean;
}

/**
 * Settles the active releases of these bundles, after the end of their own bake time. A `together` set settles as a whole, because each
 * combination of releases is new. Until its last member is over, every member keeps its bake, and with it its evidence of failure.
 */
export function withSettled(ledger: Ledger, bundles: readonly string[], settling: Settling): Ledger {
  const { active, config, generation, nowMs, isObserved } = settling;
  const { bakes = {} } = ledger;
  const isOver = (name: string): boolean => bakes[name] === undefined || bundles.includes(name);
  const sets = bundles.map((bundle) => setOf(config, bundle)).filter((set) => set.every(isOver));
  const names = new Set(sets.flat());
  if (names.size === 0) return ledger;
  const settled = { ...ledger.settledReleases };
  for (const name of names) {
    const release = active.get(name);
    if (release === undefined) continue;
    const { serial, manifestDigest } = release;
    const now = { atMs: nowMs, isObserved: isObserved(setOf(config, name)), generation };
    settled[name] = addSettled(settled[name] ?? [], { serial, manifestDigest, ...now });
  }
  const others = <T>(all: Readonly<Record<string, T>> = {}): Record<string, T> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !names.has(name)));
  return changeSettled(ledger, {
    bakes: orNone(others(bakes)),
    settledReleases: settled,
    unsettled: orNone(others(ledger.unsettled)),
  });
}

/**
 * Sets the observed process runs of all workers. Throws nothing.
 * @param runs by the key of the worker; they replace all earlier ones, and `{}` removes the member
 * @returns the changed ledger. The caller writes it
 */
export function withRuns(ledger: Ledger, runs: Readonly<Record<string, WorkerRuns>>): Ledger {
  return changeSettled(ledger, { runs: orNone(runs) });
}

/**
 * Processes that ended during the activation and the restore of a refused release show nothing about the release before it: the
 * observation of these groups starts again.
 * @param groups names of worker groups
 */
export function withRunsUnknown(ledger: Ledger, groups: readonly string[]): Ledger {
  const runs = Object.entries(ledger.runs ?? {}).map(([key, one]): [string, WorkerRuns] => {
    if (!groups.some((group) => key.startsWith(`${group}/`))) return [key, one];
    const { mark: _, gone: __, ...unmarked } = one;
    return [key, { ...unmarked, process: '' }];
  });
  return withRuns(ledger, Object.fromEntries(runs));
}

/** @returns true where this release outlived its bake time on this host */
export function isSettled(
  { settledReleases }: Pick<Ledger, 'settledReleases'>,
  bundle: string,
  release: AcceptedRelease,
): boolean {
  return (settledReleases?.[bundle] ?? []).some((one) => isSameRelease(one, release));
}

/**
 * @returns the releases that are remembered as settled, of all bundles. Their trees are never collected: the newest may be
 * withdrawn or refused, and then a restore needs an older one
 */
export function allSettled({ settledReleases = {} }: Pick<Ledger, 'settledReleases'>): NamedRelease[] {
  return Object.entries(settledReleases).flatMap(([bundle, releases]) =>
    releases.map(({ serial, manifestDigest }) => ({ bundle, serial, manifest: { digest: manifestDigest } })),
  );
}

function orNone<T extends object>(members: T): T | undefined {
  return Object.keys(members).length === 0 ? undefined : members;
}
