// The system calls below durable-fs, each with exact modes and no following of links. Owns no label and no order
// of operations between files: durable-fs.ts wraps every call here, and is their only caller.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { runCommand } from '../process/run-command.js';
import { removeTreeAt } from './durable-remove.js';
import { mountAtOrBelow, readMountPoints } from './mount-points.js';

/** What a file system without hard links, or with a quota on them, answers. */
const noLink: readonly string[] = ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'EMLINK', 'EXDEV', 'ENOSYS'];

export function linkOrCopy(from: string, temporary: string): void {
  try {
    fs.linkSync(from, temporary);
  } catch (error) {
    if (!isSystemError(error) || !noLink.includes(error.code ?? '')) throw error;
    fs.copyFileSync(from, temporary, fs.constants.COPYFILE_EXCL);
    flushAt(temporary, fs.constants.O_RDONLY);
  }
}

export function makeDirectory(path: string, mode: number): void {
  // mkdir's mode passes through the umask: 0755 becomes 0700 under 077, and no worker could read the policy. Set
  // by a second call alone, a crash in between would leave that for good.
  const inherited = process.umask(0);
  try {
    fs.mkdirSync(path, { mode });
  } finally {
    process.umask(inherited);
  }
  // A default access list of the parent takes the umask's place.
  fs.chmodSync(path, mode);
}

export interface NewFile {
  readonly mode: number;
  /** Left out: the process's own, or the directory's. */
  readonly groupId?: number;
}

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } =
  fs.constants;

/** Of <fcntl.h>; Node names it nowhere. The same on x86-64 and aarch64. */
const O_PATH = 0o10000000;

/** Node has no lchmod, and Linux none for long: the name is opened without following it, and /proc leads to just that. */
export function changeModeHere(path: string, mode: number): void {
  const descriptor = fs.openSync(path, O_PATH | O_NOFOLLOW);
  try {
    // Of a link itself there is no mode to change: the kernel says EOPNOTSUPP, and leaves its target alone.
    fs.chmodSync(`/proc/self/fd/${descriptor}`, mode);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @returns the descriptor. O_EXCL and O_NOFOLLOW: even a place that somebody prepared with links is not written through. */
export function openNewFile(path: string, options: NewFile): number {
  return owned(fs.openSync(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600), options);
}

function owned(descriptor: number, { mode, groupId }: NewFile): number {
  try {
    if (groupId !== undefined) fs.fchownSync(descriptor, -1, groupId);
    // The mode of open() passes through the umask, and a change of group may clear bits.
    fs.fchmodSync(descriptor, mode);
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
  return descriptor;
}

/** By the descriptor that was looked at: its name may lead elsewhere by now. */
const copiedFrom = (descriptor: number): string => `/proc/self/fd/${descriptor}`;
/** FICLONE: shared blocks where the file system has them, a copy elsewhere. An inode of its own in both cases. */
const copyFlags = fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE;

/** A file that is open for reading. */
export interface CopiedFile {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** Lent: a file that fits goes through it. */
  readonly buffer: Buffer;
}

/** About 5 ms. */
const maxCopyAtOnceBytes = 4_000_000;

/**
 * A great file is copied by the kernel, a greater one beside the event loop. Of a small one a copy takes no more room than shared
 * blocks, and a read and a write cost half of what the kernel's way costs: two files opened again, three calls more.
 * @returns the descriptor of the copy, to read what it holds
 */
export async function copyNewFile(from: CopiedFile, path: string, options: NewFile): Promise<number> {
  const { descriptor, sizeBytes, buffer } = from;
  if (sizeBytes <= buffer.length) return copySmall(from, path, options);
  if (sizeBytes <= maxCopyAtOnceBytes) fs.copyFileSync(copiedFrom(descriptor), path, copyFlags);
  else await fs.promises.copyFile(copiedFrom(descriptor), path, copyFlags);
  return owned(fs.openSync(path, O_RDONLY | O_NOFOLLOW), options);
}

function copySmall({ descriptor, sizeBytes, buffer }: CopiedFile, path: string, options: NewFile): number {
  const copy = owned(fs.openSync(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0o600), options);
  try {
    for (let done = 0; done < sizeBytes; ) {
      const count = fs.readSync(descriptor, buffer, 0, sizeBytes - done, done);
      // Shorter than it was: what was copied has another digest.
      if (count === 0) break;
      writeAll(copy, buffer.subarray(0, count));
      done += count;
    }
  } catch (error) {
    fs.closeSync(copy);
    throw error;
  }
  return copy;
}

/**
 * Removes a tree if it is there.
 * @throws WritError PATH_MOUNTED: through a bind mount, what lies elsewhere would be removed
 */
export function removeTree(path: string | Buffer): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  // A name that is no text is found in no table of mounts: there may be none beside it either.
  const looked = typeof path === 'string' ? path : dirname(path.toString());
  const mount = mountAtOrBelow(looked, readMountPoints());
  if (mount !== undefined) {
    throw new WritError('PATH_MOUNTED', `${path} is not removed: something is mounted on ${mount}`, {
      facts: { path: path.toString(), mount },
    });
  }
  removeTreeAt(path);
}

/** @param position undefined: behind the last write */
export function writeAll(descriptor: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length; ) {
    const at = position === undefined ? null : position + done;
    done += fs.writeSync(descriptor, bytes, done, bytes.length - done, at);
  }
}

export function writeAndFlush(path: string, bytes: string | Uint8Array, mode: number): void {
  const descriptor = openNewFile(path, { mode });
  try {
    fs.writeFileSync(descriptor, bytes);
    fs.fsyncSync(descriptor);
  } catch (error) {
    // It is ours: half a file under its final name would refuse the next try.
    fs.rmSync(path, { force: true });
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** As writeAndFlush, without the flush. */
export function writeNew(path: string, bytes: string | Uint8Array, options: NewFile): void {
  const descriptor = openNewFile(path, options);
  try {
    fs.writeFileSync(descriptor, bytes);
  } finally {
    fs.closeSync(descriptor);
  }
}

export function appendAndFlush(path: string, text: string, mode: number): void {
  // O_NONBLOCK: a pipe in its place without a reader would hold up the process, which waits for it in open().
  const descriptor = fs.openSync(path, O_CREAT | O_APPEND | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, mode);
  try {
    fs.fchmodSync(descriptor, mode);
    fs.writeFileSync(descriptor, text);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Opens a file that outlives its holders, as that of a lock: made if it is absent, its content left alone. */
export function openKeptFile(path: string, mode: number): number {
  return fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode);
}

export function rewrite(descriptor: number, text: string): void {
  fs.ftruncateSync(descriptor, 0);
  writeAll(descriptor, Buffer.from(text), 0);
}

export function flushDirectoryAt(path: string): void {
  flushAt(path, O_RDONLY | O_DIRECTORY);
}

function flushAt(path: string, flags: number): void {
  const descriptor = fs.openSync(path, flags);
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** `f_type` of a file system that is only in memory (statfs(2), TMPFS_MAGIC): a power cut leaves nothing of it. */
const tmpfsType = 0x01021994;

/** One `sync -f` of the file system of this path. On a tmpfs there is nothing to flush, so no program is started. */
export async function flushFileSystem(op: string, path: string): Promise<void> {
  if (fs.statfsSync(path).type === tmpfsType) return;
  const result = await runCommand({ argv: ['sync', '-f', path], timeoutMs: 600_000, maxOutputBytes: 4096 });
  if (result.kind === 'exited' && result.exitCode === 0) return;
  const facts = { op, path, result };
  const text = `cannot flush the file system of ${path}: sync -f did not succeed (${result.kind})`;
  throw new WritError('DISK_FAILED', text, { facts });
}
