// PostgreSQL as a dialect of kysely: its own, over a pool of which every refusal has a code of ours, and whose whole
// numbers of 64 bits are numbers. Owns the bounds of the pool.
import { PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import { given } from '../../core/given.js';
import type { Logger } from '../../platform/telemetry/log.js';
import { asStoreError, storeError } from './store-errors.js';

/** Type numbers of PostgreSQL: int8, and numeric, which is what a sum of int8 is. */
const wholeNumbers = new Set([20, 1700]);

export async function postgresDialect(url: string, log: Logger): Promise<PostgresDialect> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'writ-fleet',
    max: 10,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    statement_timeout: 30_000,
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        wholeNumbers.has(type) ? toNumber : pg.types.getTypeParser(type, format as 'text'),
    },
  });
  // A connection ended, at rest or amid a query, which says so itself: without a listener the process would end.
  const noteEnd = (error: Error): void =>
    log.warn({ reason: asStoreError(error).message }, 'a connection ended');
  pool.on('error', noteEnd);
  pool.on('connect', (client) => client.on('error', noteEnd));
  return new PostgresDialect({ pool: withCodes(pool, new StatementNames()) });
}

/** @throws FLEET_STORE_DAMAGED: a number that JavaScript cannot say exactly is not one of ours */
export function toNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw storeError('XX001', `a number is out of range: ${text.slice(0, 40)}`);
  return value;
}

/** As many as each connection keeps prepared: those of a batch are the same for years, and reading their text costs more than they do. */
const maxPrepared = 200;
/** So that a filter that somebody thought of once takes no place. */
const timesBefore = 3;
const maxCounted = 2000;

/** Which statements are prepared under a name: the first ones that came again and again. */
export class StatementNames {
  readonly #times = new Map<string, number>();
  readonly #names = new Map<string, string>();

  of(sql: string): string | undefined {
    // A column that another server's newer version adds would break it for as long as the connection lives.
    if (sql.includes('*')) return undefined;
    const name = this.#names.get(sql);
    if (name !== undefined || this.#names.size >= maxPrepared) return name;
    const times = (this.#times.get(sql) ?? 0) + 1;
    if (this.#times.size >= maxCounted) this.#times.clear();
    this.#times.set(sql, times);
    if (times > timesBefore) this.#names.set(sql, `writ_${this.#names.size + 1}`);
    return this.#names.get(sql);
  }
}

function withCodes(pool: Pool, names: StatementNames): PostgresPool {
  const connect = async (): Promise<PostgresPoolClient> => {
    try {
      return clientWithCodes(await pool.connect(), names);
    } catch (error) {
      throw asStoreError(error);
    }
  };
  return { connect, end: () => pool.end() };
}

function clientWithCodes(client: PoolClient, names: StatementNames): PostgresPoolClient {
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    try {
      return await client.query({
        text: sql,
        values: parameters as unknown[],
        ...given({ name: names.of(sql) }),
      });
    } catch (error) {
      throw asStoreError(error);
    }
  };
  return { query, release: () => client.release() } as PostgresPoolClient;
}
