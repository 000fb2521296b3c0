// Keeps the newest rows of one owner, and forgets the others: whoever adds rows without end, a host or a person, fills no store.
// Owns no number of rows; how many, and of whom, its caller says.
import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Tables } from './tables.js';

export interface KeptRows {
  readonly table: 'outcomes' | 'sessions' | 'audit';
  /** Columns that say whose rows they are, with their values. */
  readonly of: Readonly<Record<string, string>>;
  /** Column that grows: the greatest are the newest. */
  readonly by: string;
  readonly keep: number;
}

type AnyTables = Record<string, Record<string, unknown>>;
type Builder = ExpressionBuilder<AnyTables, string>;

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
