// A transaction that is run again while somebody else is in the way: another process that writes to an embedded store, or another
// server that changed the same row. Bounded; what it does must be decided inside of it, since it may run several times.
import type { Kysely } from 'kysely';
import { requireVersion } from './schema-version.js';
import { hasWaited, isPassing } from './store-errors.js';
import type { Tables } from './tables.js';

/** Of those whose row another server changed, at once. */
const maxTries = 10;
/** Each of them as long as the store's own bound on a statement: behind them is somebody who waits for an answer. */
const maxWaits = 2;

/** @throws FLEET_STORE_BUSY after the last try or wait; whatever else the database or `work` says, at once */
export function transact<T>(db: Kysely<Tables>, work: (trx: Kysely<Tables>) => Promise<T>): Promise<T> {
  return whileBusy(() => transactOnce(db, work));
}

/**
 * Every write is made in one: what a server of an older version would write is refused from the moment that a newer one has the store.
 * @throws FLEET_STORE_NEWER; whatever the database or `work` says
 */
export function transactOnce<T>(db: Kysely<Tables>, work: (trx: Kysely<Tables>) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await requireVersion(trx);
    return work(trx);
  });
}

/** @param run leaves nothing behind where it fails */
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
