// The error of a user without permission to read or write a file of a command, which is no bug of Writ. Pure functions. An
// agent reports such an error as a bug, because only the agent itself creates its files.
import { isSystemError, WritError } from '../../core/errors.js';

/**
 * @returns DISK_DENIED with the same message and facts for INTERNAL with EACCES or EPERM as its root cause; else the error as it
 *   is
 */
export function deniedOr(error: WritError): WritError {
  const cause = error.code === 'INTERNAL' ? rootOf(error) : undefined;
  if (!isSystemError(cause, 'EACCES') && !isSystemError(cause, 'EPERM')) return error;
  return new WritError('DISK_DENIED', error.message, { facts: error.facts, cause });
}

const maxCauses = 10;

function rootOf(error: Error): unknown {
  let root: unknown = error;
  for (let count = 0; count < maxCauses && root instanceof Error && root.cause !== undefined; count += 1)
    root = root.cause;
  return root;
}
