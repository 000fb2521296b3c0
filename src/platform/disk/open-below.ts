// Opens names below a directory that is open already, one component after the other, each without following a link. The kernel
// resolves a whole path at once, and O_NOFOLLOW applies to its last name alone: another user, who may write a directory on the way,
// could put a link in the place of a directory between listing and reading. Node has no openat: /proc/self/fd/N/NAME is one.
import * as fs from 'node:fs';

/** A directory as it was when it was opened first; another one that took its path is not it. */
export interface DirectoryIdentity {
  readonly path: string;
  readonly device: bigint;
  readonly inode: bigint;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** @returns a descriptor for the caller to close, and what it is. @throws the error of the system; follows a link in `path` */
export function openDirectory(path: string): {
  readonly descriptor: number;
  readonly identity: DirectoryIdentity;
} {
  const descriptor = fs.openSync(path, O_RDONLY | O_DIRECTORY);
  const { dev, ino } = fs.fstatSync(descriptor, { bigint: true });
  return { descriptor, identity: { path, device: dev, inode: ino } };
}

/** @returns what is in an open directory, names as bytes */
export function listOpenDirectory(descriptor: number): fs.Dirent<Buffer>[] {
  return fs.readdirSync(pathOf(descriptor), { encoding: 'buffer', withFileTypes: true });
}

/** @returns a descriptor of the directory `name`; a link has ENOTDIR. @throws the error of the system */
export function openDirectoryBelow(parent: number, name: string): number {
  return fs.openSync(`${pathOf(parent)}/${name}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/**
 * Opens a file for reading; does not wait for the writer of a FIFO.
 * @param path names with slashes between, none of them `..`
 * @returns a descriptor; undefined where `identity.path` is another directory now. @throws the error of the system
 */
export function openFileBelow(identity: DirectoryIdentity, path: string): number | undefined {
  const { descriptor: root, identity: now } = openDirectory(identity.path);
  let parent = root;
  try {
    if (now.device !== identity.device || now.inode !== identity.inode) return undefined;
    const names = path.split('/');
    for (const name of names.slice(0, -1)) {
      const next = openDirectoryBelow(parent, name);
      fs.closeSync(parent);
      parent = next;
    }
    return fs.openSync(`${pathOf(parent)}/${names.at(-1)}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } finally {
    fs.closeSync(parent);
  }
}

function pathOf(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`;
}
