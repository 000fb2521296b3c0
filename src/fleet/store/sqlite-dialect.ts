// The embedded database as a dialect of kysely: SQLite's words, over a few connections with a thread each, so that a page
// that reads does not wait for a batch that is flushed. Owns who has which connection; the threads run the statements.
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import { SqliteConnection } from './sqlite-connection.js';
import type { ThreadTask } from './sqlite-thread.js';

/** One writes at a time, whatever there is; a second one reads meanwhile. */
const connections = 2;

export function sqliteDialect(task: ThreadTask): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SqliteDriver(task),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class SqliteDriver implements Driver {
  readonly #task: ThreadTask;
  readonly #all: SqliteConnection[] = [];
  readonly #free: SqliteConnection[] = [];
  readonly #queue: ((connection: SqliteConnection) => void)[] = [];

  constructor(task: ThreadTask) {
    this.#task = task;
  }

  async init(): Promise<void> {
    for (let at = 0; at < connections; at++) this.#all.push(new SqliteConnection(this.#task));
    this.#free.push(...this.#all);
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#free.pop() ?? new Promise((resolve) => this.#queue.push(resolve));
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    const next = this.#queue.shift();
    if (next === undefined) this.#free.push(connection as SqliteConnection);
    else next(connection as SqliteConnection);
  }

  /** At once with the right to write: a transaction that asks for it later can be refused when it has read already. */
  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    const sql = settings.accessMode === 'read only' ? 'begin' : 'begin immediate';
    await connection.executeQuery(CompiledQuery.raw(sql));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.close()));
  }
}
