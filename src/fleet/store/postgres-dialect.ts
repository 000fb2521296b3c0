// The dialect for PostgreSQL: that of kysely, over a pool that translates each error of the database into an error code of Writ and
// returns 64-bit integers as numbers. Owns the bounds of the pool.
import { PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import { given } from '../../core/given.js';
import type { Logger } from '../../platform/telemetry/log.js';
import { asStoreError, storeError } from './store-errors.js';

/** Object ids of PostgreSQL's types: int8, and numeric (the type of a sum of int8). */
const wholeNumbers = new Set([20, 1700]);

/**
 * Loads the driver and creates a pool of at most 10 connections. Connects at the first query, so an unreachable
 * database fails there.
 * @param log receives a warning for each connection that ends while it is idle
 */
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
  // Without a listener, the end of an idle connection would end the process. A query on that connection fails by itself.
  const noteEnd = (error: Error): void =>
    log.warn({ reason: asStoreError(error).message }, 'a connection ended');
  pool.on('error', noteEnd);
  pool.on('connect', (client) => client.on('error', noteEnd));
  return new PostgresDialect({ pool: withCodes(pool, new StatementNames()) });
}

/**
 * Converts the text of an integer column into a number: `'42'` becomes 42, and '' becomes 0.
 * @throws WritError FLEET_STORE_DAMAGED for a text that is not a whole number, or beyond the safe integers of JavaScript
 */
export function toNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw storeError('XX001', `a number is out of range: ${text.slice(0, 40)}`);
  return value;
}

/** Prepared statements of each connection. A batch repeats the same statements, and parsing one costs more than running it. */
const maxPrepared = 200;
/** A statement is prepared after this many uses, so that a filter that is used once takes no place. */
const timesBefore = 3;
const maxCounted = 2000;

/** The names of prepared statements: the first 200 that were used more than three times. */
export class StatementNames {
  readonly #times = new Map<string, number>();
  readonly #names = new Map<string, string>();

  /** @returns undefined for a statement that is not to be prepared */
  of(sql: string): string | undefined {
    // A column that a newer server adds would break a prepared `select *` until the connection ends.
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
