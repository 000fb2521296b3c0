// Writes many rows in few statements: inserts, or changes what is there. The text of a statement is made by kysely once for
// each table and number of rows, since that takes longer than running it. Rows are written in the order in which they come.
import type { CompiledQuery, Kysely } from 'kysely';
import type { Tables } from './tables.js';

export interface WriteRule {
  /** Columns of the primary key. */
  readonly key: readonly string[];
  /** Columns to which the row's number is added where the row is there; all others but the key take its value. */
  readonly add?: readonly string[];
  /** The only columns that are changed where the row is there; left out: all. */
  readonly only?: readonly string[];
  /** A row that is there is changed only where its column compares so with `by` more than what is written. */
  readonly where?: { readonly column: string; readonly is: '=' | '<'; readonly by?: number };
}

type AnyRow = Readonly<Record<string, unknown>>;
type AnyTables = Record<string, Record<string, unknown>>;

/**
 * Few sizes, so that few statements are prepared, and enough of them that a batch is few statements: each waits for the one before it.
 * The largest has fewer values than either database takes.
 */
const sizes = [64, 32, 16, 8, 4, 2, 1] as const;

export class RowWriter {
  readonly #statements = new Map<string, CompiledQuery>();

  /** @returns how many rows were written or changed */
  async write<T extends keyof Tables>(
    trx: Kysely<Tables>,
    table: T,
    rows: readonly Tables[T][],
    rule: WriteRule,
  ): Promise<number> {
    let written = 0;
    for (let at = 0; at < rows.length; ) {
      const size = sizes.find((one) => one <= rows.length - at) ?? 1;
      const some = rows.slice(at, at + size) as readonly AnyRow[];
      const result = await trx.executeQuery(this.#statementFor(trx.withTables(), table, some, rule));
      written += Number(result.numAffectedRows ?? 0n);
      at += size;
    }
    return written;
  }

  #statementFor(
    any: Kysely<AnyTables>,
    table: string,
    rows: readonly AnyRow[],
    rule: WriteRule,
  ): CompiledQuery {
    const columns = Object.keys(rows[0] ?? {}).sort();
    const name = JSON.stringify([table, rows.length, columns, rule]);
    const compiled = this.#statements.get(name) ?? compile(any, table, rows, columns, rule);
    this.#statements.set(name, compiled);
    const own = compiled.parameters.slice(rows.length * columns.length);
    const values = rows.flatMap((row) => columns.map((column) => row[column]));
    return { ...compiled, parameters: [...values, ...own] };
  }
}

function compile(
  any: Kysely<AnyTables>,
  table: string,
  rows: readonly AnyRow[],
  columns: readonly string[],
  { key, add = [], only, where }: WriteRule,
): CompiledQuery {
  const inOrder = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])));
  const changed = only ?? columns.filter((column) => !key.includes(column));
  return any
    .insertInto(table)
    .values(inOrder)
    .onConflict((conflict) => {
      const update = conflict.columns([...key]).doUpdateSet((eb) =>
        Object.fromEntries(
          changed.map((column) => {
            const next = eb.ref(`excluded.${column}`);
            return [column, add.includes(column) ? eb(eb.ref(`${table}.${column}`), '+', next) : next];
          }),
        ),
      );
      if (where === undefined) return update;
      const { column, is, by = 0 } = where;
      return update.where((eb) =>
        eb(eb(eb.ref(`${table}.${column}`), '+', eb.lit(by)), is, eb.ref(`excluded.${column}`)),
      );
    })
    .compile();
}
