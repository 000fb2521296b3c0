// Periodic work: records that the fleet accepts reports, retires abandoned ephemeral hosts, and deletes old rows. A lease allows
// one server at a time to sweep. Each server records its own acceptance, and so detects a newer schema in the store.
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
  /** How long ended intervals are retained, in milliseconds; 90 days if undefined. */
  readonly keepHistoryMs?: number | undefined;
  /** Called when a newer version has migrated the store, so that this server must end. */
  readonly onNewer: (error: WritError) => void;
}

const acceptingEveryMs = 10_000;
const sweepEveryMs = 60_000;
const dayMs = 86_400_000;
const keepOutcomesMs = 90 * dayMs;
const keepAuditMs = 400 * dayMs;
export const keepIntervalsMs = 90 * dayMs;
/** Rows of one statement, because reports wait for it. */
const maxTogether = 500;

/** Runs until the signal. Retries a failed sweep in the next round. */
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

/** Records that the fleet accepts reports. After a gap its acceptance begins now: no host could report during the gap. */
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

/** Runs one sweep. */
export async function sweep(
  db: Kysely<Tables>,
  nowMs: number,
  keepHistoryMs = keepIntervalsMs,
): Promise<void> {
  await retireGone(db, nowMs);
  for (const forget of forgetting(nowMs, keepHistoryMs))
    await transactOnce(db, (trx) => forget(trx).execute());
}

/** Returns the deletions. Each runs in its own transaction, so that a report waits for one of them at most. */
function forgetting(nowMs: number, keepHistoryMs: number) {
  return [
    (trx: Kysely<Tables>) =>
      trx
        .deleteFrom('intervals')
        .where('written_ms', '<', nowMs - keepHistoryMs)
        // Use a literal, because the partial index of ended intervals matches only this exact condition.
        .where((eb) => eb('until_ms', '>', eb.lit(0))),
    (trx: Kysely<Tables>) => trx.deleteFrom('outcomes').where('received_at_ms', '<', nowMs - keepOutcomesMs),
    (trx: Kysely<Tables>) => trx.deleteFrom('audit').where('at_ms', '<', nowMs - keepAuditMs),
    (trx: Kysely<Tables>) => trx.deleteFrom('sessions').where('expires_at_ms', '<=', nowMs),
    // A counter that another transaction changes meanwhile is not deleted: the database checks the condition again under the row lock.
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
    // Use a literal, because the partial index of ephemeral hosts matches only this exact condition.
    .where((eb) => eb('ephemeral', '>', eb.lit(0)))
    .orderBy('last_seen_ms')
    .limit(maxTogether)
    .execute();
  for (const host of ephemeral.filter((one) => isGone(one, fleet, nowMs)))
    await retireHost(db, host.key_id, { who: 'server', nowMs, what: 'host.gone' });
}
