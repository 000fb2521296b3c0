// Makes all writes to a store fail, as on a full disk, until it is released. A trigger raises the error of PostgreSQL; the
// embedded store runs out of pages. Reads succeed.
import { sql } from 'kysely';
import type { FleetStore } from '../../../../src/fleet/store/open-store.js';

const tables = ['hosts', 'host_bundles', 'host_labels', 'outcomes', 'tokens', 'sessions', 'audit'];
const verbs = ['insert', 'update', 'delete'];

/** @returns a function that makes writes succeed again */
export async function fillStore(store: FleetStore): Promise<() => Promise<void>> {
  return store.kind === 'postgres' ? fillPostgres(store) : fillEmbedded(store);
}

async function fillPostgres({ db }: FleetStore): Promise<() => Promise<void>> {
  const run = (text: string) => sql.raw(text).execute(db);
  await run(
    "create function full_disk() returns trigger as $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$ language plpgsql",
  );
  for (const table of tables)
    await run(
      `create trigger full_disk before insert or update or delete on ${table} for each row execute function full_disk()`,
    );
  return async () => void (await run('drop function full_disk() cascade'));
}

async function fillEmbedded({ db }: FleetStore): Promise<() => Promise<void>> {
  const run = (text: string) => sql.raw(text).execute(db);
  await run('create table ballast (content blob)');
  for (const table of tables)
    for (const verb of verbs)
      await run(
        `create trigger full_${table}_${verb} before ${verb} on ${table} begin insert into ballast values (zeroblob(4000000)); end`,
      );
  const [pages] = (await sql.raw<{ page_count: number }>('pragma page_count').execute(db)).rows;
  await boundPages(db, Number(pages?.page_count) + 10);
  return async () => {
    await boundPages(db, 1_000_000);
    await run('drop table ballast');
    for (const table of tables) for (const verb of verbs) await run(`drop trigger full_${table}_${verb}`);
  };
}

/** Sets the bound for each connection: the writer, and both readers, which run at the same time. */
async function boundPages(db: FleetStore['db'], pages: number): Promise<void> {
  const ask = (of: FleetStore['db']) => sql.raw(`pragma max_page_count = ${pages}`).execute(of);
  await db.transaction().execute(ask);
  await Promise.all([ask(db), ask(db)]);
}
