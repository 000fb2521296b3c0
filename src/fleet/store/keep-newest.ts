// Deletes all rows of one owner but the newest, so that a host or a person that adds rows without end cannot fill the store.
// The caller decides the number of rows and the owner.
import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Tables } from './tables.js';

export interface KeptRows {
  readonly table: 'outcomes' | 'sessions' | 'audit';
  /** The columns that identify the owner, with their values. */
  readonly of: Readonly<Record<string, string>>;
  /** A column with growing values: the rows with the greatest values are the newest. */
  readonly by: string;
  readonly keep: number;
}

type AnyTables = Record<string, Record<string, unknown>>;
type Builder = ExpressionBuilder<AnyTables, string>;

/** Deletes the rows of the owner beyond the `keep` newest ones. */
export async function keepNewest(trx: Kysely<Tables>, { table, of, by, keep }: KeptRows): Promise<void> {
  const any = trx.withTables<AnyTables>() as unknown as Kysely<AnyTables>;
  await any
    .deleteFrom(table)
    .where((eb: Builder) => eb.and(of))
    .where(by, '<=', (eb: Builder) =>
      eb
        .selectFrom(table)
        .select(by)
        .where((own: Builder) => own.and(of))
        .orderBy(by, 'desc')
        .limit(1)
        .offset(keep),
    )
    .execute();
}
