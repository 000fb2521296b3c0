// The thread of an embedded store: one connection that runs the requested statements one after the other. A flush of the disk
// blocks this thread only. Decides nothing, and knows no table.
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'libsql';

export interface ThreadTask {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

export interface ThreadRequest {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export type ThreadAnswer =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly id: number; readonly failed: { readonly code: string; readonly message: string } };

/** Sent in place of a request: the thread closes its connection and ends. */
export type EndOfThread = 'end';

type Connection = InstanceType<typeof Database>;
type Statement = ReturnType<Connection['prepare']>;

/** The statements that were used last stay prepared, because a batch repeats the same statements. */
const maxStatements = 256;

const { path, busyTimeoutMs } = workerData as ThreadTask;
const prepared = new Map<string, Statement>();
let connection: Connection | undefined;

parentPort?.on('message', (request: ThreadRequest | EndOfThread) => {
  if (request !== 'end') return parentPort?.postMessage(answerTo(request));
  leave();
  parentPort?.close();
});

function answerTo({ id, sql, parameters }: ThreadRequest): ThreadAnswer {
  try {
    const statement = statementOf(sql);
    const values = parameters.map(bound);
    if (statement.reader) return { id, rows: statement.all(values), changes: 0 };
    return { id, rows: [], changes: statement.run(values).changes };
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message?: string };
    if (code?.startsWith('SQLITE_BUSY') === true && connection?.inTransaction === false) leave();
    return { id, failed: { code: code || 'SQLITE_CANTOPEN', message: message ?? String(error) } };
  }
}

function statementOf(sql: string): Statement {
  const statement = prepared.get(sql) ?? open().prepare(sql);
  prepared.delete(sql);
  prepared.set(sql, statement);
  const [oldest] = prepared.keys();
  if (prepared.size > maxStatements && oldest !== undefined) prepared.delete(oldest);
  return statement;
}

/** Closes the connection. After SQLITE_BUSY libsql keeps the statement open, cannot reset it, and each later commit would fail. */
function leave(): void {
  prepared.clear();
  connection?.close();
  connection = undefined;
}

function open(): Connection {
  if (connection !== undefined) return connection;
  const opened = new Database(path, { timeout: busyTimeoutMs });
  // FULL: a commit is on the disk before its answer. WAL: readers do not wait for the writer.
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = OFF'])
    opened.prepare(`PRAGMA ${pragma}`).all([]);
  connection = opened;
  return opened;
}

/** Binds a whole number as an integer, because libsql binds a number of JavaScript as floating point. */
function bound(value: unknown): unknown {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value;
}
