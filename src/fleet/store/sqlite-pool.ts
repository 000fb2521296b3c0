// The pool of connections of an embedded store: free connections, the queue of callers, and the placeholder that kysely gets
// until its first statement shows whether it writes. Starts no thread, and interprets no statement.
import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely';
import type { SqliteConnection } from './sqlite-connection.js';

interface Waiting {
  readonly resolve: (connection: SqliteConnection) => void;
  readonly reject: (error: unknown) => void;
}

export class ConnectionPool {
  readonly all: readonly SqliteConnection[];
  readonly #free: SqliteConnection[];
  #queue: Waiting[] = [];

  constructor(all: readonly SqliteConnection[]) {
    this.all = all;
    this.#free = [...all];
  }

  async take(): Promise<SqliteConnection> {
    return this.#free.pop() ?? new Promise((resolve, reject) => this.#queue.push({ resolve, reject }));
  }

  give(connection: SqliteConnection): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#free.push(connection);
    else next.resolve(connection);
  }

  /** Rejects all callers that wait now. Later callers wait again. */
  refuse(error: unknown): void {
    const refused = this.#queue;
    this.#queue = [];
    for (const { reject } of refused) reject(error);
  }
}

export interface TakenConnection {
  readonly connection: SqliteConnection;
  readonly pool: ConnectionPool;
}

/** A placeholder: it takes a connection for reading with its first statement, unless `become` gave it another one before. */
export class HeldConnection implements DatabaseConnection {
  readonly #takeReader: () => Promise<TakenConnection>;
  #taken: TakenConnection | undefined;

  constructor(takeReader: () => Promise<TakenConnection>) {
    this.#takeReader = takeReader;
  }

  /** Must be called before the first statement. */
  async become(take: () => Promise<TakenConnection>): Promise<void> {
    this.#taken = await take();
  }

  async executeQuery<R>(query: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<QueryResult<R>> {
    this.#taken ??= await this.#takeReader();
    return this.#taken.connection.executeQuery(query);
  }

  async run(sql: string): Promise<void> {
    await this.executeQuery({ sql, parameters: [] });
  }

  // biome-ignore lint/correctness/useYield: kysely asks for it, and nothing of ours reads in pieces
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('pages are read by their keys');
  }

  release(): void {
    this.#taken?.pool.give(this.#taken.connection);
    this.#taken = undefined;
  }
}
