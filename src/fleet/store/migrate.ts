// Migrates a store to the newest version that this program knows, forward only, each version in one transaction. The table of
// versions makes a concurrent start of two servers safe: the first one inserts the row of a version and migrates; the second one waits
// for that row, gets a duplicate key, and reads the version again. A running server of an older version cannot write from then on.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import { createVersions, type Migration, migrations } from './migrations.js';
import { lockVersions, requireVersion } from './schema-version.js';
import { isDuplicate, isPassing } from './store-errors.js';

type AnyTables = Record<string, Record<string, unknown>>;

/** Each attempt beyond the first means that another server migrated meanwhile. */
const maxAttempts = 50;

/**
 * Brings the store to the newest version, one migration after the other. Several servers may do this at the same time.
 * @param fleet the id and the time that a new store records
 * @param known the migrations of this server
 * @throws FLEET_STORE_NEWER; the error of the database
 */
export async function migrate(
  db: Kysely<AnyTables>,
  fleet: { readonly id: string; readonly nowMs: number },
  known: readonly Migration[] = migrations,
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      if (await step(db, fleet, known)) return;
    } catch (error) {
      if (attempt >= maxAttempts || !(isDuplicate(error) || isPassing(error) || isMaking(error))) throw error;
    }
  }
}

/** Migrates by one version. @returns true when the store already has the newest version */
async function step(
  db: Kysely<AnyTables>,
  fleet: { readonly id: string; readonly nowMs: number },
  known: readonly Migration[],
): Promise<boolean> {
  await createVersions(db);
  const at = await requireVersion(db, known.at(-1)?.version);
  const next = known.find(({ version }) => version > at);
  if (next === undefined) return true;
  await db.transaction().execute(async (trx) => {
    await lockVersions(trx);
    await trx.insertInto('schema_versions').values({ version: next.version, at_ms: fleet.nowMs }).execute();
    await next.up(trx, fleet);
  });
  return false;
}

/** True where two servers create the same table at the same time: PostgreSQL refuses one of them (42P07, 42710). */
function isMaking(error: unknown): boolean {
  return error instanceof WritError && /^42P07$|^42710$/.test(String(error.facts.actual));
}
