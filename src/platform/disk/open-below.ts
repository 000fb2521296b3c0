// Opens paths below an open directory, one component after the other, and follows no link. O_NOFOLLOW applies only to the last
// component of a path. Another user with write access to a directory of the path could therefore replace a directory by a link
// between listing and reading. Node has no openat: /proc/self/fd/N/NAME has the same effect.
import * as fs from 'node:fs';

/** Identifies a directory, so that another directory which later has the same path is recognized. */
export interface DirectoryIdentity {
  readonly path: string;
  readonly device: bigint;
  readonly inode: bigint;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** Follows links in `path`. @returns a descriptor for the caller to close. @throws the error of the system */
export function openDirectory(path: string): {
  readonly descriptor: number;
  readonly identity: DirectoryIdentity;
} {
  const descriptor = fs.openSync(path, O_RDONLY | O_DIRECTORY);
  const { dev, ino } = fs.fstatSync(descriptor, { bigint: true });
  return { descriptor, identity: { path, device: dev, inode: ino } };
}

/** @returns the entries of an open directory, names as bytes */
export function listOpenDirectory(descriptor: number): fs.Dirent<Buffer>[] {
  return fs.readdirSync(pathOf(descriptor), { encoding: 'buffer', withFileTypes: true });
}

/** @returns a descriptor of the directory `name`. @throws the error of the system; ENOTDIR for a link */
export function openDirectoryBelow(parent: number, name: string): number {
  return fs.openSync(`${pathOf(parent)}/${name}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/**
 * Opens a file for reading, without waiting for the writer of a FIFO.
 * @param path relative, without `..`
 * @returns a descriptor; undefined if `identity.path` is another directory by now. @throws the error of the system
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
