// Whether a directory that has to be there is there. Looks only: what is in its way is named, with the way out.
import * as fs from 'node:fs';
import { unlessRefused, WritError } from '../../core/errors.js';
import { lookAt } from '../read-file.js';

/** @returns false where nothing has the name; a link to a directory is one. @throws WritError DISK_FAILED for anything else */
export function isDirectoryThere(op: string, path: string): boolean {
  if (leadsToDirectory(path)) return true;
  if (lookAt(path) !== undefined) throw inTheWay(op, path);
  return false;
}

function leadsToDirectory(path: string): boolean {
  return unlessRefused(() => fs.statSync(path).isDirectory(), ['ENOENT', 'ENOTDIR', 'ELOOP']) === true;
}

/** A file, a FIFO, or a link to nowhere: where it was to lead, nobody knows. */
function inTheWay(op: string, path: string): WritError {
  return new WritError('DISK_FAILED', `${path} is not a directory`, {
    facts: { op, path, errno: 'ENOTDIR' },
    hint: `Move it away: \`mv ${path} ${path}.damaged\`. The directory is created again.`,
  });
}
