// Which process a socket's file belongs to, as far as the file tells: a daemon that starts again binds it anew.
import { lstat } from 'node:fs/promises';
import { isSystemError } from '../../core/errors.js';

/** @returns what no other socket under this path has had; undefined when there is none */
export async function socketIdentity(path: string): Promise<string | undefined> {
  try {
    const { ino, mtimeMs } = await lstat(path);
    // An inode is used again; nobody writes into the file of a socket, so that its time is that of its birth.
    return `${ino}@${Math.round(mtimeMs)}`;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
