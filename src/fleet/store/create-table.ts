// Builders for the versions of the schema: a table of texts and whole numbers, and the condition of a partial index.
import { type CreateTableBuilder, expressionBuilder, type Kysely } from 'kysely';

export type AnyTables = Record<string, Record<string, unknown>>;

export interface NewTable {
  readonly name: string;
  readonly key: readonly string[];
  readonly texts: readonly string[];
  readonly numbers: readonly string[];
}

/**
 * Creates a table with a primary key; all columns are required: `text`, or 64-bit integers. Fails where the table
 * exists.
 */
export async function createTable(
  db: Kysely<AnyTables>,
  { name, key, texts, numbers }: NewTable,
): Promise<void> {
  let table: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const column of texts) table = table.addColumn(column, 'text', (of) => of.notNull());
  for (const column of numbers) table = table.addColumn(column, 'bigint', (of) => of.notNull());
  const builder = table.addPrimaryKeyConstraint(`${name}_key`, [...key]);
  await builder.execute();
}

/**
 * The condition of a partial index. A query has to repeat this expression literally, without a bound value: else the database does
 * not use the index.
 */
export function isPositive(column: string) {
  const eb = expressionBuilder<Record<string, Record<string, number>>, string>();
  return eb(column, '>', eb.lit(0));
}
