// Reads the location of a store from --store or from a file, because a password in --store would be in the list of processes. Opens no
// store.
import { WritError } from '../../core/errors.js';
import { readSmallFile } from '../../platform/read-file.js';

const maxBytes = 4096;

export interface StoreFlags {
  readonly store?: string | undefined;
  readonly storeFile?: string | undefined;
}

/**
 * @param at resolves a path, as CommandContext has it
 * @returns a directory or a postgres:// URL; undefined without both flags
 * @throws WritError USAGE for both flags, or a file that cannot be read or does not contain one line
 */
export function readStoreLocation(
  { store, storeFile }: StoreFlags,
  at: (path: string) => string,
): string | undefined {
  if (storeFile === undefined) return store;
  if (store !== undefined)
    throw new WritError('USAGE', '--store and --store-file both name a store: give one of them');
  return readLineFile(at(storeFile), 'store');
}

/**
 * @param what the content of the file, for the error
 * @returns the one line of the file
 * @throws WritError USAGE for a file that cannot be read or does not contain one line
 */
export function readLineFile(path: string, what: string): string {
  const read = readSmallFile(path, { maxBytes });
  const text = read.kind === 'read' ? read.bytes.toString('utf8').trim() : '';
  if (/^[^\p{Cc}]+$/u.test(text)) return text;
  const why = read.kind === 'read' ? 'it does not contain one line' : read.why;
  // Without the content of the file, which may contain a password.
  throw new WritError('USAGE', `the file of the ${what} ${path} cannot be used: ${why}`);
}
