// Removes a tree in which somebody else has written, and may write yet: of any depth, under any names, and through
// descriptors, so that a link which takes the place of a directory meanwhile leads nowhere. Owns no label.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { unlessRefused } from '../../core/errors.js';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs.constants;
/** Node has no name for it: a descriptor that takes no right to read. */
const O_PATH = 0o10000000;

/**
 * Moves every directory up to the top before it is emptied: then neither the longest path nor the number of
 * descriptors bounds the depth.
 * @throws the system's error; what could not be removed is left
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
        // Of a directory that moves, its own entry for its parent changes: it must be ours to write.
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
  // As bytes: a name need not be UTF-8.
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

/** @returns undefined for what is no directory, as a link to one */
function openDirectory(path: string | Buffer): number | undefined {
  const opened = openAs(path, O_RDONLY) ?? openAs(path, O_PATH);
  if (opened === undefined) return undefined;
  const place = `/proc/self/fd/${opened}`;
  if ((fs.fstatSync(opened).mode & 0o700) === 0o700) return opened;
  try {
    // Its maker may have taken these rights from everybody, and we may be the same user. Never by the path itself.
    fs.chmodSync(place, 0o700);
    return fs.openSync(place, O_RDONLY | O_DIRECTORY);
  } finally {
    fs.closeSync(opened);
  }
}

/** @returns undefined where it is no directory, or must not be read */
function openAs(path: string | Buffer, how: number): number | undefined {
  const other = ['ENOTDIR', 'ELOOP', ...(how === O_RDONLY ? ['EACCES'] : [])];
  return unlessRefused(() => fs.openSync(path, how | O_DIRECTORY | O_NOFOLLOW), other);
}

function unlinkIfThere(path: string | Buffer): void {
  unlessRefused(() => fs.unlinkSync(path), ['ENOENT']);
}
