// Opens the store of a fleet server: a directory of this machine, or a PostgreSQL database, with the same schema and queries.
// Owns the meaning of a location and the permissions of the files. Other modules own the contents of the tables.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type Dialect, Kysely, type LogEvent } from 'kysely';
import { isSystemError, WritError } from '../../core/errors.js';
import { diskErrorText } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { migrate } from './migrate.js';
import { postgresDialect } from './postgres-dialect.js';
import { sqliteDialect } from './sqlite-dialect.js';
import { openStoreDirectory } from './store-directory.js';
import type { Tables } from './tables.js';

export interface FleetStore {
  readonly db: Kysely<Tables>;
  /** `embedded`: SQLite in a directory of this machine. */
  readonly kind: 'embedded' | 'postgres';
  /** The identity of the fleet: created with the store, never changed. */
  readonly fleetId: string;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a statement waits for another process that writes. */
  readonly busyTimeoutMs?: number;
  /** Called with the text of each statement, without its values. */
  readonly onSql?: (sql: string) => void;
}

const fileName = 'fleet.db';
/** Suffixes of the other files that SQLite opens or creates by path. */
const besideIt = ['-wal', '-shm', '-journal'] as const;

/** @returns true for a URL of PostgreSQL, false for a directory */
export function isDatabaseUrl(location: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(location);
}

/**
 * Opens the store of a fleet, creates it if it is new, and updates its tables to this version.
 * @param location a directory (created when missing), or a postgres:// URL
 * @returns the open store, which the caller closes. `fleetId` is random for a new store, and the same at each later opening
 * @throws WritError FLEET_STORE_LOCATION if the directory cannot be a store, PATH_UNSAFE if other users can change it,
 *   FLEET_STORE_NEWER for the tables of a newer version; FLEET_STORE_UNREACHABLE, FLEET_STORE_DAMAGED, FLEET_STORE_BUSY
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
    const path = join(prepare(location), fileName);
    return sqliteDialect({ path, busyTimeoutMs }, { clock, log });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const facts = { actual: error.code ?? '' };
    // mkdir answers EEXIST for a file in the place of the directory.
    const isFile = error.code === 'EEXIST' || error.code === 'ENOTDIR';
    const reason = isFile
      ? `${location} is not a directory, or is below a file`
      : diskErrorText(error, location);
    const message = `the store cannot be opened: ${reason}`;
    throw new WritError('FLEET_STORE_LOCATION', message, { facts });
  }
}

/**
 * Refuses a directory with other contents, because mode 0700 on /var/lib would lock all its users out.
 * @returns the path without links: SQLite opens its files by path, so only root and this user may be able to change it
 */
function prepare(location: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(location)) throw notAStore(location.replace(/:.*/s, ''));
  const directory = openStoreDirectory(location);
  try {
    const names = directory.list();
    if (names.length > 0 && !names.includes(fileName)) throw notAStore('a directory with other contents');
    // Before any mode changes, because these files may belong to another user.
    for (const suffix of ['', ...besideIt]) directory.requireOwnFile(`${fileName}${suffix}`);
    directory.setPrivate();
    // The files that SQLite puts beside it take its mode.
    directory.ensurePrivateFile(fileName);
    return directory.path;
  } finally {
    directory.close();
  }
}

function notAStore(what: string): WritError {
  return new WritError('FLEET_STORE_LOCATION', `this is not a fleet store: ${what}`, {
    facts: { expected: 'a directory or a postgres:// URL', actual: what },
  });
}
