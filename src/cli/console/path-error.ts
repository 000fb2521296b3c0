// Errors of the system about a path that a command was given, as a file in the place of a parent directory. Such an error
// without a code of its own would be reported as a fault of Writ.
import { isSystemError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';

const pathErrors: readonly string[] = ['ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'EEXIST', 'ENOENT'];

/** @returns a WritError DISK_* for a path that cannot be used; any other error unchanged */
export function describePathError(error: unknown): unknown {
  if (!isSystemError(error) || error.path === undefined) return error;
  return pathErrors.includes(error.code ?? '')
    ? diskError(error, { op: 'command.path', path: error.path })
    : error;
}
