// The rows of repositories: what a server concluded, for the queries of all. Owns how a view is in a row, what
// is remembered of it, and which are too old to look at.
import type { Kysely } from 'kysely';
import type { RepositoryView } from '../../core/fleet/signed-releases.js';
import type { Tables } from '../store/tables.js';
import { transactOnce } from '../store/transact.js';

/** Nobody reads it any more. */
const forgottenMs = 86_400_000;
const maxViews = 100;

export interface StoredViews {
  /** @returns the repositories that servers of this fleet read, by URL */
  read(nowMs: number): Promise<readonly RepositoryView[]>;
}

/** A row is read and parsed once for each reading of its repository, however often it is asked for: it may be megabytes. */
export function openViews(db: Kysely<Tables>): StoredViews {
  let known = new Map<string, { readonly triedAtMs: number; readonly view: RepositoryView }>();
  return {
    read: async (nowMs) => {
      const rows = await db
        .selectFrom('repositories')
        .select(['id', 'tried_at_ms'])
        .where('tried_at_ms', '>', nowMs - forgottenMs)
        .orderBy('url')
        .limit(maxViews)
        .execute();
      const stale = rows.filter(({ id, tried_at_ms }) => known.get(id)?.triedAtMs !== Number(tried_at_ms));
      const read = await readRows(
        db,
        stale.map(({ id }) => id),
      );
      const now = rows.flatMap(({ id }) => {
        const one = read.get(id) ?? known.get(id);
        return one === undefined ? [] : [[id, one] as const];
      });
      known = new Map(now);
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

export async function readView(db: Kysely<Tables>, id: string): Promise<RepositoryView | undefined> {
  const row = await db.selectFrom('repositories').select('view').where('id', '=', id).executeTakeFirst();
  return row && (JSON.parse(row.view) as RepositoryView);
}

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
