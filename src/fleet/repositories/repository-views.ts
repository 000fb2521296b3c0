// The rows of repositories: the last view of each, for the queries of every server of a fleet. Owns the row format, the cache of
// parsed views, and the age at which a view is ignored.
import type { Kysely } from 'kysely';
import type { RepositoryView } from '../../core/fleet/signed-releases.js';
import type { Tables } from '../store/tables.js';
import { transactOnce } from '../store/transact.js';

/** After a day without a refresh no server follows the repository any more. */
const maxAgeMs = 86_400_000;
const maxViews = 100;

export interface RepositoryViews {
  /** @returns the repositories that servers of this fleet read, by URL */
  read(nowMs: number): Promise<readonly RepositoryView[]>;
}

/** Reads and parses a row once for each refresh of its repository, because a view may have megabytes. */
export function openRepositoryViews(db: Kysely<Tables>): RepositoryViews {
  let cached = new Map<string, { readonly triedAtMs: number; readonly view: RepositoryView }>();
  return {
    read: async (nowMs) => {
      const rows = await db
        .selectFrom('repositories')
        .select(['id', 'tried_at_ms'])
        .where('tried_at_ms', '>', nowMs - maxAgeMs)
        .orderBy('url')
        .limit(maxViews)
        .execute();
      const stale = rows.filter(({ id, tried_at_ms }) => cached.get(id)?.triedAtMs !== Number(tried_at_ms));
      const read = await readRows(
        db,
        stale.map(({ id }) => id),
      );
      const now = rows.flatMap(({ id }) => {
        const one = read.get(id) ?? cached.get(id);
        return one === undefined ? [] : [[id, one] as const];
      });
      cached = new Map(now);
      return now.map(([, { view }]) => view);
    },
  };
}

async function readRows(db: Kysely<Tables>, ids: readonly string[]) {
  if (ids.length === 0) return new Map<string, never>();
  const rows = await db
    .selectFrom('repositories')
    .select(['id', 'tried_at_ms', 'view'])
    .where('id', 'in', ids)
    .execute();
  return new Map(
    rows.map(({ id, tried_at_ms, view }) => {
      return [id, { triedAtMs: Number(tried_at_ms), view: JSON.parse(view) as RepositoryView }];
    }),
  );
}

/**
 * @returns the last stored view of a repository; undefined before its first refresh
 * @param id the digest of the repository's URL
 * @throws WritError FLEET_STORE_*
 */
export async function readView(db: Kysely<Tables>, id: string): Promise<RepositoryView | undefined> {
  const row = await db.selectFrom('repositories').select('view').where('id', '=', id).executeTakeFirst();
  return row && (JSON.parse(row.view) as RepositoryView);
}

/**
 * Inserts or replaces the view of a repository, in a transaction that is not retried.
 * @param id the digest of the repository's URL
 * @throws WritError FLEET_STORE_*
 */
export async function saveView(db: Kysely<Tables>, id: string, view: RepositoryView): Promise<void> {
  const values = { url: view.url, tried_at_ms: view.triedAtMs, view: JSON.stringify(view) };
  await transactOnce(db, (trx) =>
    trx
      .insertInto('repositories')
      .values({ id, ...values })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
      .execute(),
  );
}
