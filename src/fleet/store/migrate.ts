// Brings a store to the newest version that this program knows, forward only, each version in one transaction. Two servers
// that start together are safe by the table of versions alone: who writes the row of a version first makes it, the other
// one waits for it, is refused, and looks again. A server of an older version that still runs writes nothing from then on.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import { createVersions, type Migration, migrations } from './migrations.js';
import { lockVersions, requireVersion } from './schema-version.js';
import { isDuplicate, isPassing } from './store-errors.js';

type AnyTables = Record<string, Record<string, unknown>>;

/** Of looks, each of which finds that somebody else went on meanwhile. */
const maxLooks = 50;

/** @throws FLEET_STORE_NEWER; whatever the database says */
export async function migrate(
  db: Kysely<AnyTables>,
  fleet: { readonly id: string; readonly nowMs: number },
  known: readonly Migration[] = migrations,
): Promise<void> {
  for (let look = 0; ; look++) {
    try {
      if (await step(db, fleet, known)) return;
    } catch (error) {
      if (look >= maxLooks || !(isDuplicate(error) || isPassing(error) || isMaking(error))) throw error;
    }
  }
}

/** @returns true when nothing is left to do */
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

/** Two that make the same table at the same time: PostgreSQL refuses one by its own catalogue. */
function isMaking(error: unknown): boolean {
  return error instanceof WritError && /^42P07$|^42710$/.test(String(error.facts.actual));
}
