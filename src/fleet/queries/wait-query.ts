// Counts for a wait from the rows of one bundle and channel: hosts that count, that run the release, that refused it, and that run a
// later one. Other hosts have no effect, and a silent host does not count as running its last report. core/fleet/wait-verdict decides.
import type { ExpressionBuilder, Kysely, SelectQueryBuilder } from 'kysely';
import type { WaitFacts } from '../../core/fleet/answers.js';
import { countDeliveries, type ReportedHosts } from '../../core/fleet/delivery-state.js';
import type { ActiveState } from '../../core/fleet/report.js';
import type { SignedSerial } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import type { Tables } from '../store/tables.js';
import { isSilentRow, readAccepting } from './host-where.js';

export interface WaitQuestion {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** Begin of the wait. Hosts that enrolled later do not count. */
  readonly sinceMs: number;
  /** Hosts without a report for this time do not count; undefined: all count. */
  readonly exceptSilentMs?: number;
}

type Joined = ExpressionBuilder<Tables, 'hosts' | 'host_bundles'>;
type Condition = ReturnType<Joined['and']>;
type Members = SelectQueryBuilder<Tables, 'hosts' | 'host_bundles', object>;

const maxListedHosts = 20;
/** Manifests of one serial, because hosts with false reports could invent any number. */
const maxReleases = 100;

/**
 * Counts how far the hosts of a channel are with one serial. Writes nothing.
 * @param signed the releases with this serial that repositories signed; a host with another manifest runs another release
 * @returns the counts; all are 0 for a channel without hosts. `of`: accepted, not stopped hosts that enrolled until `sinceMs`
 *   and reported within `exceptSilentMs`; `excepted`: the others of these that are silent. `refusedHosts` and `elsewhereHosts`:
 *   at most 20 each, by name. `supersededBy` is undefined if no host runs a later serial; `manifest` if no release is known
 * @throws WritError FLEET_STORE_* if the store fails; an unknown bundle or serial is no error
 */
export async function readWait(
  db: Kysely<Tables>,
  question: WaitQuestion,
  nowMs: number,
  signed: SignedSerial,
): Promise<WaitFacts> {
  const { bundle, channel, serial, sinceMs, exceptSilentMs } = question;
  const members = db
    .selectFrom('host_bundles')
    .innerJoin('hosts', 'hosts.key_id', 'host_bundles.key_id')
    .where('host_bundles.bundle', '=', bundle)
    .where('host_bundles.channel', '=', channel)
    .where('hosts.kind', '=', 'writ')
    .where('hosts.state', '=', 'accepted')
    .where('hosts.agent', '!=', 'stop')
    .where('hosts.enrolled_at_ms', '<=', sinceMs);
  const oldestMs = exceptSilentMs === undefined ? 0 : nowMs - exceptSilentMs;
  const reporting = members.where('hosts.last_seen_ms', '>=', oldestMs);
  const release = await findReleaseManifests(reporting, serial, signed);
  const at = { nowMs, fleet: await readAccepting(db) };
  const { own, others } = release;
  const counted = await reporting
    .select((eb) => [
      eb.fn.countAll<number>().as('of'),
      count(eb, has(eb, serial, others)).as('elsewhere'),
      count(eb, refused(eb, serial)).as('refused'),
      count(eb, later(eb, serial, release.repositories)).as('later'),
      count(eb, eb.and([has(eb, serial, own), eb('hosts.cloned', '=', 1)])).as('cloned'),
    ])
    .select((eb) => greatest(eb, later(eb, serial, release.repositories)).as('latest'))
    .executeTakeFirstOrThrow();
  const sums = wholeNumbers(counted);
  const { all } = await members.select((eb) => eb.fn.countAll<number>().as('all')).executeTakeFirstOrThrow();
  const refusedHosts = await reporting
    .select(['hosts.host', 'hosts.key_id', 'host_bundles.offered_code'])
    .where((eb) => refused(eb, serial))
    .orderBy('hosts.host')
    .orderBy('hosts.key_id')
    .limit(maxListedHosts)
    .execute();
  const elsewhereHosts = await reporting
    .select(['hosts.host', 'hosts.key_id'])
    .where((eb) => has(eb, serial, others))
    .orderBy('hosts.host')
    .orderBy('hosts.key_id')
    .limit(maxListedHosts)
    .execute();
  return {
    schema: 1,
    type: 'fleet.wait',
    atMs: nowMs,
    of: sums.of,
    ...countDeliveries(await readGroups(reporting, { serial, manifests: own, at })),
    refused: sums.refused,
    refusedHosts: refusedHosts.map(({ host, key_id, offered_code }) => ({
      host,
      key: key_id,
      code: offered_code,
    })),
    excepted: Number(all) - sums.of,
    later: sums.later,
    cloned: sums.cloned,
    elsewhere: sums.elsewhere,
    elsewhereHosts: elsewhereHosts.map(({ host, key_id }) => ({ host, key: key_id })),
    ...given({ manifest: own[0] }),
    ...given({ supersededBy: sums.latest || undefined }),
  };
}

/** Matches each host by its own row, so that a host with a false report changes only its own count. */
function has(eb: Joined, serial: number, manifests: readonly string[]) {
  return eb.and([eb('host_bundles.serial', '=', serial), anyOf(eb, 'host_bundles.manifest', manifests)]);
}

/**
 * Groups hosts that run the release by the state in their last report and by silence. Excludes cloned hosts, because the other
 * machine with the same key may have refused the release.
 */
async function readGroups(
  reporting: Members,
  {
    serial,
    manifests,
    at,
  }: {
    readonly serial: number;
    readonly manifests: readonly string[];
    readonly at: Parameters<typeof isSilentRow>[1];
  },
): Promise<ReportedHosts[]> {
  const rows = await reporting
    .select(['host_bundles.state', 'host_bundles.bake'])
    .select((eb) => [
      eb.case().when(isSilentRow(eb, at)).then(eb.lit(1)).else(eb.lit(0)).end().as('is_silent'),
      eb.fn.countAll<number>().as('counted'),
    ])
    .where((eb) => has(eb, serial, manifests))
    .where('hosts.cloned', '=', 0)
    .groupBy(['host_bundles.state', 'host_bundles.bake', 'is_silent'])
    .execute();
  return rows.map(({ state, bake, is_silent, counted }) => ({
    state: state as ActiveState,
    bake,
    presence: Number(is_silent) === 1 ? 'silent' : 'heard',
    hosts: Number(counted),
  }));
}

/** Converts sums to numbers, because a database driver may return text. */
function wholeNumbers<T extends Record<string, number>>(sums: T): T {
  const numbers = Object.entries(sums).map(([name, value]) => [name, Number(value)] as const);
  return Object.fromEntries(numbers) as T;
}

function refused(eb: Joined, serial: number) {
  return eb.and([
    eb('host_bundles.serial', '!=', serial),
    eb('host_bundles.offered_serial', '=', serial),
    eb('host_bundles.offered_state', 'in', ['refused', 'rolled-back']),
  ]);
}

/** Matches hosts that run or are offered a later serial of the same repositories; others have their own serials. */
function later(eb: Joined, serial: number, repositories: readonly string[]) {
  return eb.and([
    eb('host_bundles.serial', '!=', serial),
    eb.or([eb('host_bundles.serial', '>', serial), eb('host_bundles.offered_serial', '>', serial)]),
    anyOf(eb, 'host_bundles.repository', repositories),
  ]);
}

function anyOf(
  eb: Joined,
  column: 'host_bundles.manifest' | 'host_bundles.repository',
  of: readonly string[],
) {
  return of.length === 0 ? eb.lit(false) : eb(column, 'in', [...of]);
}

function count(eb: Joined, of: Condition) {
  return eb.fn.coalesce(eb.fn.sum<number>(eb.case().when(of).then(1).else(0).end()), eb.lit(0));
}

function greatest(eb: Joined, of: Condition) {
  const known = eb
    .case()
    .when('host_bundles.serial', '>', eb.ref('host_bundles.offered_serial'))
    .then(eb.ref('host_bundles.serial'))
    .else(eb.ref('host_bundles.offered_serial'))
    .end();
  return eb.fn.max<number>(eb.case().when(of).then(known).else(0).end());
}

/**
 * Finds the release of the serial: the signed one, or the one that most hosts report if no repository signed it. Hosts of a
 * followed repository without this serial run another release.
 */
async function findReleaseManifests(
  reporting: Members,
  serial: number,
  { manifests: signed, rootsWithout }: SignedSerial,
) {
  const rows = await reporting
    .select(['host_bundles.repository', 'host_bundles.manifest', 'host_bundles.serial'])
    .select((eb) => eb.fn.countAll<number>().as('counted'))
    .where((eb) =>
      eb.or([eb('host_bundles.serial', '=', serial), eb('host_bundles.offered_serial', '=', serial)]),
    )
    .groupBy(['host_bundles.repository', 'host_bundles.manifest', 'host_bundles.serial'])
    .orderBy('counted', 'desc')
    .orderBy('host_bundles.manifest')
    .limit(maxReleases)
    .execute();
  const hosts = new Map<string, number>();
  for (const { repository, manifest, counted, ...row } of rows) {
    if (Number(row.serial) !== serial) continue;
    const isPossible = signed.length === 0 ? !rootsWithout.includes(repository) : signed.includes(manifest);
    hosts.set(manifest, (hosts.get(manifest) ?? 0) + (isPossible ? Number(counted) : 0));
  }
  const [most] = [...hosts].filter(([, number]) => number > 0).sort(([, a], [, b]) => b - a);
  const own = most === undefined ? [] : [most[0]];
  const others = [...hosts.keys()].filter((manifest) => !own.includes(manifest));
  return { own, others, repositories: [...new Set(rows.map(({ repository }) => repository))] };
}
