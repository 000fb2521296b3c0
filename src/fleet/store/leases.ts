// Mutual exclusion between servers on one store: until a time (a lease, for sweeps), or until the end of a transaction (a lock,
// where two servers would insert the same row). Both are a row of `leases`, because some engines with PostgreSQL's protocol have no
// advisory locks.
import type { Kysely } from 'kysely';
import type { Tables } from './tables.js';
import { transactOnce } from './transact.js';

export type LeaseName = 'enrol' | 'sweep' | 'webhook';

/**
 * Takes a lease for `forMs` from `nowMs` on. A holder may renew its own lease; a lease that has ended may be taken by any server.
 * @returns true when `holder` has the lease, false when another server has it
 */
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

/** Must be the first statement of a transaction: another transaction with the same lock waits until this one has ended. */
export async function lockUntilCommit(trx: Kysely<Tables>, name: LeaseName): Promise<void> {
  await trx
    .updateTable('leases')
    .set((eb) => ({ until_ms: eb.ref('until_ms') }))
    .where('name', '=', name)
    .execute();
}
