// System errors about a path argument, such as a file in place of a parent directory. Without a code of Writ, such an error would be
// reported as a bug.
import { isSystemError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';

const pathErrors: readonly string[] = ['ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'ENOENT'];

/** @returns a WritError DISK_* for a path of a system error that a person can correct; any other error unchanged */
export function describePathError(error: unknown): unknown {
  if (!isSystemError(error) || error.path === undefined) return error;
  return pathErrors.includes(error.code ?? '')
    ? diskError(error, { op: 'command.path', path: error.path })
    : error;
}
