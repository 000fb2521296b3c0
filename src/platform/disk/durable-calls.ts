// The system calls of durable-fs.ts, each with exact modes and without following links. durable-fs.ts is the only caller:
// it adds the labels and orders the operations on different files.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { runCommand } from '../process/run-command.js';
import { removeTreeAt } from './durable-remove.js';
import { mountAtOrBelow, readMountPoints } from './mount-points.js';

/** Errors of a file system that has no hard links, or a limit on their number. */
const noLink: readonly string[] = ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'EMLINK', 'EXDEV', 'ENOSYS'];

/**
 * Creates `temporary` as a second name of `from`, or as a flushed copy where the file system allows no link. It must
 * not exist.
 * @throws the system's error
 */
export function linkOrCopy(from: string, temporary: string): void {
  try {
    fs.linkSync(from, temporary);
  } catch (error) {
    if (!isSystemError(error) || !noLink.includes(error.code ?? '')) throw error;
    fs.copyFileSync(from, temporary, fs.constants.COPYFILE_EXCL);
    flushAt(temporary, fs.constants.O_RDONLY);
  }
}

/**
 * Creates one directory with exactly this mode.
 * @throws the system's error, EEXIST where the path exists
 */
export function makeDirectory(path: string, mode: number): void {
  // Clear the umask: under 077 a mode of 0755 would become 0700, and workers could not read the policy. A chmod alone is
  // not enough, because a crash before it would leave the wrong mode for good.
  const inherited = process.umask(0);
  try {
    fs.mkdirSync(path, { mode });
  } finally {
    process.umask(inherited);
  }
  // A default access control list of the parent directory replaces the umask.
  fs.chmodSync(path, mode);
}

export interface NewFile {
  readonly mode: number;
  /** Undefined: the group of the process, or that of a directory with the set-group-ID bit. */
  readonly groupId?: number;
}

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } =
  fs.constants;

/** From <fcntl.h>, because Node does not export it. The same value on x86-64 and aarch64. */
const O_PATH = 0o10000000;

/** Changes the mode without following a link. Node has no lchmod: the path is opened with O_NOFOLLOW and changed by /proc. */
export function changeModeHere(path: string, mode: number): void {
  const descriptor = fs.openSync(path, O_PATH | O_NOFOLLOW);
  try {
    // For a link the kernel returns EOPNOTSUPP, and the target keeps its mode.
    fs.chmodSync(`/proc/self/fd/${descriptor}`, mode);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** O_EXCL and O_NOFOLLOW: a link that an attacker prepared at this path is not written through. @returns the descriptor */
export function openNewFile(path: string, options: NewFile): number {
  return owned(fs.openSync(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600), options);
}

function owned(descriptor: number, { mode, groupId }: NewFile): number {
  try {
    if (groupId !== undefined) fs.fchownSync(descriptor, -1, groupId);
    // The umask changes the mode of open(), and a change of the group may clear bits.
    fs.fchmodSync(descriptor, mode);
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
  return descriptor;
}

/** Reads through the open descriptor, because its path may name another file by now. */
const copiedFrom = (descriptor: number): string => `/proc/self/fd/${descriptor}`;
/** FICLONE shares blocks if the file system can, and copies otherwise. The copy has its own inode in both cases. */
const copyFlags = fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE;

/** A file that is open for reading. */
export interface CopiedFile {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** Borrowed for the call: a file that fits into it is copied through it. */
  readonly buffer: Buffer;
}

/** A synchronous copy of this size takes about 5 ms. */
const maxCopyAtOnceBytes = 4_000_000;

/**
 * Copies a large file in the kernel, and one above `maxCopyAtOnceBytes` outside the event loop. A file that fits into the
 * buffer is read and written: this costs half as much, because the kernel's copy opens both files again. Its copy takes no
 * more space than shared blocks.
 * @returns the descriptor of the copy, open for reading
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
      // The file became shorter: the check of the digest rejects the copy.
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
 * Removes a tree if it exists.
 * @throws WritError PATH_MOUNTED for a tree with a mount in it: a removal through a bind mount would destroy other files
 */
export function removeTree(path: string | Buffer): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  // A name that is not UTF-8 cannot be compared with the mount table: then no mount in its parent directory is accepted.
  const mountCheckPath = typeof path === 'string' ? path : dirname(path.toString());
  const mount = mountAtOrBelow(mountCheckPath, readMountPoints());
  if (mount !== undefined) {
    throw new WritError('PATH_MOUNTED', `${path} is not removed: something is mounted on ${mount}`, {
      facts: { path: path.toString(), mount },
    });
  }
  removeTreeAt(path);
}

/** @param position in bytes; undefined: after the last write. @throws the system's error */
export function writeAll(descriptor: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length; ) {
    const at = position === undefined ? null : position + done;
    done += fs.writeSync(descriptor, bytes, done, bytes.length - done, at);
  }
}

/**
 * Creates a file with exactly this mode and flushes it, but not its directory. After an error the file is removed.
 * @throws the system's error, EEXIST where the path exists; that file stays
 */
export function writeAndFlush(path: string, bytes: string | Uint8Array, mode: number): void {
  const descriptor = openNewFile(path, { mode });
  try {
    fs.writeFileSync(descriptor, bytes);
    fs.fsyncSync(descriptor);
  } catch (error) {
    // Remove the incomplete file, which this call created: under its final name it would make the next attempt fail.
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

/**
 * Appends to a file and flushes it; creates it where it is missing. Sets this mode in both cases.
 * @throws the system's error, ELOOP for a link
 */
export function appendAndFlush(path: string, text: string, mode: number): void {
  // O_NONBLOCK: without it, open() would wait forever for the reader of a FIFO with this name.
  const descriptor = fs.openSync(path, O_CREAT | O_APPEND | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, mode);
  try {
    fs.fchmodSync(descriptor, mode);
    fs.writeFileSync(descriptor, text);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Opens a file that is never removed, as a lock file. Creates it if it is absent, and keeps its content. */
export function openKeptFile(path: string, mode: number): number {
  return fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode);
}

/**
 * Replaces the content of an open file. Flushes nothing: a crash can leave it empty or with a part of the text.
 * @throws the system's error
 */
export function rewrite(descriptor: number, text: string): void {
  fs.ftruncateSync(descriptor, 0);
  writeAll(descriptor, Buffer.from(text), 0);
}

/**
 * Flushes the entries of a directory, so that created, renamed and removed names survive a power cut.
 * @throws the system's error
 */
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

/** `f_type` of a file system in memory (statfs(2), TMPFS_MAGIC), which a power cut empties. */
const tmpfsType = 0x01021994;

/** Runs one `sync -f` for the file system of this path. A tmpfs has nothing to flush, so no program is started. */
export async function flushFileSystem(op: string, path: string): Promise<void> {
  if (fs.statfsSync(path).type === tmpfsType) return;
  const result = await runCommand({ argv: ['sync', '-f', path], timeoutMs: 600_000, maxOutputBytes: 4096 });
  if (result.kind === 'exited' && result.exitCode === 0) return;
  const facts = { op, path, result };
  const text = `cannot flush the file system of ${path}: sync -f did not succeed (${result.kind})`;
  throw new WritError('DISK_FAILED', text, { facts });
}
