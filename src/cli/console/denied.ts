// What a person is told who may not read or write what a command needs: that is no bug of ours. Pure; an agent takes such an
// error for one, since nobody but itself is to have made its files.
import { isSystemError, WritError } from '../../core/errors.js';

/** @returns DISK_DENIED with the same words and facts where the system denied something, else the error as it is */
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
