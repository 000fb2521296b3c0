// Counts releases and offers from the counters, which have one row for each release, state and slot, for any number of hosts. Decides
// which release is the newest of its channel. Produces no texts.
import type { Kysely } from 'kysely';
import type { FleetSummary, OfferGroup, ReleaseCount } from '../../core/fleet/answers.js';
import { type ActiveState, type BakeState, isOfferedState } from '../../core/fleet/report.js';
import { type RepositoryView, standingOf } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import type { Tables } from '../store/tables.js';
import type { PastReports, ReleaseFilter } from './past-reports.js';

interface Counted {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  readonly state: string;
  readonly hosts: number;
  /** The first and the last root digest of its hosts, in sorted order. */
  readonly roots: readonly string[];
}

/** A release while its counters are summed. */
type Found = Counted & {
  readonly counts: Partial<Record<ActiveState, number>>;
  readonly bakes: Partial<Record<BakeState, number>>;
  silent: number;
  stopped: number;
  cloned: number;
};

/**
 * Bounds the releases and offers of an answer. Bundles that most hosts report come first, because one host can invent a thousand
 * names, which must not displace those of the others.
 */
const maxRows = 2000;

/** Sums over repositories, because after a root ceremony the same manifest has hosts with the old and with the new root. */
async function countedOf(db: Kysely<Tables>, filter: ReleaseFilter): Promise<readonly Counted[]> {
  let query = db
    .selectFrom('counters')
    .select(['bundle', 'channel', 'serial', 'manifest', 'state'])
    .select((of) => [
      of.fn.sum<number>('count').as('hosts'),
      of.fn.min<string>('repository').as('first_root'),
      of.fn.max<string>('repository').as('last_root'),
      of.fn
        .sum<number>(of.fn.sum<number>('count'))
        .over((rows) => rows.partitionBy(['bundle', 'channel']))
        .as('weight'),
    ]);
  if (filter.bundle !== undefined) query = query.where('bundle', '=', filter.bundle);
  if (filter.channel !== undefined) query = query.where('channel', '=', filter.channel);
  if (filter.serial !== undefined) query = query.where('serial', '=', filter.serial);
  const rows = await query
    .groupBy(['bundle', 'channel', 'serial', 'manifest', 'state'])
    .having((of) => of.fn.sum<number>('count'), '>', 0)
    .orderBy('weight', 'desc')
    .orderBy('bundle')
    .orderBy('channel')
    .orderBy('serial', 'desc')
    .limit(maxRows)
    .execute();
  return rows
    .map(({ first_root, last_root, weight: _, ...row }) => {
      const roots = [first_root, last_root];
      return { ...row, serial: Number(row.serial), hosts: Number(row.hosts), roots };
    })
    .sort(byRelease);
}

function byRelease(a: Counted, b: Counted): number {
  if (a.bundle !== b.bundle) return a.bundle < b.bundle ? -1 : 1;
  if (a.channel !== b.channel) return a.channel < b.channel ? -1 : 1;
  return b.serial - a.serial;
}

export interface ReleaseCounts {
  readonly releases: readonly ReleaseCount[];
  readonly offers: readonly OfferGroup[];
  readonly idle: NonNullable<FleetSummary['idle']>;
}

/**
 * @param views of the followed repositories; each release gets its adoption by them
 * @param past silent, stopped and cloned hosts, which are counted apart from hosts with a current report
 * @returns releases by bundle and channel, the newest serial first; offers that hosts have not activated; idle hosts
 */
export async function countReleases(
  db: Kysely<Tables>,
  views: readonly RepositoryView[],
  past: readonly PastReports[],
  filter: ReleaseFilter = {},
): Promise<ReleaseCounts> {
  const counted = await countedOf(db, filter);
  const offers = counted.flatMap((row): OfferGroup[] => {
    const [kind, state = '', code = ''] = row.state.split(':');
    if (kind !== 'offered' || !isOfferedState(state)) return [];
    const { bundle, channel, serial, hosts } = row;
    return [{ bundle, channel, serial, state, code, hosts }];
  });
  const found = foundReleases(counted.filter(({ serial }) => serial > 0));
  for (const one of past) moveApart(one, found.get(keyOf(one)));
  return { releases: withPlaces([...found.values()], views), offers, idle: idleOf(counted, past) };
}

function foundReleases(counted: readonly Counted[]): ReadonlyMap<string, Found> {
  const releases = new Map<string, Found>();
  for (const row of counted) {
    const [kind, state = ''] = row.state.split(':');
    if (kind === 'offered') continue;
    const found = releases.get(keyOf(row)) ?? {
      ...row,
      counts: {},
      bakes: {},
      silent: 0,
      stopped: 0,
      cloned: 0,
    };
    if (kind === 'active') addTo(found.counts, state as ActiveState, row.hosts);
    if (kind === 'bake') addTo(found.bakes, state as BakeState, row.hosts);
    releases.set(keyOf(row), found);
  }
  return releases;
}

/** Counts hosts without an active release. As in a wait, a host that announced its end is not counted. */
function idleOf(counted: readonly Counted[], past: readonly PastReports[]): ReleaseCounts['idle'] {
  const stopped = past.filter(({ presence }) => presence === 'stopped');
  return counted
    .filter(({ state }) => state === 'active:none')
    .map((row) => {
      const gone = stopped.filter((one) => keyOf(one) === keyOf(row));
      const hosts = row.hosts - gone.reduce((sum, one) => sum + one.hosts, 0);
      return { bundle: row.bundle, channel: row.channel, hosts };
    })
    .filter(({ hosts }) => hosts > 0);
}

type ReleaseKey = Pick<Counted, 'bundle' | 'channel' | 'serial' | 'manifest'>;

function keyOf({ bundle, channel, serial, manifest }: ReleaseKey): string {
  return JSON.stringify([bundle, channel, serial, manifest]);
}

/** Moves hosts from their reported state to their liveness. Counters are read after `past`, so a count must not fall below 0. */
function moveApart({ state, bake, presence, hosts }: PastReports, release: Found | undefined): void {
  if (release === undefined || state === 'none') return;
  const moved = Math.min(hosts, release.counts[state] ?? 0);
  addTo(release.counts, state, -moved);
  release[presence] += moved;
  if (bake !== '') addTo(release.bakes, bake, -Math.min(moved, release.bakes[bake] ?? 0));
}

function addTo<Key extends string>(counts: Partial<Record<Key, number>>, key: Key, hosts: number): void {
  counts[key] = (counts[key] ?? 0) + hosts;
}

function withPlaces(found: readonly Found[], views: readonly RepositoryView[]): ReleaseCount[] {
  const newest = new Map<string, number>();
  for (const { bundle, channel, serial } of found) {
    const name = JSON.stringify([bundle, channel]);
    newest.set(name, Math.max(newest.get(name) ?? 0, serial));
  }
  return found.map((one) => {
    const { bundle, channel, serial, manifest, counts, bakes, silent, stopped, cloned } = one;
    const { confirmed = 0, notified = 0, unconfirmed = 0 } = counts;
    const isNewest = newest.get(JSON.stringify([bundle, channel])) === serial;
    const place = isNewest ? 'newest' : 'tail';
    const judged = views.length === 0 ? {} : { standing: standingOf(views, one).standing };
    const baking = Object.keys(bakes).length === 0 ? {} : { bakes };
    return {
      bundle,
      channel,
      serial,
      manifest,
      confirmed,
      notified,
      unconfirmed,
      ...given({ silent: silent || undefined, stopped: stopped || undefined, cloned: cloned || undefined }),
      ...baking,
      place,
      ...judged,
    };
  });
}
