// The sentence of an operation on the disk that failed: what was tried, on which path, and why it failed. Never has the label of the
// operation, which only its facts have.
import { basename } from 'node:path';
import { isTemporaryName } from './temporary-names.js';

/** What a system call was to do, for a sentence that begins with "cannot". */
const verbOfCall: Readonly<Record<string, string>> = {
  mkdir: 'create the directory',
  mkdtemp: 'create the directory',
  open: 'open',
  read: 'read',
  write: 'write',
  fsync: 'flush',
  fdatasync: 'flush',
  ftruncate: 'shorten',
  rename: 'rename',
  copyfile: 'copy',
  link: 'create the link',
  symlink: 'create the link',
  readlink: 'read the link',
  unlink: 'remove',
  rmdir: 'remove the directory',
  rm: 'remove',
  scandir: 'list the directory',
  opendir: 'list the directory',
  stat: 'examine',
  lstat: 'examine',
  fstat: 'examine',
  statfs: 'examine the file system of',
  access: 'access',
  chmod: 'change the mode of',
  fchmod: 'change the mode of',
  chown: 'change the owner of',
  lchown: 'change the owner of',
  fchown: 'change the owner of',
  utime: 'set the time of',
  futime: 'set the time of',
};

/**
 * @param path of the operation: the kernel does not name the file of a descriptor, and a temporary name means nothing to people
 * @returns what was tried, on which path, and why it failed, as `cannot open /x: permission denied (EACCES)`
 */
export function diskErrorText(
  error: NodeJS.ErrnoException & { readonly dest?: string },
  path: string,
): string {
  const { code = '', syscall = '', path: named, dest } = error;
  const isOwn = named === undefined || isTemporaryName(basename(named));
  const to = dest === undefined || isOwn ? '' : ` to ${dest}`;
  const subject = `${isOwn ? path : named}${to}`;
  const verb = verbOfCall[syscall];
  if (verb === undefined) return `${error.message}${error.message.includes(path) ? '' : ` (${path})`}`;
  const reason = /^[A-Z0-9]+: (.*?), [a-z]+(?: |$)/.exec(error.message)?.[1] ?? error.message;
  const also = subject.includes(path) ? '' : ` (for ${path})`;
  return `cannot ${verb} ${subject}: ${reason} (${code})${also}`;
}
