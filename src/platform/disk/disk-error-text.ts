// The message of a failed disk operation: the action, the path and the reason. The label of the operation is a fact of the
// error and never a part of its message.
import { basename } from 'node:path';
import { isTemporaryName } from './temporary-names.js';

/** The action of each system call, for a sentence that begins with "cannot". */
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
 * @param path of the operation. It replaces a temporary name, and names the file where the kernel reports only a descriptor
 * @returns a message as `cannot open /x: permission denied (EACCES)`
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
