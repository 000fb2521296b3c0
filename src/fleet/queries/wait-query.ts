// What a wait is judged on, counted from the rows of one bundle and channel: who counts, who is done, who refused, who went by.
// Hosts outside of the count decide nothing, and the last word of one that is silent is not what it runs now. Owns no verdict, which core/fleet/wait-verdict gives.
import type { ExpressionBuilder, Kysely, SelectQueryBuilder } from 'kysely';
import type { WaitFacts, WaitSettled } from '../../core/fleet/answers.js';
import type { ActiveState, BakeState } from '../../core/fleet/report.js';
import { given } from '../../core/given.js';
import type { Tables } from '../store/tables.js';
import { isSilentRow, readAccepting } from './host-where.js';

export interface WaitQuestion {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** When the wait began: who was enrolled later does not count. */
  readonly sinceMs: number;
  /** Left out of the count: silent for longer than this. */
  readonly exceptSilentMs?: number;
}

type Joined = ExpressionBuilder<Tables, 'hosts' | 'host_bundles'>;
type Condition = ReturnType<Joined['and']>;
type Members = SelectQueryBuilder<Tables, 'hosts' | 'host_bundles', object>;

const maxRefusedHosts = 20;
/** Of a serial: what hosts that lie make more of is not counted. */
const maxReleases = 100;

export async function readWait(
  db: Kysely<Tables>,
  question: WaitQuestion,
  nowMs: number,
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
  const heard = members.where('hosts.last_seen_ms', '>=', oldestMs);
  const release = await releaseOf(heard, serial);
  const at = { nowMs, fleet: await readAccepting(db) };
  const [own, others] = [release.manifests.slice(0, 1), release.manifests.slice(1)];
  const counted = await heard
    .select((eb) => [
      eb.fn.countAll<number>().as('of'),
      count(eb, eb.and([has(eb, serial, own, 'confirmed'), eb.not(isSilentRow(eb, at))])).as('confirmed'),
      count(eb, eb.and([has(eb, serial, own, 'notified'), eb.not(isSilentRow(eb, at))])).as('notified'),
      count(eb, eb.and([isDone(eb, serial, own), isSilentRow(eb, at)])).as('silent'),
      count(eb, has(eb, serial, own, 'unconfirmed')).as('unconfirmed'),
      ...settledCounts(eb, { serial, manifests: own, isSilent: isSilentRow(eb, at) }),
      count(eb, has(eb, serial, others)).as('elsewhere'),
      count(eb, refused(eb, serial)).as('refused'),
      count(eb, later(eb, serial, release.repositories)).as('later'),
    ])
    .select((eb) => greatest(eb, later(eb, serial, release.repositories)).as('latest'))
    .executeTakeFirstOrThrow();
  const sums = wholeNumbers(counted);
  const { all } = await members.select((eb) => eb.fn.countAll<number>().as('all')).executeTakeFirstOrThrow();
  const refusedHosts = await heard
    .select(['hosts.host', 'hosts.key_id', 'host_bundles.offered_code'])
    .where((eb) => refused(eb, serial))
    .orderBy('hosts.host')
    .orderBy('hosts.key_id')
    .limit(maxRefusedHosts)
    .execute();
  return {
    schema: 1,
    type: 'fleet.wait',
    atMs: nowMs,
    of: sums.of,
    confirmed: sums.confirmed,
    notified: sums.notified,
    unconfirmed: sums.unconfirmed,
    silent: sums.silent,
    settled: settledOf(sums),
    refused: sums.refused,
    refusedHosts: refusedHosts.map(({ host, key_id, offered_code }) => ({
      host,
      key: key_id,
      code: offered_code,
    })),
    excepted: Number(all) - sums.of,
    later: sums.later,
    elsewhere: sums.elsewhere,
    ...given({ supersededBy: sums.latest || undefined }),
  };
}

/** Of one host each, and of no two of them at a time: a host that lies takes itself away, and nobody else. */
function has(eb: Joined, serial: number, manifests: readonly string[], state?: ActiveState) {
  const is = [eb('host_bundles.serial', '=', serial), anyOf(eb, 'host_bundles.manifest', manifests)];
  return eb.and(state === undefined ? is : [...is, eb('host_bundles.state', '=', state)]);
}

/** Of hosts that are heard and have it, confirmed or notified. */
function settledCounts(
  eb: Joined,
  {
    serial,
    manifests,
    isSilent,
  }: {
    readonly serial: number;
    readonly manifests: readonly string[];
    readonly isSilent: ReturnType<typeof isSilentRow>;
  },
) {
  const inBake = (bakes: readonly (BakeState | '')[], done: Condition) =>
    count(eb, eb.and([done, eb.not(isSilent), eb('host_bundles.bake', 'in', [...bakes])]));
  const done = isDone(eb, serial, manifests);
  return [
    inBake(settledStates, has(eb, serial, manifests, 'confirmed')).as('settled_confirmed'),
    inBake(settledStates, has(eb, serial, manifests, 'notified')).as('settled_notified'),
    inBake(['unobserved'], done).as('unobserved'),
    inBake(['baking'], done).as('baking'),
    inBake(['failed'], done).as('failed'),
    inBake([''], done).as('unknown'),
  ] as const;
}

function settledOf(
  sums: Record<
    'settled_confirmed' | 'settled_notified' | 'unobserved' | 'baking' | 'failed' | 'unknown',
    number
  >,
): WaitSettled {
  const {
    settled_confirmed: confirmed,
    settled_notified: notified,
    unobserved,
    baking,
    failed,
    unknown,
  } = sums;
  return { confirmed, notified, unobserved, baking, failed, unknown };
}

/** A driver may give a sum as text. */
function wholeNumbers<T extends Record<string, number>>(sums: T): T {
  const numbers = Object.entries(sums).map(([name, value]) => [name, Number(value)] as const);
  return Object.fromEntries(numbers) as T;
}

/** A release without a bake time is as good as it will be. */
const settledStates: readonly BakeState[] = ['settled', 'unobserved', 'none'];

/** As far as its last word goes. */
function isDone(eb: Joined, serial: number, manifests: readonly string[]) {
  return eb.or([has(eb, serial, manifests, 'confirmed'), has(eb, serial, manifests, 'notified')]);
}

function refused(eb: Joined, serial: number) {
  return eb.and([
    eb('host_bundles.serial', '!=', serial),
    eb('host_bundles.offered_serial', '=', serial),
    eb('host_bundles.offered_state', 'in', ['refused', 'rolled-back']),
  ]);
}

/** Has a later one, or is offered one before it took this; another repository counts its own serials. */
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

/** Which release the serial is: the one that most hosts have, first. A host's word makes none of another one's. */
async function releaseOf(heard: Members, serial: number) {
  const rows = await heard
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
  for (const row of rows)
    if (Number(row.serial) === serial)
      hosts.set(row.manifest, (hosts.get(row.manifest) ?? 0) + Number(row.counted));
  const manifests = [...hosts].sort(([, a], [, b]) => b - a).map(([manifest]) => manifest);
  return { manifests, repositories: [...new Set(rows.map(({ repository }) => repository))] };
}
