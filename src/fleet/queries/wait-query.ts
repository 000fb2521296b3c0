// What a wait is judged on, counted from the rows of one bundle and channel: who counts, who is done, who refused. Owns no
// verdict, which core/fleet/wait-verdict gives.
import type { ExpressionBuilder, Kysely } from 'kysely';
import type { WaitFacts } from '../../core/fleet/answers.js';
import { given } from '../../core/given.js';
import type { Tables } from '../store/tables.js';

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

const maxRefusedHosts = 20;

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
  const heard = (eb: Joined) => eb('hosts.last_seen_ms', '>=', oldestMs);
  const has = (eb: Joined, state: 'confirmed' | 'notified') =>
    eb.and([heard(eb), eb('host_bundles.serial', '=', serial), eb('host_bundles.state', '=', state)]);
  const refused = (eb: Joined) =>
    eb.and([
      heard(eb),
      eb('host_bundles.offered_serial', '=', serial),
      eb('host_bundles.offered_state', 'in', ['refused', 'rolled-back']),
    ]);
  const one = (eb: Joined, of: ReturnType<typeof refused>) =>
    eb.fn.coalesce(eb.fn.sum<number>(eb.case().when(of).then(1).else(0).end()), eb.lit(0));
  const counts = await members
    .select((eb) => [
      eb.fn.countAll<number>().as('all'),
      one(eb, eb.and([heard(eb)])).as('of'),
      one(eb, has(eb, 'confirmed')).as('confirmed'),
      one(eb, has(eb, 'notified')).as('notified'),
      one(eb, refused(eb)).as('refused'),
    ])
    .executeTakeFirstOrThrow();
  const refusedHosts = await members
    .select(['hosts.host', 'hosts.key_id', 'host_bundles.offered_code'])
    .where(refused)
    .orderBy('hosts.host')
    .orderBy('hosts.key_id')
    .limit(maxRefusedHosts)
    .execute();
  return {
    schema: 1,
    type: 'fleet.wait',
    atMs: nowMs,
    of: Number(counts.of),
    confirmed: Number(counts.confirmed),
    notified: Number(counts.notified),
    refused: Number(counts.refused),
    refusedHosts: refusedHosts.map(({ host, key_id, offered_code }) => ({
      host,
      key: key_id,
      code: offered_code,
    })),
    excepted: Number(counts.all) - Number(counts.of),
    ...given(await standingOf(db, question)),
  };
}

/** Of counters: whether the serial means one release, and whether a later one of the same repository is known. */
async function standingOf(db: Kysely<Tables>, { bundle, channel, serial }: WaitQuestion) {
  const rows = await db
    .selectFrom('counters')
    .select(['repository', 'serial', 'manifest', 'state'])
    .where('bundle', '=', bundle)
    .where('channel', '=', channel)
    .where('serial', '>=', serial)
    .where('count', '>', 0)
    .distinct()
    .limit(1000)
    .execute();
  const isThis = rows.filter((row) => Number(row.serial) === serial);
  const manifests = new Set(isThis.map(({ manifest }) => manifest).filter((manifest) => manifest !== ''));
  // Another repository counts its own serials: only one in which somebody knows this release can supersede it.
  const repositories = new Set(isThis.map(({ repository }) => repository));
  const later = rows.filter((row) => Number(row.serial) > serial && repositories.has(row.repository));
  const supersededBy = later.length === 0 ? undefined : Math.max(...later.map((row) => Number(row.serial)));
  return { supersededBy, ambiguous: manifests.size > 1 ? (true as const) : undefined };
}
