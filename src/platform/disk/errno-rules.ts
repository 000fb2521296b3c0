// Maps an error number of a disk operation to an error code, and to a hint if the hint of the code does not fit. Pure.
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

/** @param path of the operation. @returns undefined if the hint of the error code fits */
export function hintOfErrno(errno: string, path: string): string | undefined {
  if (codeOfErrno[errno] !== 'DISK_DENIED') return hints[errno];
  return `\`namei -l ${path}\` shows owner and mode of each part of the path: use the user that may do this, or correct them.`;
}

/** Errors that no fault of the disk causes. */
const hints: Readonly<Record<string, string>> = {
  ENOENT: 'Make the directory that is named, or correct the path.',
  ENOTDIR: 'A part of the path is not a directory: correct the path.',
  EISDIR: 'A directory has this name: choose another name.',
  EEXIST: 'Something is there already: choose another name.',
  ENOTEMPTY:
    'Another process put files there: run the command again. Never remove the lock file of a state directory.',
  ELOOP: 'A part of the path is a link: move it away.',
  ENAMETOOLONG: 'Choose a shorter name.',
};
