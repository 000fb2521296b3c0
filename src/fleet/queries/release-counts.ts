// Releases and offers from the counters: a row for each release, state and slot, whatever the number of hosts. Which of them
// is the newest of its channel is judged here. Owns no wording.
import type { Kysely } from 'kysely';
import type { OfferGroup, ReleaseCount } from '../../core/fleet/answers.js';
import { type ActiveState, type BakeState, isOfferedState } from '../../core/fleet/report.js';
import { type RepositoryView, standingOf } from '../../core/fleet/signed-releases.js';
import type { Tables } from '../store/tables.js';

export interface ReleaseFilter {
  readonly bundle?: string;
  readonly channel?: string;
  readonly serial?: number;
}

interface Counted {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  readonly state: string;
  readonly hosts: number;
  /** First and last in order, of the roots of its hosts. */
  readonly roots: readonly string[];
}

/** A release while its numbers are gathered. */
type Found = Counted & {
  readonly counts: Partial<Record<ActiveState, number>>;
  readonly bakes: Partial<Record<BakeState, number>>;
};

/**
 * Of releases and of offers that an answer has. Bundles that most hosts report come first: one host can invent a thousand names,
 * and would push out what the others say.
 */
const maxRows = 2000;

/** Repositories are summed up: after a root ceremony half of the hosts know another root, and the manifest is the same. */
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
}

/**
 * @param views of the repositories that are read: each release is held to them
 * @returns by bundle and channel, the newest serial first
 */
export async function countReleases(
  db: Kysely<Tables>,
  views: readonly RepositoryView[],
  filter: ReleaseFilter = {},
): Promise<ReleaseCounts> {
  const counted = await countedOf(db, filter);
  const releases = new Map<string, Found>();
  const offers: OfferGroup[] = [];
  for (const row of counted) {
    const [kind = '', state = '', code = ''] = row.state.split(':');
    if (kind === 'offered' && isOfferedState(state)) {
      const { bundle, channel, serial, hosts } = row;
      offers.push({ bundle, channel, serial, state, code, hosts });
    } else if (row.serial > 0) {
      const key = JSON.stringify([row.bundle, row.channel, row.serial, row.manifest]);
      const { counts, bakes, ...release } = releases.get(key) ?? { ...row, counts: {}, bakes: {} };
      if (kind === 'active') addTo(counts, state as ActiveState, row.hosts);
      if (kind === 'bake') addTo(bakes, state as BakeState, row.hosts);
      releases.set(key, { ...release, counts, bakes });
    }
  }
  return { releases: withPlaces([...releases.values()], views), offers };
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
    const { bundle, channel, serial, manifest, counts, bakes } = one;
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
      ...baking,
      place,
      ...judged,
    };
  });
}
