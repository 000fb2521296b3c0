// The embedded database as a dialect of kysely: SQLite's words, over a few connections with a thread each, so that a page
// that reads waits neither for a batch that is flushed, nor for another process that keeps the store locked. Owns who has which
// connection, and that a thread which ended is started again, within a bound; the threads run the statements.
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

/** One writes at a time, whatever there is; the others read meanwhile, and none of them waits for the right to write. */
const readers = 2;
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
  #writing = new ConnectionPool([]);
  #reading = new ConnectionPool([]);
  #restartedAtMs: number[] = [];

  constructor(task: ThreadTask, keeping: ThreadKeeping) {
    this.#task = task;
    this.#keeping = keeping;
  }

  async init(): Promise<void> {
    // Node unloads an addon with the last thread that loaded it. Threads of libsql's own runtime would then begin in memory that is not
    // mapped any more (SIGSEGV). The main thread ends with the process.
    await import('libsql');
    const onEnd = (reason: string): void =>
      this.#keeping.log.error({ reason }, 'a thread of the store ended');
    const make = (): SqliteConnection => new SqliteConnection(this.#task, onEnd);
    this.#writing = new ConnectionPool([make()]);
    this.#reading = new ConnectionPool(Array.from({ length: readers }, make));
  }

  /** Of no thread yet: what is asked of it first says of which. */
  async acquireConnection(): Promise<HeldConnection> {
    return new HeldConnection(() => this.#take(this.#reading));
  }

  /** Here alone is a thread started again: whoever gets the connection has done nothing with it yet. */
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

  /** At once with the right to write: a transaction that asks for it later can be refused when it has read already. */
  async beginTransaction(held: HeldConnection, settings: TransactionSettings): Promise<void> {
    if (settings.accessMode === 'read only') return held.run('begin');
    await held.become(() => this.#take(this.#writing));
    try {
      await held.run('begin immediate');
    } catch (error) {
      // Whoever stands behind it would wait as long, one after the other, and in vain as well.
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

  /** Closes one after the other, because two that close at the same time may both leave the log beside fleet.db. */
  async destroy(): Promise<void> {
    for (const connection of [...this.#reading.all, ...this.#writing.all]) await connection.close();
  }
}
