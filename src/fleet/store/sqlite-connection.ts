// One connection of an embedded store, from the side of the caller: it sends statements to a thread, and receives rows in the same order.
// After the end of the thread each waiting and each further statement fails until `restart`. A restart within a transaction is not
// allowed: the statements after the end would be committed without those before it.
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

  /** @param onEnd called when the thread ended without `close` */
  constructor(task: ThreadTask, onEnd: (reason: string) => void) {
    this.#task = task;
    this.#onEnd = onEnd;
  }

  /** True when the thread ended without `close`. Its open transaction was rolled back, as after a kill of the process. */
  get isLost(): boolean {
    return this.#ended && !this.#closed;
  }

  /** Makes the next statement start a new thread. Not allowed within a transaction that began on the lost thread. */
  restart(): void {
    this.#worker = undefined;
    this.#ended = false;
  }

  #start(): Worker {
    const url = new URL('./sqlite-thread.js', import.meta.url);
    // Without the arguments of this process: with `node -e` they hold a script, and the thread would fail.
    const worker = new Worker(url, { workerData: this.#task, execArgv: [] });
    worker.on('message', (answer: ThreadAnswer) => this.#settle(answer));
    worker.on('error', (error) =>
      this.#end(worker, isMissingPart(error) ? replacedProgram().message : error.message),
    );
    worker.on('exit', () => this.#end(worker, 'the thread of the store ended'));
    // A thread keeps the process alive only while a statement waits for its answer.
    worker.unref();
    return worker;
  }

  async executeQuery<R>({
    sql,
    parameters,
  }: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<QueryResult<R>> {
    if (this.#closed) throw storeError('CLOSED', 'the store is closed');
    if (this.#ended) throw storeError('CLOSED', 'the thread of the store ended');
    // The thread starts with the first statement: a short command uses one or two connections, and each thread costs processor time.
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

  /** Resolves when all statements have ended, because libsql aborts the process when a statement is terminated. */
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
    // A thread that failed also emits `exit`, perhaps after a restart.
    if (worker !== this.#worker || this.#ended) return;
    this.#ended = true;
    if (!this.#closed) this.#onEnd(reason);
    for (const { reject } of this.#waiting.values()) reject(storeError('CLOSED', reason));
    this.#waiting.clear();
  }
}

/** True for a row with a whole number beyond the safe integers of JavaScript: Writ writes none. */
function isBeyond(row: unknown): boolean {
  return Object.values(row as object).some(
    (value) => Number.isInteger(value) && !Number.isSafeInteger(value),
  );
}
