// Translates errors of SQLite and PostgreSQL into error codes of Writ; the code of the database stays in the facts. Never quotes
// a location, because it may hold a password.
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';

/** Error codes of Writ by the code of SQLite, an SQLSTATE, or an errno; the first match decides. */
const meanings: readonly (readonly [RegExp, ErrorCode])[] = [
  [/^SQLITE_(?:BUSY|LOCKED)|^55P03$|^40001$|^40P01$/, 'FLEET_STORE_BUSY'],
  [/^SQLITE_(?:CORRUPT|NOTADB)|^XX00[12]$/, 'FLEET_STORE_DAMAGED'],
  [
    /^SQLITE_(?:FULL|READONLY|IOERR)|^53100$|^25006$|^58030$|^(?:ENOSPC|EDQUOT|EROFS|EIO)$/,
    'FLEET_STORE_UNWRITABLE',
  ],
  // Connection errors (08), shutdown (57P), statement timeout (57014), missing resources (53), and errors of a socket.
  [/^08|^57P|^57014$|^53[0234]00$|^E[A-Z]+$|^SQLITE_CANTOPEN|^CLOSED$/, 'FLEET_STORE_UNREACHABLE'],
];

/** Hints for errors of PostgreSQL that a wrong setup or a wrong URL causes; docs/postgresql.md has the setup. */
const hints: readonly (readonly [RegExp, string])[] = [
  [
    /^28P01$|password must be a string/,
    'The URL of the store has a wrong password, or none: correct it in the file of --store-file.',
  ],
  [/^28000$/, 'PostgreSQL does not let this user in: check the user in the URL, and pg_hba.conf.'],
  [/^3D000$/, 'Create the database, as a superuser: createdb --owner writ_fleet writ_fleet'],
  [/^42501$/, 'Make the user in the URL the owner of the database and of its tables.'],
];

/**
 * Creates the error for a failure of the database. Does not throw it.
 * @param code of SQLite, an SQLSTATE, or an errno; '' where the driver has none
 * @returns a WritError with at most 500 characters of the message, the code in `facts.actual`, and a hint where a wrong setup
 *   of PostgreSQL is the cause. Its code is FLEET_STORE_BUSY, FLEET_STORE_DAMAGED, FLEET_STORE_UNWRITABLE or
 *   FLEET_STORE_UNREACHABLE by the first pattern that matches, else FLEET_STORE_FAILED. `SQLITE_BUSY` becomes FLEET_STORE_BUSY
 */
export function storeError(code: string, message: string): WritError {
  const found = meanings.find(([pattern]) => pattern.test(code))?.[1] ?? 'FLEET_STORE_FAILED';
  const hint = hints.find(([pattern]) => pattern.test(code) || pattern.test(message))?.[1];
  return new WritError(found, message.slice(0, 500), { facts: { actual: code }, ...given({ hint }) });
}

/** Translates an error of a driver. @returns a WritError unchanged */
export function asStoreError(error: unknown): WritError {
  if (isWritError(error)) return error;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  // The errors of pg for a lost connection, and for a timeout of the pool, have no code.
  const ended = /terminated|timeout|ended|not queryable/i.test(text) ? 'CLOSED' : '';
  return storeError(typeof code === 'string' && code !== '' ? code : ended, text);
}

/** True when a row with this key exists already. */
export function isDuplicate(error: unknown): boolean {
  return /^SQLITE_CONSTRAINT|^23505$/.test(causeCode(error));
}

/** True for a conflict with another transaction or process: the same transaction may succeed when it runs again. */
export function isPassing(error: unknown): boolean {
  return isWritError(error) && error.code === 'FLEET_STORE_BUSY';
}

/** True when the embedded store stayed locked for the whole time that a statement waits. */
export function hasWaited(error: unknown): boolean {
  return isPassing(error) && causeCode(error).startsWith('SQLITE_BUSY');
}

function causeCode(error: unknown): string {
  return isWritError(error) ? String(error.facts.actual ?? '') : '';
}
