// What a database's refusal means: one code of ours for whatever SQLite or PostgreSQL says, with their own code beside it.
// Never quotes a location, which may hold a password.
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';

/** Codes of SQLite and SQLSTATE by what they mean; the first that matches decides. */
const meanings: readonly (readonly [RegExp, ErrorCode])[] = [
  [/^SQLITE_(?:BUSY|LOCKED)|^55P03$|^40001$|^40P01$/, 'FLEET_STORE_BUSY'],
  [/^SQLITE_(?:CORRUPT|NOTADB)|^XX00[12]$/, 'FLEET_STORE_DAMAGED'],
  [
    /^SQLITE_(?:FULL|READONLY|IOERR)|^53100$|^25006$|^58030$|^(?:ENOSPC|EDQUOT|EROFS|EIO)$/,
    'FLEET_STORE_UNWRITABLE',
  ],
  // Connections, shutdown, what it has too little of, no answer within the bound of a statement, and what a socket says.
  [/^08|^57P|^57014$|^53[0234]00$|^E[A-Z]+$|^SQLITE_CANTOPEN|^CLOSED$/, 'FLEET_STORE_UNREACHABLE'],
];

/** What a person does about refusals of PostgreSQL that are mistakes of its setup or of the URL; docs/postgresql.md has the setup. */
const hints: readonly (readonly [RegExp, string])[] = [
  [
    /^28P01$|password must be a string/,
    'The URL of the store has a wrong password, or none: correct it in the file of --store-file.',
  ],
  [/^28000$/, 'PostgreSQL does not let this user in: check the user in the URL, and pg_hba.conf.'],
  [/^3D000$/, 'Create the database, as a superuser: createdb --owner writ_fleet writ_fleet'],
  [/^42501$/, 'Make the user in the URL the owner of the database and of its tables.'],
];

/** @param code SQLite's, SQLSTATE or a system call's; '' where the driver said none */
export function storeError(code: string, message: string): WritError {
  const found = meanings.find(([pattern]) => pattern.test(code))?.[1] ?? 'FLEET_STORE_FAILED';
  const hint = hints.find(([pattern]) => pattern.test(code) || pattern.test(message))?.[1];
  return new WritError(found, message.slice(0, 500), { facts: { actual: code }, ...given({ hint }) });
}

/** What a driver threw; an error of ours stays what it is. */
export function asStoreError(error: unknown): WritError {
  if (isWritError(error)) return error;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  // pg says that a connection ended, or could not be had in time, without any code.
  const ended = /terminated|timeout|ended|not queryable/i.test(text) ? 'CLOSED' : '';
  return storeError(typeof code === 'string' && code !== '' ? code : ended, text);
}

/** A row of this key is there already. */
export function isDuplicate(error: unknown): boolean {
  return /^SQLITE_CONSTRAINT|^23505$/.test(causeCode(error));
}

/** Somebody else was in the way: the same transaction may pass the next time. */
export function isPassing(error: unknown): boolean {
  return isWritError(error) && error.code === 'FLEET_STORE_BUSY';
}

/** The embedded store was locked for as long as a statement waits. */
export function hasWaited(error: unknown): boolean {
  return isPassing(error) && causeCode(error).startsWith('SQLITE_BUSY');
}

function causeCode(error: unknown): string {
  return isWritError(error) ? String(error.facts.actual ?? '') : '';
}
