// Checks whether a required directory exists, and changes nothing. The error names a file that has its path, and the fix.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { unlessRefused, WritError } from '../../core/errors.js';
import { lstatIfPresent } from '../read-file.js';

/**
 * @returns true for a directory or a link to one; false if nothing has this path
 * @throws WritError DISK_FAILED if anything else has this path, or the path of a directory above it
 */
export function isDirectoryPresent(op: string, path: string): boolean {
  if (leadsToDirectory(path)) return true;
  if (lstatIfPresent(path) !== undefined) throw notADirectory(op, path);
  const parent = dirname(path);
  if (parent !== path) isDirectoryPresent(op, parent);
  return false;
}

function leadsToDirectory(path: string): boolean {
  return unlessRefused(() => fs.statSync(path).isDirectory(), ['ENOENT', 'ENOTDIR', 'ELOOP']) === true;
}

/** The hint advises to move a file, a FIFO or a dangling link away, because its purpose is unknown; never a device. */
function notADirectory(op: string, path: string): WritError {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  const isDevice = stats?.isCharacterDevice() === true || stats?.isBlockDevice() === true;
  return new WritError('DISK_FAILED', `${path} is not a directory`, {
    facts: { op, path, errno: 'ENOTDIR' },
    hint: isDevice
      ? 'Choose another path: this one is a device.'
      : `Move it away: \`mv ${path} ${path}.damaged\`, or choose another path. The directory is created again.`,
  });
}
