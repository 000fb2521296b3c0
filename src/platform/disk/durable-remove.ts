// Removes a tree that another user has written, and may still write: of any depth and with any names. It works through
// descriptors, so that a link which replaces a directory during the removal is not followed. Without labels.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { unlessRefused } from '../../core/errors.js';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs.constants;
/** From <fcntl.h>, because Node does not export it: a descriptor that needs no permission to read. */
const O_PATH = 0o10000000;

/**
 * Moves every directory to the top before it is emptied, so that neither the length of a path nor the number of descriptors
 * bounds the depth.
 * @throws the error of the system; the rest of the tree is left
 */
export function removeTreeAt(path: string | Buffer): void {
  const top = openDirectory(path);
  if (top === undefined) {
    unlinkIfThere(path);
    return;
  }
  try {
    emptyAll(top);
  } finally {
    fs.closeSync(top);
  }
  fs.rmdirSync(path);
}

function emptyAll(top: number): void {
  const prefix = `.${randomBytes(8).toString('hex')}-`;
  const left: Buffer[] = [];
  let moved = 0;
  unlinkFiles(top, (directory) => left.push(directory));
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const opened = openDirectory(next);
    if (opened === undefined) {
      unlinkIfThere(next);
      continue;
    }
    try {
      unlinkFiles(opened, (directory) => {
        const to = inside(top, Buffer.from(`${prefix}${moved}`));
        moved += 1;
        // A move changes the `..` entry of the directory, so this process needs the right to write it.
        const rights = openDirectory(directory);
        if (rights !== undefined) fs.closeSync(rights);
        fs.renameSync(directory, to);
        left.push(to);
      });
    } finally {
      fs.closeSync(opened);
    }
    fs.rmdirSync(next);
  }
}

function unlinkFiles(directory: number, onDirectory: (path: Buffer) => void): void {
  // As bytes, because a name may be invalid UTF-8.
  const names = fs.readdirSync(`/proc/self/fd/${directory}`, { encoding: 'buffer', withFileTypes: true });
  for (const entry of names) {
    const path = inside(directory, entry.name as unknown as Buffer);
    if (entry.isDirectory()) onDirectory(path);
    else unlinkIfThere(path);
  }
}

function inside(directory: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), name]);
}

/** @returns undefined for anything but a directory, as for a link to one */
function openDirectory(path: string | Buffer): number | undefined {
  const opened = openAs(path, O_RDONLY) ?? openAs(path, O_PATH);
  if (opened === undefined) return undefined;
  const place = `/proc/self/fd/${opened}`;
  if ((fs.fstatSync(opened).mode & 0o700) === 0o700) return opened;
  try {
    // The command may have removed these rights, and may run as the same user. Never change them by the path itself.
    fs.chmodSync(place, 0o700);
    return fs.openSync(place, O_RDONLY | O_DIRECTORY);
  } finally {
    fs.closeSync(opened);
  }
}

/** @returns undefined if the path is not a directory, or must not be read */
function openAs(path: string | Buffer, how: number): number | undefined {
  const other = ['ENOTDIR', 'ELOOP', ...(how === O_RDONLY ? ['EACCES'] : [])];
  return unlessRefused(() => fs.openSync(path, how | O_DIRECTORY | O_NOFOLLOW), other);
}

function unlinkIfThere(path: string | Buffer): void {
  unlessRefused(() => fs.unlinkSync(path), ['ENOENT']);
}
