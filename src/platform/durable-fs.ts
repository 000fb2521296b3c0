// The only place that renames, links and flushes. Every operation carries a label, so that a test can fail
// it or kill the process right before or after it. Order is write, flush, rename, flush the directory.
// Synchronous on purpose: strace and the crash tests then see the calls of a swap in one thread, in order.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { type ErrorCode, isSystemError, WritError } from '../core/errors.js';
import { runCommand } from './run-command.js';

export interface FileOperation {
  /** Who does it and why, as `swap.link`; steps inside one operation add a suffix, as `swap.link:rename`. */
  readonly op: string;
  readonly path: string;
}

/** A test's way in: what it throws takes the place of the operation's own error. */
export interface OperationObserver {
  before?(operation: FileOperation): void;
  after?(operation: FileOperation): void;
}

export interface DurableFs {
  /** Creates a directory with exactly this mode (the umask is not asked); its parent is not flushed. */
  makeDirectory(op: string, path: string, mode: number): void;
  /** As makeDirectory, but a directory that is there already is left alone. */
  ensureDirectory(op: string, path: string, mode: number): void;
  /** Replaces a file whole: temporary name, write, flush, rename, flush directory. */
  writeFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /** Creates a file that must not exist, and flushes it; its directory is not flushed. */
  createFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /** Appends and flushes; creates the file with this mode. */
  appendFile(op: string, path: string, text: string, mode: number): void;
  /** Renames inside one file system and flushes both directories. */
  rename(op: string, from: string, to: string): void;
  /**
   * Gives a file a second name, or a copy where the file system has no hard links; durable, and whole or not at
   * all. A file that has the name already is replaced.
   */
  linkFile(op: string, from: string, to: string): void;
  /** Makes `path` a link to `target` by one create and one rename; the rename is the commit point. */
  replaceLink(op: string, path: string, target: string, temporaryName: string): void;
  /** Creates a link that must not exist; nothing is flushed. */
  createLink(op: string, path: string, target: string): void;
  /** Removes a file or link if it is there, and flushes its directory. */
  removeFile(op: string, path: string): void;
  /** Removes a tree if it is there; nothing is flushed. */
  removeTree(op: string, path: string): void;
  flushDescriptor(op: string, descriptor: number, path: string): void;
  flushDirectory(op: string, path: string): void;
  /** Flushes everything below `path` by one `sync -f`; an error means that the tree is lost, never retry. */
  flushTree(op: string, path: string): Promise<void>;
}

const temporaryPrefix = '.writ-tmp-';

/** True for a name that only a crash can have left behind; such a file may always be removed. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith(temporaryPrefix);
}

const codeOfErrno: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_FULL',
  EROFS: 'DISK_READ_ONLY',
  EACCES: 'DISK_DENIED',
  EPERM: 'DISK_DENIED',
  EXDEV: 'PATH_CROSS_DEVICE',
};

/** Turns the error of a file operation into a coded one that names the operation and the path. */
export function diskError(error: unknown, operation: FileOperation): unknown {
  if (!isSystemError(error) || error instanceof WritError) return error;
  const code = codeOfErrno[error.code ?? ''] ?? 'DISK_FAILED';
  return new WritError(code, `${operation.op}: ${error.message}`, {
    facts: { op: operation.op, path: operation.path, errno: error.code },
    cause: error,
  });
}

/** @param observer called around every operation; absent in production. */
export function createDurableFs(observer: OperationObserver = {}): DurableFs {
  const run = <T>(op: string, path: string, act: () => T): T => {
    const operation = { op, path };
    try {
      observer.before?.(operation);
      const result = act();
      observer.after?.(operation);
      return result;
    } catch (error) {
      throw diskError(error, operation);
    }
  };
  const flushDirectory = (op: string, path: string): void => run(op, path, () => flushPath(path));
  const rename = (op: string, from: string, to: string): void => run(op, to, () => fs.renameSync(from, to));

  return {
    makeDirectory: (op, path, mode) => run(op, path, () => makeDirectory(path, mode)),
    ensureDirectory: (op, path, mode) => {
      if (!fs.existsSync(path)) run(op, path, () => makeDirectory(path, mode));
    },
    writeFile: (op, path, bytes, mode) => {
      const temporary = join(dirname(path), `${temporaryPrefix}${randomBytes(6).toString('hex')}`);
      try {
        run(`${op}:write`, path, () => writeAndFlush(temporary, bytes, mode));
        rename(`${op}:rename`, temporary, path);
      } catch (error) {
        fs.rmSync(temporary, { force: true });
        throw error;
      }
      flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    createFile: (op, path, bytes, mode) => run(op, path, () => writeAndFlush(path, bytes, mode)),
    appendFile: (op, path, text, mode) => run(op, path, () => appendAndFlush(path, text, mode)),
    rename: (op, from, to) => {
      rename(`${op}:rename`, from, to);
      flushDirectory(`${op}:flush-to`, dirname(to));
      if (dirname(from) !== dirname(to)) flushDirectory(`${op}:flush-from`, dirname(from));
    },
    linkFile: (op, from, to) => {
      const temporary = join(dirname(to), `${temporaryPrefix}${randomBytes(6).toString('hex')}`);
      try {
        run(`${op}:link`, to, () => linkOrCopy(from, temporary));
        rename(`${op}:rename`, temporary, to);
      } finally {
        // Two names of one file are not renamed onto each other: then the temporary one stays.
        fs.rmSync(temporary, { force: true });
      }
      flushDirectory(`${op}:flush-directory`, dirname(to));
    },
    replaceLink: (op, path, target, temporaryName) => {
      const temporary = join(dirname(path), temporaryName);
      run(`${op}:create`, temporary, () => fs.symlinkSync(target, temporary));
      try {
        rename(`${op}:rename`, temporary, path);
      } catch (error) {
        fs.rmSync(temporary, { force: true });
        throw error;
      }
      flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    createLink: (op, path, target) => run(op, path, () => fs.symlinkSync(target, path)),
    removeFile: (op, path) => {
      if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
      run(op, path, () => fs.unlinkSync(path));
      flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    removeTree: (op, path) => run(op, path, () => fs.rmSync(path, { recursive: true, force: true })),
    flushDescriptor: (op, descriptor, path) => run(op, path, () => fs.fsyncSync(descriptor)),
    flushDirectory,
    flushTree: (op, path) => flushTree(op, path, observer),
  };
}

/** What a file system without hard links, or with a quota on them, answers. */
const noLink: readonly string[] = ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'EMLINK', 'EXDEV', 'ENOSYS'];

function linkOrCopy(from: string, temporary: string): void {
  try {
    fs.linkSync(from, temporary);
  } catch (error) {
    if (!isSystemError(error) || !noLink.includes(error.code ?? '')) throw error;
    fs.copyFileSync(from, temporary, fs.constants.COPYFILE_EXCL);
    const descriptor = fs.openSync(temporary, fs.constants.O_RDONLY);
    try {
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  }
}

function makeDirectory(path: string, mode: number): void {
  fs.mkdirSync(path, { mode });
  // mkdir's mode passes through the umask: 0755 becomes 0700 under 077, and no worker could read the policy.
  fs.chmodSync(path, mode);
}

function writeAndFlush(path: string, bytes: string | Uint8Array, mode: number): void {
  withDescriptor(
    path,
    fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_WRONLY,
    mode,
    (descriptor) => {
      fs.fchmodSync(descriptor, mode);
      fs.writeFileSync(descriptor, bytes);
    },
  );
}

function appendAndFlush(path: string, text: string, mode: number): void {
  withDescriptor(
    path,
    fs.constants.O_CREAT | fs.constants.O_APPEND | fs.constants.O_WRONLY,
    mode,
    (descriptor) => {
      fs.fchmodSync(descriptor, mode);
      fs.writeFileSync(descriptor, text);
    },
  );
}

function withDescriptor(path: string, flags: number, mode: number, act: (descriptor: number) => void): void {
  const descriptor = fs.openSync(path, flags | fs.constants.O_NOFOLLOW, mode);
  try {
    act(descriptor);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

function flushPath(path: string): void {
  const descriptor = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

async function flushTree(op: string, path: string, observer: OperationObserver): Promise<void> {
  const operation = { op, path };
  try {
    observer.before?.(operation);
    const result = await runCommand({ argv: ['sync', '-f', path], timeoutMs: 600_000, maxOutputBytes: 4096 });
    observer.after?.(operation);
    if (result.kind === 'exited' && result.exitCode === 0) return;
    throw new WritError('DISK_FAILED', `${op}: sync -f did not succeed (${result.kind})`, {
      facts: { op, path, result },
    });
  } catch (error) {
    throw diskError(error, operation);
  }
}
