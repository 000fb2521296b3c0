// What an error number of the system means for an operation on the disk: its code, and its hint where that of the code is
// another one. Pure.
import type { ErrorCode } from '../../core/errors.js';

export const codeOfErrno: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_QUOTA',
  EROFS: 'DISK_READ_ONLY',
  EACCES: 'DISK_DENIED',
  EPERM: 'DISK_DENIED',
  EXDEV: 'PATH_CROSS_DEVICE',
  EMFILE: 'TOO_MANY_FILES',
  ENFILE: 'TOO_MANY_FILES',
};

/** @returns the hint of an error number, where that of its code does not name what to do. @param path of the operation */
export function hintOfErrno(errno: string, path: string): string | undefined {
  if (codeOfErrno[errno] !== 'DISK_DENIED') return hints[errno];
  return `\`namei -l ${path}\` shows owner and mode of each part of the path: use the user that may do this, or correct them.`;
}

/** Not a matter of the disk: these have a hint of their own. */
const hints: Readonly<Record<string, string>> = {
  ENOENT: 'Make the directory that is named, or correct the path.',
  ENOTDIR: 'A part of the path is not a directory: correct the path.',
  EISDIR: 'A directory is in the way: choose another name.',
  EEXIST: 'Something is there already: choose another name.',
  ENOTEMPTY:
    'Another process put files there: run the command again. Never remove the lock file of a state directory.',
  ELOOP: 'A link is in the way: move it away.',
  ENAMETOOLONG: 'Choose a shorter name.',
};
