// The schema version of a store, compared with the version that this program writes. A running server of an older version would
// leave the counters of a newer version wrong. Therefore each transaction that writes reads the version first, and is refused.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import { migrations } from './migrations.js';

type AnyTables = Record<string, Record<string, unknown>>;

/** The version to which this program migrates a store. */
export const newestVersion = migrations.at(-1)?.version ?? 0;

const table = 'schema_versions';
const heldTable = 'schema_versions_held';

/** @returns the version of the store, 0 for a new one. @throws FLEET_STORE_NEWER where it is above `newest` */
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
 * Must be the first statement of a migration: it waits until each transaction that has read the version is over, and later readers wait
 * for the migration. A rename of the table is an exclusive lock in SQLite and PostgreSQL alike, so that a migration counts all rows.
 */
export async function lockVersions(trx: Kysely<AnyTables>): Promise<void> {
  await trx.schema.alterTable(table).renameTo(heldTable).execute();
  await trx.schema.alterTable(heldTable).renameTo(table).execute();
}
