// Copies a tree for a rename that the file system refuses: overlayfs does not rename a directory of a lower layer. The copy
// has the modes, owners, times and links of the source, and is flushed. Without labels: durable-fs.ts is the only caller.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';

/** @param to must not exist. @throws the error of the system; WritError PATH_CROSS_DEVICE for a special file */
export function copyTree(from: string, to: string): void {
  const stats = fs.lstatSync(from);
  if (stats.isSymbolicLink()) {
    fs.symlinkSync(fs.readlinkSync(from), to);
    fs.lchownSync(to, stats.uid, stats.gid);
    return;
  }
  if (stats.isDirectory()) {
    fs.mkdirSync(to, 0o700);
    for (const name of fs.readdirSync(from)) copyTree(join(from, name), join(to, name));
  } else if (stats.isFile()) {
    fs.copyFileSync(from, to, fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE);
  } else {
    throw new WritError('PATH_CROSS_DEVICE', `${from} cannot be copied: it is a special file`, {
      facts: { path: from },
    });
  }
  settleCopy(to, stats);
}

/** Sets owner, mode and times, and flushes. Called after the content is copied, because that changes the time of a directory. */
function settleCopy(path: string, { uid, gid, mode, atime, mtime }: fs.Stats): void {
  const descriptor = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    fs.fchownSync(descriptor, uid, gid);
    fs.fchmodSync(descriptor, mode & 0o7777);
    fs.futimesSync(descriptor, atime, mtime);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
