// The only place that changes the disk of a host. Every operation carries a label, so that a test can fail it
// or kill the process right before or after it. Order is write, flush, rename, flush the directory.
// Synchronous around the swap: strace and the crash tests then see its calls in one thread, in order.
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, orUndefined, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { lookAt } from '../read-file.js';
import { diskErrorText } from './disk-error-text.js';
import * as calls from './durable-calls.js';
import { renameOrCopy } from './durable-rename.js';
import { isDirectoryThere } from './ensured-directory.js';
import { codeOfErrno, hintOfErrno } from './errno-rules.js';
import { isTemporaryName, temporaryPrefix } from './temporary-names.js';

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

/** A file that is open for writing; the path is for messages and tests. */
export interface OpenFile {
  readonly descriptor: number;
  readonly path: string;
}

export interface LinkOptions {
  readonly temporaryName: string;
  /** Called last: what it throws leaves `path` as it is. */
  readonly beforeRename?: (() => void) | undefined;
}

export interface DurableFs {
  /** Creates a directory with exactly this mode (the umask is not asked); its parent is not flushed. */
  makeDirectory(op: string, path: string, mode: number): void;
  /** As makeDirectory, but a directory that is there already is left alone. */
  ensureDirectory(op: string, path: string, mode: number): void;
  /** Replaces a file whole: temporary name, write, flush, rename, flush directory. */
  writeFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /**
   * Replaces a file whole by one rename, and flushes nothing: for what is written again soon, and of which a power cut may
   * leave anything.
   */
  replaceFile(op: string, path: string, bytes: string | Uint8Array, options: calls.NewFile): void;
  /** Creates a file that must not exist, and flushes it, or leaves none; its directory is not flushed. */
  createFile(op: string, path: string, bytes: string | Uint8Array, mode: number): void;
  /** Appends and flushes; creates the file with this mode, and then flushes its directory: a lost name is a lost file. */
  appendFile(op: string, path: string, text: string, mode: number): void;
  /**
   * Renames inside one file system and flushes both directories. A directory that overlayfs does not rename is copied; a crash can
   * leave the copy beside its source, which then has isLeftBehind.
   */
  rename(op: string, from: string, to: string): void;
  /**
   * Gives a file a second name, or a copy where the file system has no hard links; durable, and whole or not at
   * all. A file that has the name already is replaced.
   */
  linkFile(op: string, from: string, to: string): void;
  /** As linkFile, for a name that must not exist; its directory is not flushed. */
  linkNew(op: string, from: string, to: string): void;
  /** Makes `path` a link to `target` by one create and one rename; the rename is the commit point. */
  replaceLink(op: string, path: string, target: string, options: LinkOptions): void;
  /** Creates a link that must not exist; nothing is flushed. */
  createLink(op: string, path: string, target: string): void;
  /** Removes a file or link if it is there, and flushes its directory. */
  removeFile(op: string, path: string): void;
  /** Removes a tree if it is there, and none that something is mounted in (PATH_MOUNTED); bytes for a name that is no text. */
  removeTree(op: string, path: string | Buffer): void;
  /** Creates a file that must not exist, with exactly this mode and group, and leaves it open; flushes nothing. */
  openNew(op: string, path: string, options: calls.NewFile): number;
  /** As openNew, with what another open file holds, and open for reading; blocks are shared where the file system can. */
  copyNew(op: string, from: calls.CopiedFile, path: string, options: calls.NewFile): Promise<number>;
  /** Opens a file that outlives its holders: made if it is absent, its content left alone. */
  openKept(op: string, path: string, mode: number): number;
  /** Writes all of the bytes, at `position` or behind the last write; flushes nothing. */
  write(op: string, file: OpenFile, bytes: Uint8Array, position?: number): void;
  /** Makes this the whole content of an open file; flushes nothing. */
  rewrite(op: string, file: OpenFile, text: string): void;
  /** Takes away what lies behind so many bytes of an open file; flushes nothing. */
  truncate(op: string, file: OpenFile, sizeBytes: number): void;
  /** Sets the modification time of an open file, epoch seconds. */
  setTime(op: string, file: OpenFile, mtimeSeconds: number): void;
  /** Sets the modification time of a file by its path, epoch seconds. */
  touch(op: string, path: string, mtimeSeconds: number): void;
  changeGroup(op: string, path: string, groupId: number): void;
  /** As changeGroup and changeMode of what is at this very name: no link is followed. */
  changeOwner(op: string, path: string, owner: { readonly uid: number; readonly gid: number }): void;
  changeMode(op: string, path: string, mode: number): void;
  /** Makes a new directory of mode 0700; its name begins with `prefix`. @returns its path */
  makeScratch(op: string, prefix: string): string;
  /**
   * The way out after an error: removes a file if it is there. Never throws for the disk: the error before it is
   * the news, and what is left is swept at the next start.
   */
  discardFile(op: string, path: string): void;
  flushDescriptor(op: string, descriptor: number, path: string): void;
  flushDirectory(op: string, path: string): void;
  /** Flushes everything below `path` by one `sync -f`; an error means that the tree is lost, never retry. */
  flushTree(op: string, path: string): Promise<void>;
}

export { diskErrorText, isDirectoryThere, isTemporaryName };

/** Turns the error of a file operation into a coded one: its message has what was tried and the path, its facts the label too. */
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

/** @param observer called around every operation; absent in production. */
export function createDurableFs(observer: OperationObserver = {}): DurableFs {
  const run: Run = (op, path, act) => {
    // Ten thousand files are staged: without an observer nothing is made for one here.
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
      if (isDirectoryThere(op, path)) return;
      run(op, path, () => calls.makeDirectory(path, mode));
    },
    writeFile: (op, path, bytes, mode) => {
      const temporary = temporaryBeside(path);
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
      const temporary = temporaryBeside(path);
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
      const isNew = !isThere(path);
      run(op, path, () => calls.appendAndFlush(path, text, mode));
      if (isNew) flushDirectory(`${op}:flush-directory`, dirname(path));
    },
    rename: (op, from, to) => {
      renameOrCopy(steps, op, { from, to, copy: temporaryBeside(to) });
      flushDirectory(`${op}:flush-to`, dirname(to));
      if (dirname(from) !== dirname(to)) flushDirectory(`${op}:flush-from`, dirname(from));
    },
    linkFile: (op, from, to) => {
      const temporary = temporaryBeside(to);
      try {
        run(`${op}:link`, to, () => calls.linkOrCopy(from, temporary));
        rename(`${op}:rename`, temporary, to);
      } finally {
        // Two names of one file are not renamed onto each other: then the temporary one stays.
        discardFile(`${op}:discard`, temporary);
      }
      flushDirectory(`${op}:flush-directory`, dirname(to));
    },
    replaceLink: (op, path, target, options) => replaceLink(steps, { op, path, target, ...options }),
    removeFile: (op, path) => {
      if (!isThere(path)) return;
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

/** What several operations are made of. */
type Steps = ReturnType<typeof stepsOf>;

function stepsOf(run: Run) {
  return {
    run,
    rename: (op: string, from: string, to: string) => run(op, to, () => fs.renameSync(from, to)),
    flushDirectory: (op: string, path: string) => run(op, path, () => calls.flushDirectoryAt(path)),
    discardFile: (op: string, path: string): void => {
      orUndefined(() => isThere(path) && run(op, path, () => fs.rmSync(path, { force: true })));
    },
  };
}

type NewLink = Readonly<Record<'op' | 'path' | 'target', string>> & LinkOptions;

function replaceLink(
  { run, rename, flushDirectory, discardFile }: Steps,
  { op, path, target, temporaryName, beforeRename }: NewLink,
): void {
  const temporary = join(dirname(path), temporaryName);
  // Left by a move of the same cycle that could not clean up: it must not block this one.
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

/** What is done to one file and flushed, where it must be, by an operation of its own. */
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

function temporaryBeside(path: string): string {
  return join(dirname(path), `${temporaryPrefix}${randomBytes(6).toString('hex')}`);
}

function isThere(path: string): boolean {
  return lookAt(path) !== undefined;
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
