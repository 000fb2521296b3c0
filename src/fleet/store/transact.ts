// Runs a transaction again after a conflict: another process has an embedded store locked, or another server changed the same row.
// The number of runs is bounded. All decisions belong inside the transaction, because it may run several times.
import type { Kysely } from 'kysely';
import { requireVersion } from './schema-version.js';
import { hasWaited, isPassing } from './store-errors.js';
import type { Tables } from './tables.js';

/** Runs after a conflict about a row; each follows at once. */
const maxTries = 10;
/** Runs that waited for the locked store; each may take the whole time of a statement while a client waits for its answer. */
const maxWaits = 2;

/**
 * Runs `work` in a transaction, again after a conflict.
 * @throws FLEET_STORE_BUSY after the last run; at once: FLEET_STORE_NEWER, other errors of the database, errors of `work`
 */
export function transact<T>(db: Kysely<Tables>, work: (trx: Kysely<Tables>) => Promise<T>): Promise<T> {
  return whileBusy(() => transactOnce(db, work));
}

/**
 * Runs `work` in one transaction, once. Each write uses it, because the check of the version refuses a server that is older than the store.
 * @throws FLEET_STORE_NEWER; errors of the database; errors of `work`
 */
export function transactOnce<T>(db: Kysely<Tables>, work: (trx: Kysely<Tables>) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await requireVersion(trx);
    return work(trx);
  });
}

/** Calls `run` again after a conflict, within the bounds of `transact`. @param run must have no effect where it throws */
export async function whileBusy<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1, waits = 0; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (hasWaited(error)) waits++;
      if (tries >= maxTries || waits >= maxWaits || !isPassing(error)) throw error;
    }
  }
}
