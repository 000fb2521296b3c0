// The dialect for the embedded database: SQLite over a few connections with one thread each. A page then reads while a batch is
// flushed, and while another process has the store locked. Owns the assignment of connections, and the bounded restart of a
// thread that ended; the threads run the statements.
import {
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
import { ConnectionPool, HeldConnection, type TakenConnection } from './sqlite-pool.js';
import type { ThreadTask } from './sqlite-thread.js';
import { isPassing, storeError } from './store-errors.js';

/** Connections that only read. SQLite has one writer at a time, for which there is one more connection. */
const readers = 2;
/** Restarts of threads in `restartsWithinMs`. Beyond it the store does not answer, and /healthz reports that. */
const maxRestarts = 10;
const restartsWithinMs = 60_000;

export interface ThreadKeeping {
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * @param task the file of the database and the options of its threads
 * @param keeping the clock and the log for restarts of threads
 * @returns a dialect that starts its threads when kysely opens it
 */
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
  #writing = new ConnectionPool([]);
  #reading = new ConnectionPool([]);
  #restartedAtMs: number[] = [];

  constructor(task: ThreadTask, keeping: ThreadKeeping) {
    this.#task = task;
    this.#keeping = keeping;
  }

  async init(): Promise<void> {
    // The main thread loads libsql and keeps it loaded, because Node unloads an addon with the last thread that loaded it. Threads of
    // libsql's runtime would then run in memory that is no longer mapped (SIGSEGV).
    await import('libsql');
    const onEnd = (reason: string): void =>
      this.#keeping.log.error({ reason }, 'a thread of the store ended');
    const make = (): SqliteConnection => new SqliteConnection(this.#task, onEnd);
    this.#writing = new ConnectionPool([make()]);
    this.#reading = new ConnectionPool(Array.from({ length: readers }, make));
  }

  /** Returns a connection without a thread: its first statement decides between a reader and the writer. */
  async acquireConnection(): Promise<HeldConnection> {
    return new HeldConnection(() => this.#take(this.#reading));
  }

  /** The only place that restarts a thread: a connection has no open transaction when it is taken from the pool. */
  async #take(pool: ConnectionPool): Promise<TakenConnection> {
    const connection = await pool.take();
    try {
      if (connection.isLost) this.#restart(connection);
    } catch (error) {
      pool.give(connection);
      throw error;
    }
    return { connection, pool };
  }

  #restart(connection: SqliteConnection): void {
    const { clock, log } = this.#keeping;
    const nowMs = clock.monotonicMs();
    this.#restartedAtMs = this.#restartedAtMs.filter((atMs) => nowMs - atMs < restartsWithinMs);
    if (this.#restartedAtMs.length >= maxRestarts)
      throw storeError('CLOSED', `threads of the store ended ${maxRestarts} times in a minute`);
    this.#restartedAtMs.push(nowMs);
    connection.restart();
    log.warn({ restarts: this.#restartedAtMs.length }, 'a thread of the store was started again');
  }

  async releaseConnection(held: HeldConnection): Promise<void> {
    held.release();
  }

  /** Takes the write lock with BEGIN IMMEDIATE, because SQLite may refuse the lock to a transaction that has already read. */
  async beginTransaction(held: HeldConnection, settings: TransactionSettings): Promise<void> {
    if (settings.accessMode === 'read only') return held.run('begin');
    await held.become(() => this.#take(this.#writing));
    try {
      await held.run('begin immediate');
    } catch (error) {
      // The queued transactions fail now, because each of them would wait as long for the same lock, one after the other.
      if (isPassing(error)) this.#writing.refuse(error);
      throw error;
    }
  }

  async commitTransaction(held: HeldConnection): Promise<void> {
    await held.run('commit');
  }

  async rollbackTransaction(held: HeldConnection): Promise<void> {
    await held.run('rollback');
  }

  /** Closes the connections one after the other, because two concurrent closes may both leave the WAL file beside fleet.db. */
  async destroy(): Promise<void> {
    for (const connection of [...this.#reading.all, ...this.#writing.all]) await connection.close();
  }
}
