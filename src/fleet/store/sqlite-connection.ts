// One connection of an embedded store, seen from this side of its thread: statements go over, rows come back, in order.
// A thread that ends fails everything that waits for it, and all that follows until somebody starts it again, which is never
// done amid a transaction: what came behind the end would be committed without what came before it.
import { Worker } from 'node:worker_threads';
import type { CompiledQuery, QueryResult } from 'kysely';
import { isMissingPart, replacedProgram } from '../../core/errors.js';
import type { EndOfThread, ThreadAnswer, ThreadRequest, ThreadTask } from './sqlite-thread.js';
import { storeError } from './store-errors.js';

interface Waiting {
  readonly resolve: (result: QueryResult<unknown>) => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteConnection {
  readonly #task: ThreadTask;
  readonly #onEnd: (reason: string) => void;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastId = 0;
  #ended = false;
  #closed = false;

  /** @param onEnd hears of a thread that ended by itself */
  constructor(task: ThreadTask, onEnd: (reason: string) => void) {
    this.#task = task;
    this.#onEnd = onEnd;
  }

  /** The thread ended by itself: whatever was under way was rolled back, as at a kill of the process. */
  get isLost(): boolean {
    return this.#ended && !this.#closed;
  }

  /** The next statement starts a new thread; never while a transaction of the lost one may still go on. */
  restart(): void {
    this.#worker = undefined;
    this.#ended = false;
  }

  #start(): Worker {
    const url = new URL('./sqlite-thread.js', import.meta.url);
    // Not with the arguments of this process: one that was started with a script as text would fail.
    const worker = new Worker(url, { workerData: this.#task, execArgv: [] });
    worker.on('message', (answer: ThreadAnswer) => this.#settle(answer));
    worker.on('error', (error) =>
      this.#end(worker, isMissingPart(error) ? replacedProgram().message : error.message),
    );
    worker.on('exit', () => this.#end(worker, 'the thread of the store ended'));
    // What waits for an answer holds the process; a thread with nothing to do does not.
    worker.unref();
    return worker;
  }

  async executeQuery<R>({
    sql,
    parameters,
  }: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<QueryResult<R>> {
    if (this.#closed) throw storeError('CLOSED', 'the store is closed');
    if (this.#ended) throw storeError('CLOSED', 'the thread of the store ended');
    // A short command asks one or two of the connections, and each thread costs processor time.
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = ++this.#lastId;
    const result = await new Promise<QueryResult<unknown>>((resolve, reject) => {
      if (this.#waiting.size === 0) worker.ref();
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, sql, parameters } satisfies ThreadRequest);
    });
    return result as QueryResult<R>;
  }

  /** Resolves when the statements so far have ended: one that is ended from outside aborts the process in libsql. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    if (worker === undefined || this.#ended) return;
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    worker.ref();
    worker.postMessage('end' satisfies EndOfThread);
    await ended;
  }

  #settle(answer: ThreadAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0 && !this.#closed) this.#worker?.unref();
    if ('failed' in answer) waiting?.reject(storeError(answer.failed.code, answer.failed.message));
    else if (answer.rows.some(isBeyond))
      waiting?.reject(storeError('SQLITE_CORRUPT', 'a number is out of range'));
    else waiting?.resolve({ rows: [...answer.rows], numAffectedRows: BigInt(answer.changes) });
  }

  #end(worker: Worker, reason: string): void {
    // One that failed also exits, and may have a successor by then.
    if (worker !== this.#worker || this.#ended) return;
    this.#ended = true;
    if (!this.#closed) this.#onEnd(reason);
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
