// One server at a time: for a while (a lease, for sweeps), or for one transaction (a lock, where rows that are not there
// yet would collide). Both are a row of `leases`: no advisory lock, which not every engine with PostgreSQL's protocol has.
import type { Kysely } from 'kysely';
import type { Tables } from './tables.js';
import { transactOnce } from './transact.js';

export type LeaseName = 'enrol' | 'sweep' | 'webhook';

/** @returns true when `holder` has it until then; it may take its own again, and one that ended */
export async function takeLease(
  db: Kysely<Tables>,
  name: LeaseName,
  { holder, nowMs, forMs }: { readonly holder: string; readonly nowMs: number; readonly forMs: number },
): Promise<boolean> {
  const taken = await transactOnce(db, (trx) =>
    trx
      .updateTable('leases')
      .set({ holder, until_ms: nowMs + forMs })
      .where('name', '=', name)
      .where((eb) => eb.or([eb('holder', '=', holder), eb('until_ms', '<=', nowMs)]))
      .executeTakeFirst(),
  );
  return taken.numUpdatedRows === 1n;
}

/** First of all in a transaction: whoever does the same waits until that transaction has ended. */
export async function lockUntilCommit(trx: Kysely<Tables>, name: LeaseName): Promise<void> {
  await trx
    .updateTable('leases')
    .set((eb) => ({ until_ms: eb.ref('until_ms') }))
    .where('name', '=', name)
    .execute();
}
