// What time alone does: says that the fleet accepts, retires ephemeral hosts that are gone, and forgets what is old. One
// server at a time sweeps, under a lease; each says for itself that it accepts, and hears so of a newer version in the store.
import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { isWritError, type WritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { takeLease } from '../store/leases.js';
import type { FleetStore } from '../store/open-store.js';
import type { Tables } from '../store/tables.js';
import { transactOnce } from '../store/transact.js';
import { retireHost } from './change-host.js';
import { acceptingGapMs, isGone } from './silence-rules.js';

export interface SweepOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** How long ended intervals are kept; left out: 90 days. */
  readonly keepHistoryMs?: number | undefined;
  /** Hears that a server of a newer version has the store: this one has nothing to do any more. */
  readonly onNewer: (error: WritError) => void;
}

const acceptingEveryMs = 10_000;
const sweepEveryMs = 60_000;
const dayMs = 86_400_000;
const keepOutcomesMs = 90 * dayMs;
const keepAuditMs = 400 * dayMs;
export const keepIntervalsMs = 90 * dayMs;
/** In one statement: hosts that report wait for it. */
const maxTogether = 500;

/** Runs until the signal; a sweep that fails is tried again at its next turn. */
export async function runSweeps(
  { db }: FleetStore,
  { clock, log, signal, keepHistoryMs, onNewer }: SweepOptions,
): Promise<void> {
  const holder = randomUUID();
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      await noteAccepting(db, clock.nowMs());
      const isTime = clock.monotonicMs() - sweptAtMs >= sweepEveryMs;
      const lease = { holder, nowMs: clock.nowMs(), forMs: 2 * sweepEveryMs };
      if (isTime && (await takeLease(db, 'sweep', lease))) await sweep(db, clock.nowMs(), keepHistoryMs);
      if (isTime) sweptAtMs = clock.monotonicMs();
    } catch (error) {
      log.error({ err: error }, 'a sweep failed');
      if (isWritError(error) && error.code === 'FLEET_STORE_NEWER') return onNewer(error);
    }
    await clock.sleep(acceptingEveryMs, signal);
  }
}

/** After a gap the fleet accepts since now: whoever was silent before had nobody to speak to. */
export async function noteAccepting(db: Kysely<Tables>, nowMs: number): Promise<void> {
  await transactOnce(db, (trx) =>
    trx
      .updateTable('fleet')
      .set((eb) => ({
        accepting_since_ms: eb
          .case()
          .when('accepting_until_ms', '<', nowMs - acceptingGapMs)
          .then(nowMs)
          .else(eb.ref('accepting_since_ms'))
          .end(),
        accepting_until_ms: nowMs,
      }))
      .execute(),
  );
}

/** One turn of all that is swept. */
export async function sweep(
  db: Kysely<Tables>,
  nowMs: number,
  keepHistoryMs = keepIntervalsMs,
): Promise<void> {
  await retireGone(db, nowMs);
  for (const forget of forgetting(nowMs, keepHistoryMs))
    await transactOnce(db, (trx) => forget(trx).execute());
}

/** Each in a transaction of its own: nobody waits for more than one of them. */
function forgetting(nowMs: number, keepHistoryMs: number) {
  return [
    (trx: Kysely<Tables>) =>
      trx
        .deleteFrom('intervals')
        .where('written_ms', '<', nowMs - keepHistoryMs)
        // Not bound: the index of ended intervals is found by this very condition.
        .where((eb) => eb('until_ms', '>', eb.lit(0))),
    (trx: Kysely<Tables>) => trx.deleteFrom('outcomes').where('received_at_ms', '<', nowMs - keepOutcomesMs),
    (trx: Kysely<Tables>) => trx.deleteFrom('audit').where('at_ms', '<', nowMs - keepAuditMs),
    (trx: Kysely<Tables>) => trx.deleteFrom('sessions').where('expires_at_ms', '<=', nowMs),
    // A number that somebody changes meanwhile is not deleted: it is looked at again under its lock.
    (trx: Kysely<Tables>) => trx.deleteFrom('counters').where('count', '=', 0),
    (trx: Kysely<Tables>) => trx.deleteFrom('host_counters').where('count', '=', 0),
  ];
}

async function retireGone(db: Kysely<Tables>, nowMs: number): Promise<void> {
  const fleet = await db.selectFrom('fleet').selectAll().executeTakeFirstOrThrow();
  const ephemeral = await db
    .selectFrom('hosts')
    .select(['key_id', 'state', 'kind', 'agent', 'last_seen_ms', 'every_ms', 'ephemeral'])
    .where('state', '=', 'accepted')
    // Not bound: the index of these hosts alone is found by this very condition.
    .where((eb) => eb('ephemeral', '>', eb.lit(0)))
    .orderBy('last_seen_ms')
    .limit(maxTogether)
    .execute();
  for (const host of ephemeral.filter((one) => isGone(one, fleet, nowMs)))
    await retireHost(db, host.key_id, { who: 'server', nowMs, what: 'host.gone' });
}
