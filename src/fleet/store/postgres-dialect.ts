// PostgreSQL as a dialect of kysely: its own, over a pool of which every refusal has a code of ours, and whose whole
// numbers of 64 bits are numbers. Owns the bounds of the pool.
import { PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import type { Pool, PoolClient } from 'pg';
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
  return new PostgresDialect({ pool: withCodes(pool) });
}

/** @throws FLEET_STORE_DAMAGED: a number that JavaScript cannot say exactly is not one of ours */
export function toNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw storeError('XX001', `a number is out of range: ${text.slice(0, 40)}`);
  return value;
}

function withCodes(pool: Pool): PostgresPool {
  const connect = async (): Promise<PostgresPoolClient> => {
    try {
      return clientWithCodes(await pool.connect());
    } catch (error) {
      throw asStoreError(error);
    }
  };
  return { connect, end: () => pool.end() };
}

function clientWithCodes(client: PoolClient): PostgresPoolClient {
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    try {
      return await client.query(sql, parameters as unknown[]);
    } catch (error) {
      throw asStoreError(error);
    }
  };
  return { query, release: () => client.release() } as PostgresPoolClient;
}
