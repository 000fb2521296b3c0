// Which version a store has, beside which version this program writes. A server that runs on while a newer one takes the store
// over would not keep the numbers of that version: each transaction that writes looks first, and is refused from then on.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import { migrations } from './migrations.js';

type AnyTables = Record<string, Record<string, unknown>>;

/** The version that this program brings a store to. */
export const newestVersion = migrations.at(-1)?.version ?? 0;

const table = 'schema_versions';
const heldTable = 'schema_versions_held';

/** @throws FLEET_STORE_NEWER */
export async function requireVersion<T>(db: Kysely<T>, newest: number = newestVersion): Promise<number> {
  const any = db.withTables<AnyTables>() as unknown as Kysely<AnyTables>;
  const row = await any
    .selectFrom(table)
    .select('version')
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
  const at = Number(row?.['version'] ?? 0);
  if (at <= newest) return at;
  const facts = { expected: newest, actual: at };
  throw new WritError('FLEET_STORE_NEWER', `the store has version ${at}; this Writ knows ${newest}`, {
    facts,
  });
}

/**
 * First of all in a transaction that brings the store forward: it waits until every transaction that has looked is over, and whoever
 * looks from now on waits for it. A change of the table's name is what both databases do alone; what counts rows counts all of them.
 */
export async function lockVersions(trx: Kysely<AnyTables>): Promise<void> {
  await trx.schema.alterTable(table).renameTo(heldTable).execute();
  await trx.schema.alterTable(heldTable).renameTo(table).execute();
}
