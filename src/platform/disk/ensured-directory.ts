// Whether a directory that has to be there is there. Looks only: what is in its way is named, with the way out.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { unlessRefused, WritError } from '../../core/errors.js';
import { lookAt } from '../read-file.js';

/**
 * @returns false where nothing has the name; a link to a directory is one
 * @throws WritError DISK_FAILED for anything else that has the name, or the name of a directory above it
 */
export function isDirectoryThere(op: string, path: string): boolean {
  if (leadsToDirectory(path)) return true;
  if (lookAt(path) !== undefined) throw inTheWay(op, path);
  const parent = dirname(path);
  if (parent !== path) isDirectoryThere(op, parent);
  return false;
}

function leadsToDirectory(path: string): boolean {
  return unlessRefused(() => fs.statSync(path).isDirectory(), ['ENOENT', 'ENOTDIR', 'ELOOP']) === true;
}

/** A file, a FIFO, or a link without a target: what it was made for is not known. A device of the system stays where it is. */
function inTheWay(op: string, path: string): WritError {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  const isDevice = stats?.isCharacterDevice() === true || stats?.isBlockDevice() === true;
  return new WritError('DISK_FAILED', `${path} is not a directory`, {
    facts: { op, path, errno: 'ENOTDIR' },
    hint: isDevice
      ? 'Choose another path: this one is a device.'
      : `Move it away: \`mv ${path} ${path}.damaged\`, or choose another path. The directory is created again.`,
  });
}
