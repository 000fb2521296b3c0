// The embedded database as a dialect of kysely: SQLite's words, over a few connections with a thread each, so that a page
// that reads does not wait for a batch that is flushed. Owns who has which connection, and that a thread which ended is
// started again, within a bound; the threads run the statements.
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
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { SqliteConnection } from './sqlite-connection.js';
import type { ThreadTask } from './sqlite-thread.js';
import { storeError } from './store-errors.js';

/** One writes at a time, whatever there is; a second one reads meanwhile. */
const connections = 2;
/** Of threads that ended by themselves. Beyond it the store does not answer, and /healthz says so. */
const maxRestarts = 10;
const restartsWithinMs = 60_000;

export interface ThreadKeeping {
  readonly clock: Clock;
  readonly log: Logger;
}

export function sqliteDialect(task: ThreadTask, keeping: ThreadKeeping): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SqliteDriver(task, keeping),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class SqliteDriver implements Driver {
  readonly #task: ThreadTask;
  readonly #keeping: ThreadKeeping;
  readonly #all: SqliteConnection[] = [];
  readonly #free: SqliteConnection[] = [];
  readonly #queue: ((connection: SqliteConnection) => void)[] = [];
  #restartedAtMs: number[] = [];

  constructor(task: ThreadTask, keeping: ThreadKeeping) {
    this.#task = task;
    this.#keeping = keeping;
  }

  async init(): Promise<void> {
    const onEnd = (reason: string): void =>
      this.#keeping.log.error({ reason }, 'a thread of the store ended');
    for (let at = 0; at < connections; at++) this.#all.push(new SqliteConnection(this.#task, onEnd));
    this.#free.push(...this.#all);
  }

  /** Here alone is a thread started again: whoever gets the connection has done nothing with it yet. */
  async acquireConnection(): Promise<DatabaseConnection> {
    const connection = this.#free.pop() ?? (await this.#nextFree());
    if (connection.isLost) await this.#restart(connection);
    return connection;
  }

  #nextFree(): Promise<SqliteConnection> {
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  async #restart(connection: SqliteConnection): Promise<void> {
    const { clock, log } = this.#keeping;
    const nowMs = clock.monotonicMs();
    this.#restartedAtMs = this.#restartedAtMs.filter((atMs) => nowMs - atMs < restartsWithinMs);
    if (this.#restartedAtMs.length >= maxRestarts) {
      await this.releaseConnection(connection);
      throw storeError('CLOSED', `threads of the store ended ${maxRestarts} times in a minute`);
    }
    this.#restartedAtMs.push(nowMs);
    connection.restart();
    log.warn({ restarts: this.#restartedAtMs.length }, 'a thread of the store was started again');
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
