// Writes the intervals of the hosts of a batch in the transaction that writes their reports, and keeps each host within its bound. The
// host's row is locked by its revision, so that no other server writes intervals of this host at the same time.
import type { Kysely } from 'kysely';
import { paddedKeys } from '../store/padded-keys.js';
import type { IntervalRow, Tables } from '../store/tables.js';
import type { RowWriter } from '../store/write-rows.js';
import { changeIntervals, intervalKey, mergeIntervals, type ReportedState } from './interval-rules.js';

/** Retained ended intervals of one host. `spareIntervals` more may accumulate before they are merged. */
const keptIntervals = 500;
const spareIntervals = 100;
/** How many of the retained intervals are merged ones, the oldest. The newest stay unchanged. */
const keptMerged = 100;

/**
 * Begins and ends release intervals for the reported states. Merges the oldest intervals of a host that has too many.
 * Must run in the transaction of the reports.
 * @throws WritError FLEET_STORE_*
 */
export async function writeIntervals(
  trx: Kysely<Tables>,
  writer: RowWriter,
  reported: readonly ReportedState[],
): Promise<void> {
  if (reported.length === 0) return;
  const open = await readOpen(
    trx,
    reported.map(({ keyId }) => keyId),
  );
  const rows = reported.flatMap((one) => changeIntervals(open.get(one.keyId) ?? [], one));
  if (rows.length === 0) return;
  await writer.write(trx, 'intervals', rows, { key: intervalKey });
  const keyIds = [...new Set(rows.map(({ key_id }) => key_id))];
  for (const keyId of await readFull(trx, keyIds)) await keepBound(trx, writer, keyId);
}

/** Ends all open intervals of a host that leaves the fleet. */
export async function endIntervals(trx: Kysely<Tables>, keyId: string, nowMs: number): Promise<void> {
  await trx
    .updateTable('intervals')
    .set({ until_ms: nowMs, written_ms: nowMs })
    .where('key_id', '=', keyId)
    .where('until_ms', '=', 0)
    .execute();
}

async function readOpen(
  trx: Kysely<Tables>,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, readonly IntervalRow[]>> {
  const rows = await trx
    .selectFrom('intervals')
    .selectAll()
    .where('key_id', 'in', paddedKeys(keyIds))
    // Use a literal, because the partial index of open intervals matches only this exact condition.
    .where((eb) => eb('until_ms', '=', eb.lit(0)))
    .execute();
  const found = new Map<string, IntervalRow[]>();
  for (const row of rows) found.set(row.key_id, [...(found.get(row.key_id) ?? []), row]);
  return found;
}

/** @returns the keys of hosts with too many ended intervals */
async function readFull(trx: Kysely<Tables>, keyIds: readonly string[]): Promise<readonly string[]> {
  const rows = await trx
    .selectFrom('intervals')
    .select('key_id')
    .where('key_id', 'in', paddedKeys(keyIds))
    .where('until_ms', '>', 0)
    .groupBy('key_id')
    .having((eb) => eb.fn.countAll(), '>', keptIntervals + spareIntervals)
    .execute();
  return rows.map(({ key_id }) => key_id);
}

/** Replaces the ended intervals of a host with too many by merged ones. Happens once for each hundred new intervals. */
async function keepBound(trx: Kysely<Tables>, writer: RowWriter, keyId: string): Promise<void> {
  const ended = await trx
    .deleteFrom('intervals')
    .where('key_id', '=', keyId)
    .where('until_ms', '>', 0)
    .returningAll()
    .execute();
  const newest = ended.sort((a, b) => b.since_ms - a.since_ms);
  const whole = newest.slice(0, keptIntervals - keptMerged);
  const merged = mergeIntervals(newest.slice(whole.length)).slice(0, keptMerged);
  await writer.write(trx, 'intervals', [...whole, ...merged], { key: intervalKey });
}
