// The rows of repositories: what a server concluded, for the queries of all. Owns how a view lies in a row, and which are too old to
// look at.
import type { Kysely } from 'kysely';
import type { RepositoryView } from '../../core/fleet/signed-releases.js';
import type { Tables } from '../store/tables.js';

/** Nobody reads it any more. */
const forgottenMs = 86_400_000;
const maxViews = 100;

/** @returns the repositories that servers of this fleet read, by URL */
export async function readViews(db: Kysely<Tables>, nowMs: number): Promise<readonly RepositoryView[]> {
  const rows = await db
    .selectFrom('repositories')
    .select('view')
    .where('tried_at_ms', '>', nowMs - forgottenMs)
    .orderBy('url')
    .limit(maxViews)
    .execute();
  return rows.map(({ view }) => JSON.parse(view) as RepositoryView);
}

export async function readView(db: Kysely<Tables>, id: string): Promise<RepositoryView | undefined> {
  const row = await db.selectFrom('repositories').select('view').where('id', '=', id).executeTakeFirst();
  return row && (JSON.parse(row.view) as RepositoryView);
}

export async function saveView(db: Kysely<Tables>, id: string, view: RepositoryView): Promise<void> {
  const values = { url: view.url, tried_at_ms: view.triedAtMs, view: JSON.stringify(view) };
  await db
    .insertInto('repositories')
    .values({ id, ...values })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute();
}
