// What time alone does: says that the fleet accepts, retires ephemeral hosts that are gone, and forgets what is old. One
// server at a time sweeps, under a lease; each says for itself that it accepts.
import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { takeLease } from '../store/leases.js';
import type { FleetStore } from '../store/open-store.js';
import type { Tables } from '../store/tables.js';
import { retireHost } from './change-host.js';
import { acceptingGapMs, isGone } from './silence-rules.js';

export interface SweepOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const acceptingEveryMs = 10_000;
const sweepEveryMs = 60_000;
const dayMs = 86_400_000;
const keepOutcomesMs = 90 * dayMs;
const keepAuditMs = 400 * dayMs;
/** In one statement: hosts that report wait for it. */
const maxTogether = 500;

/** Runs until the signal; a sweep that fails is tried again at its next turn. */
export async function runSweeps({ db }: FleetStore, { clock, log, signal }: SweepOptions): Promise<void> {
  const holder = randomUUID();
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      await noteAccepting(db, clock.nowMs());
      const isTime = clock.monotonicMs() - sweptAtMs >= sweepEveryMs;
      const lease = { holder, nowMs: clock.nowMs(), forMs: 2 * sweepEveryMs };
      if (isTime && (await takeLease(db, 'sweep', lease))) await sweep(db, clock.nowMs());
      if (isTime) sweptAtMs = clock.monotonicMs();
    } catch (error) {
      log.error({ err: error }, 'a sweep failed');
    }
    await clock.sleep(acceptingEveryMs, signal);
  }
}

/** After a gap the fleet accepts since now: whoever was silent before had nobody to speak to. */
export async function noteAccepting(db: Kysely<Tables>, nowMs: number): Promise<void> {
  await db
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
    .execute();
}

/** One turn of all that is swept. */
export async function sweep(db: Kysely<Tables>, nowMs: number): Promise<void> {
  await retireGone(db, nowMs);
  await db
    .deleteFrom('outcomes')
    .where('received_at_ms', '<', nowMs - keepOutcomesMs)
    .execute();
  await db
    .deleteFrom('audit')
    .where('at_ms', '<', nowMs - keepAuditMs)
    .execute();
  await db.deleteFrom('sessions').where('expires_at_ms', '<=', nowMs).execute();
  // A number that somebody changes meanwhile is not deleted: it is looked at again under its lock.
  await db.deleteFrom('counters').where('count', '=', 0).execute();
  await db.deleteFrom('host_counters').where('count', '=', 0).execute();
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
