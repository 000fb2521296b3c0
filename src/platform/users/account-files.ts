// Reads /etc/passwd and /etc/group as rows of fields, because Node has no getpwnam and no getgrnam. Owns their bound. A missing or
// longer file has no rows.
import { WritError } from '../../core/errors.js';
import { readSmallFile } from '../read-file.js';

const maxBytes = 1_000_000;

/** @returns the fields of each line, in order */
export function accountRows(file: string): readonly (readonly string[])[] {
  const read = readSmallFile(file, { maxBytes });
  const text = read.kind === 'read' ? read.bytes.toString('utf8') : '';
  return text.split('\n').map((line) => line.split(':'));
}

/** @returns whether the text is a number of a user or group (1 to 10 digits, any value), and not a name */
export function isAccountId(text: string): boolean {
  return /^\d{1,10}$/.test(text);
}

/** @returns the error CONFIG_INVALID for a name that this host does not know */
export function noAccount(what: 'user' | 'group', name: string): WritError {
  const hint = `Create the ${what}, or give its number.`;
  const facts = { [what]: name };
  return new WritError('CONFIG_INVALID', `there is no ${what} ${name} on this host`, { facts, hint });
}
