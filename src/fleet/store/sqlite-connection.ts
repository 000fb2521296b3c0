// One connection of an embedded store, seen from this side of its thread: statements go over, rows come back, in order.
// A thread that ends fails everything that waits for it.
import { Worker } from 'node:worker_threads';
import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely';
import type { ThreadAnswer, ThreadRequest, ThreadTask } from './sqlite-thread.js';
import { storeError } from './store-errors.js';

interface Waiting {
  readonly resolve: (result: QueryResult<unknown>) => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteConnection implements DatabaseConnection {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #ended = false;

  constructor(task: ThreadTask) {
    const url = new URL('./sqlite-thread.js', import.meta.url);
    // Not with the arguments of this process: one that was started with a script as text would fail.
    this.#worker = new Worker(url, { workerData: task, execArgv: [] });
    this.#worker.on('message', (answer: ThreadAnswer) => this.#settle(answer));
    this.#worker.on('error', (error) => this.#end(error.message));
    this.#worker.on('exit', () => this.#end('the thread of the store ended'));
    // What waits for an answer holds the process; a thread with nothing to do does not.
    this.#worker.unref();
  }

  async executeQuery<R>({
    sql,
    parameters,
  }: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<QueryResult<R>> {
    if (this.#ended) throw storeError('CLOSED', 'the store is closed');
    const id = ++this.#lastId;
    const result = await new Promise<QueryResult<unknown>>((resolve, reject) => {
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, sql, parameters } satisfies ThreadRequest);
    });
    return result as QueryResult<R>;
  }

  // biome-ignore lint/correctness/useYield: kysely asks for it, and nothing of ours reads in pieces
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('pages are read by their keys');
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #settle(answer: ThreadAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ('failed' in answer) waiting?.reject(storeError(answer.failed.code, answer.failed.message));
    else if (answer.rows.some(isBeyond))
      waiting?.reject(storeError('SQLITE_CORRUPT', 'a number is out of range'));
    else waiting?.resolve({ rows: [...answer.rows], numAffectedRows: BigInt(answer.changes) });
  }

  #end(reason: string): void {
    this.#ended = true;
    for (const { reject } of this.#waiting.values()) reject(storeError('CLOSED', reason));
    this.#waiting.clear();
  }
}

/** A whole number that JavaScript cannot say exactly is none of ours. */
function isBeyond(row: unknown): boolean {
  return Object.values(row as object).some(
    (value) => Number.isInteger(value) && !Number.isSafeInteger(value),
  );
}
