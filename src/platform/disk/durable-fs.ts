// The only module that changes the disk of a host. Every operation has a label, so that a test can fail it or kill the
// process right before or after it. The order is: write, flush, rename, flush the directory.
// The calls around the swap are synchronous, so that strace and the crash tests see them in one thread and in order.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, orUndefined, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { lstatIfPresent } from '../read-file.js';
import { diskErrorText } from './disk-error-text.js';
import * as calls from './durable-calls.js';
import { renameOrCopy } from './durable-rename.js';
import { isDirectoryPresent } from './ensured-directory.js';
import { codeOfErrno, hintOfErrno } from './errno-rules.js';
import { isTemporaryName, temporaryPrefix } from './temporary-names.js';

export interface FileOperation {
  /** The caller and its purpose, as `swap.link`; a step of an operation adds a suffix, as `swap.link:rename`. */
  readonly op: string;
  readonly path: string;
}

/** For tests: an error that it throws replaces the error of the operation. */
export interface OperationObserver {
  before?(operation: FileOperation): void;
  after?(operation: FileOperation): void;
}

/** A file that is open for writing; the path is for messages and tests. */
export interface OpenFile {
  readonly descriptor: number;
  readonly path: string;
}

export interface LinkOptions {
  readonly temporaryName: string;
  /** Called right before the rename: an error that it throws leaves `path` unchanged. */
  readonly beforeRename?: (() => void) | undefined;
}

export interface DurableFs {
  /** Creates a directory with exactly this mode, whatever the umask is; its parent is not flushed. */
  makeDirectory(op: string, path: string, mode: number): void;
  /** As makeDirectory, but an existing directory is not changed. */
  ensureDirectory(op: string, path: string, mode: number): void;
  /** Replaces a file atomically: writes a temporary file, flushes it, renames it, and flushes the directory. */
  writeFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /**
   * Replaces a file by one rename, and flushes nothing: for files that are written again soon, and that a power cut may damage.
   */
  replaceFile(op: string, path: string, bytes: string | Uint8Array, options: calls.NewFile): void;
  /** Creates and flushes a file that must not exist; after an error no file is left. Its directory is not flushed. */
  createFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /** Appends and flushes. Creates the file with this mode if it is absent, and then flushes its directory too. */
  appendFile(op: string, path: string, text: string, mode: number): void;
  /**
   * Renames within one file system and flushes both directories. A directory that overlayfs does not rename is copied; a crash
   * can leave both the copy and its source, for which isMovedSource is then true.
   */
  rename(op: string, from: string, to: string): void;
  /**
   * Creates a hard link to a file, or a copy if the file system has no hard links. Durable and atomic; replaces an existing
   * file.
   */
  linkFile(op: string, from: string, to: string): void;
  /** As linkFile, for a path that must not exist; its directory is not flushed. */
  linkNew(op: string, from: string, to: string): void;
  /** Makes `path` a symbolic link to `target` by one create and one rename; the rename is the commit point. */
  replaceLink(op: string, path: string, target: string, options: LinkOptions): void;
  /** Creates a symbolic link that must not exist; flushes nothing. */
  createLink(op: string, path: string, target: string): void;
  /** Removes a file or link if it exists, and flushes its directory. */
  removeFile(op: string, path: string): void;
  /** Removes a tree if it exists. @param path as bytes if it is not UTF-8. @throws WritError PATH_MOUNTED for a mount in it */
  removeTree(op: string, path: string | Buffer): void;
  /** Creates a file that must not exist, with exactly this mode and group, and leaves it open; flushes nothing. */
  openNew(op: string, path: string, options: calls.NewFile): number;
  /** As openNew, with the content of another open file, and open for reading; shares blocks if the file system can. */
  copyNew(op: string, from: calls.CopiedFile, path: string, options: calls.NewFile): Promise<number>;
  /** Opens a file that is never removed; creates it if it is absent, and keeps its content. */
  openKept(op: string, path: string, mode: number): number;
  /** Writes all of the bytes, at `position` or after the last write; flushes nothing. */
  write(op: string, file: OpenFile, bytes: Uint8Array, position?: number): void;
  /** Replaces the whole content of an open file; flushes nothing. */
  rewrite(op: string, file: OpenFile, text: string): void;
  /** Shortens an open file to `sizeBytes`; flushes nothing. */
  truncate(op: string, file: OpenFile, sizeBytes: number): void;
  /** Sets the modification time of an open file, epoch seconds. */
  setTime(op: string, file: OpenFile, mtimeSeconds: number): void;
  /** Sets the modification time of a file by its path, epoch seconds. */
  touch(op: string, path: string, mtimeSeconds: number): void;
  changeGroup(op: string, path: string, groupId: number): void;
  /** Changes the path itself: as changeGroup and changeMode, it does not follow a link. */
  changeOwner(op: string, path: string, owner: { readonly uid: number; readonly gid: number }): void;
  changeMode(op: string, path: string, mode: number): void;
  /** Creates a directory of mode 0700 with a random name. @param prefix of its path. @returns its path */
  makeScratch(op: string, prefix: string): string;
  /**
   * Removes a file, if it exists, after another operation failed. Never throws an error of the disk, because the first error is
   * the one to report; the next start removes files that are left.
   */
  discardFile(op: string, path: string): void;
  flushDescriptor(op: string, descriptor: number, path: string): void;
  flushDirectory(op: string, path: string): void;
  /** Flushes everything below `path` by one `sync -f`. After an error the tree must be discarded, never flushed again. */
  flushTree(op: string, path: string): Promise<void>;
}

export { diskErrorText, isDirectoryPresent, isTemporaryName };

/**
 * Turns the system error of a file operation into a WritError; its message has the action and the path, its facts also the label.
 * @returns any other error unchanged
 */
export function diskError(error: unknown, operation: FileOperation): unknown {
  if (!isSystemError(error) || error instanceof WritError) return error;
  const errno = error.code ?? '';
  const code = codeOfErrno[errno] ?? 'DISK_FAILED';
  const hint = hintOfErrno(errno, operation.path);
  const { op, path } = operation;
  return new WritError(code, diskErrorText(error, path), {
    facts: { op, path, errno },
    ...given({ hint }),
    cause: error,
  });
}

/**
 * @param observer called before and after every operation; `after` not for a failed one. Its exceptions end the operation. Empty
 *   in production.
 * @returns the file operations, which do nothing until called. Each throws a system error as a WritError (see diskError,
 *   DISK_FAILED for an unlisted errno); other errors pass unchanged.
 */
export function createDurableFs(observer: OperationObserver = {}): DurableFs {
  const run: Run = (op, path, act) => {
    // Allocate nothing without an observer: a release may stage ten thousand files.
    try {
      observer.before?.({ op, path });
      const result = act();
      observer.after?.({ op, path });
      return result;
    } catch (error) {
      throw diskError(error, { op, path });
    }
  };
  const steps = stepsOf(run);
  const { rename, flushDirectory, discardFile } = steps;

  return {
    makeDirectory: (op, path, mode) => run(op, path, () => calls.makeDirectory(path, mode)),
    ensureDirectory: (op, path, mode) => {
      if (isDirectoryPresent(op, path)) return;
      run(op, path, () => calls.makeDirectory(path, mode));
    },
    writeFile: (op, path, bytes, mode) => {
      const temporary = temporaryPathFor(path);
      try {
        run(`${op}:write`, path, () => calls.writeAndFlush(temporary, bytes, mode));
        rename(`${op}:rename`, temporary, path);
      } catch (error) {
        discardFile(`${op}:discard`, temporary);
        throw error;
      }
      flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    replaceFile: (op, path, bytes, options) => {
      const temporary = temporaryPathFor(path);
      try {
        run(`${op}:write`, path, () => calls.writeNew(temporary, bytes, options));
        rename(`${op}:rename`, temporary, path);
      } catch (error) {
        discardFile(`${op}:discard`, temporary);
        throw error;
      }
    },
    createFile: (op, path, bytes, mode) => run(op, path, () => calls.writeAndFlush(path, bytes, mode)),
    appendFile: (op, path, text, mode) => {
      const isNew = !isPresent(path);
      run(op, path, () => calls.appendAndFlush(path, text, mode));
      if (isNew) flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    rename: (op, from, to) => {
      renameOrCopy(steps, op, { from, to, copy: temporaryPathFor(to) });
      flushDirectory(`${op}:flush-to`, dirname(to));
      if (dirname(from) !== dirname(to)) flushDirectory(`${op}:flush-from`, dirname(from));
    },
    linkFile: (op, from, to) => {
      const temporary = temporaryPathFor(to);
      try {
        run(`${op}:link`, to, () => calls.linkOrCopy(from, temporary));
        rename(`${op}:rename`, temporary, to);
      } finally {
        // A rename between two hard links of one file does nothing, so the temporary name is still there.
        discardFile(`${op}:discard`, temporary);
      }
      flushDirectory(`${op}:flush-directory`, dirname(to));
    },
    replaceLink: (op, path, target, options) => replaceLink(steps, { op, path, target, ...options }),
    removeFile: (op, path) => {
      if (!isPresent(path)) return;
      run(op, path, () => fs.unlinkSync(path));
      flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    removeTree: (op, path) => run(op, path.toString(), () => calls.removeTree(path)),
    makeScratch: (op, prefix) => run(op, prefix, () => fs.mkdtempSync(prefix)),
    discardFile,
    flushDirectory,
    flushTree: (op, path) => runLater(observer, { op, path }, () => calls.flushFileSystem(op, path)),
    copyNew: (op, from, path, rights) =>
      runLater(observer, { op, path }, () => calls.copyNewFile(from, path, rights)),
    ...singleFileOperations(run),
  };
}

type Run = <T>(op: string, path: string, act: () => T) => T;

/** Steps that several operations share. */
type Steps = ReturnType<typeof stepsOf>;

function stepsOf(run: Run) {
  return {
    run,
    rename: (op: string, from: string, to: string) => run(op, to, () => fs.renameSync(from, to)),
    flushDirectory: (op: string, path: string) => run(op, path, () => calls.flushDirectoryAt(path)),
    discardFile: (op: string, path: string): void => {
      orUndefined(() => isPresent(path) && run(op, path, () => fs.rmSync(path, { force: true })));
    },
  };
}

type NewLink = Readonly<Record<'op' | 'path' | 'target', string>> & LinkOptions;

function replaceLink(
  { run, rename, flushDirectory, discardFile }: Steps,
  { op, path, target, temporaryName, beforeRename }: NewLink,
): void {
  const temporary = join(dirname(path), temporaryName);
  // Remove the link of an earlier move of this cycle that failed to remove it, so that it does not block this move.
  const left = fs.lstatSync(temporary, { throwIfNoEntry: false });
  if (left?.isSymbolicLink()) run(`${op}:stale`, temporary, () => fs.unlinkSync(temporary));
  run(`${op}:create`, temporary, () => fs.symlinkSync(target, temporary));
  try {
    beforeRename?.();
    rename(`${op}:rename`, temporary, path);
  } catch (error) {
    discardFile(`${op}:discard`, temporary);
    throw error;
  }
  flushDirectory(`${op}:flush-directory`, dirname(path));
}

/** Operations on one file, which their callers flush by another operation. */
function singleFileOperations(run: Run) {
  return {
    linkNew: (op, from, to) => run(op, to, () => calls.linkOrCopy(from, to)),
    createLink: (op, path, target) => run(op, path, () => fs.symlinkSync(target, path)),
    openNew: (op, path, options) => run(op, path, () => calls.openNewFile(path, options)),
    openKept: (op, path, mode) => run(op, path, () => calls.openKeptFile(path, mode)),
    write: (op, { descriptor, path }, bytes, at) =>
      run(op, path, () => calls.writeAll(descriptor, bytes, at)),
    rewrite: (op, { descriptor, path }, text) => run(op, path, () => calls.rewrite(descriptor, text)),
    truncate: (op, { descriptor, path }, size) => run(op, path, () => fs.ftruncateSync(descriptor, size)),
    setTime: (op, { descriptor, path }, at) => run(op, path, () => fs.futimesSync(descriptor, at, at)),
    touch: (op, path, mtimeSeconds) => run(op, path, () => fs.utimesSync(path, mtimeSeconds, mtimeSeconds)),
    changeOwner: (op, path, { uid, gid }) => run(op, path, () => fs.lchownSync(path, uid, gid)),
    changeGroup: (op, path, groupId) => run(op, path, () => fs.lchownSync(path, -1, groupId)),
    changeMode: (op, path, mode) => run(op, path, () => calls.changeModeHere(path, mode)),
    flushDescriptor: (op, descriptor, path) => run(op, path, () => fs.fsyncSync(descriptor)),
  } satisfies Partial<DurableFs>;
}

function temporaryPathFor(path: string): string {
  return join(dirname(path), `${temporaryPrefix}${randomBytes(6).toString('hex')}`);
}

function isPresent(path: string): boolean {
  return lstatIfPresent(path) !== undefined;
}

async function runLater<T>(
  observer: OperationObserver,
  operation: FileOperation,
  act: () => Promise<T>,
): Promise<T> {
  try {
    observer.before?.(operation);
    const result = await act();
    observer.after?.(operation);
    return result;
  } catch (error) {
    throw diskError(error, operation);
  }
}
