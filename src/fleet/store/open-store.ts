// Opens the store of a fleet server: a directory of this machine, or a PostgreSQL. Both have one schema and one set of
// queries. Owns what a location means and who may read the files; what is in the tables is their rooms'.
import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Dialect, Kysely, type LogEvent } from 'kysely';
import { isSystemError, WritError } from '../../core/errors.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { migrate } from './migrate.js';
import { postgresDialect } from './postgres-dialect.js';
import { sqliteDialect } from './sqlite-dialect.js';
import type { Tables } from './tables.js';

export interface FleetStore {
  readonly db: Kysely<Tables>;
  /** `embedded`: in a directory. */
  readonly kind: 'embedded' | 'postgres';
  /** Which fleet this is: made with the store, and never changed. */
  readonly fleetId: string;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a statement waits for another process that writes. */
  readonly busyTimeoutMs?: number;
  /** Hears each statement, without its values. */
  readonly onSql?: (sql: string) => void;
}

const fileName = 'fleet.db';

/** @returns whether a store is a database server's, and no directory */
export function isDatabaseUrl(location: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(location);
}

/**
 * @param location a directory (created when missing), or a postgres:// URL
 * @throws FLEET_STORE_LOCATION, FLEET_STORE_NEWER, FLEET_STORE_UNREACHABLE, FLEET_STORE_DAMAGED, FLEET_STORE_BUSY
 */
export async function openFleetStore(location: string, options: StoreOptions): Promise<FleetStore> {
  const kind = isDatabaseUrl(location) ? 'postgres' : 'embedded';
  const dialect =
    kind === 'postgres' ? await postgresDialect(location, options.log) : embedded(location, options);
  const { onSql } = options;
  const log = onSql === undefined ? {} : { log: ({ query }: LogEvent): void => onSql(query.sql) };
  const db = new Kysely<Tables>({ dialect, ...log });
  try {
    const nowMs = options.clock.nowMs();
    await migrate(db.withTables(), { id: randomUUID(), nowMs });
    const { id } = await db.selectFrom('fleet').select('id').executeTakeFirstOrThrow();
    return { db, kind, fleetId: id, close: () => db.destroy() };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

function embedded(location: string, { busyTimeoutMs = 2_500, clock, log }: StoreOptions): Dialect {
  try {
    prepare(location);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const facts = { actual: error.code ?? '' };
    throw new WritError('FLEET_STORE_LOCATION', `the store ${location}: ${error.message}`, { facts });
  }
  return sqliteDialect({ path: join(location, fileName), busyTimeoutMs }, { clock, log });
}

/** A directory that holds something else is somebody else's: closing /var/lib to all others would be its end. */
function prepare(directory: string): void {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(directory)) throw notAStore(directory.replace(/:.*/s, ''));
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const names = readdirSync(directory);
  if (names.length > 0 && !names.includes(fileName)) throw notAStore('a directory with other contents');
  chmodSync(directory, 0o700);
  // The files that SQLite puts beside it take its mode.
  closeSync(openSync(join(directory, fileName), 'a', 0o600));
  chmodSync(join(directory, fileName), 0o600);
}

function notAStore(what: string): WritError {
  return new WritError('FLEET_STORE_LOCATION', `this is not a fleet store: ${what}`, {
    facts: { expected: 'a directory or a postgres:// URL', actual: what },
  });
}
