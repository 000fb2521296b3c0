// The thread of an embedded store: one connection, which runs one statement after the other as it is told. A flush of the
// disk stops this thread and no other. Decides nothing, and knows no table.
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

/** In place of a request: the thread closes its connection and ends. */
export type EndOfThread = 'end';

type Connection = InstanceType<typeof Database>;
type Statement = ReturnType<Connection['prepare']>;

/** Statements that came last are kept prepared: those of a batch are the same for years. */
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

/** A statement that waited in vain stays under way, libsql has no word to end it, and no later commit would pass it. */
function leave(): void {
  prepared.clear();
  connection?.close();
  connection = undefined;
}

function open(): Connection {
  if (connection !== undefined) return connection;
  const opened = new Database(path, { timeout: busyTimeoutMs });
  // FULL: a commit is on the disk before it is answered. WAL: who reads does not wait for who writes.
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = OFF'])
    opened.prepare(`PRAGMA ${pragma}`).all([]);
  connection = opened;
  return opened;
}

/** Numbers of JavaScript would be bound as floating point: beyond 2^53 nothing is exact, and nothing of ours is there. */
function bound(value: unknown): unknown {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value;
}
