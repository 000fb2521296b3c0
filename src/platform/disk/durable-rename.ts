// A rename of a directory that the file system refuses: overlayfs answers EXDEV for a directory of a lower layer (`redirect_dir` off).
// It is copied beside its new name, the copy is renamed, and the source is removed. Each step has a label of durable-fs.ts.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, orUndefined, unlessRefused, WritError } from '../../core/errors.js';
import { lookAt } from '../read-file.js';
import { removeTree, writeAndFlush } from './durable-calls.js';
import { copyTree } from './durable-copy.js';
import { movedMark, temporaryPrefix } from './temporary-names.js';

/** What durable-fs.ts does under labels. */
export interface RenameSteps {
  readonly run: <T>(op: string, path: string, act: () => T) => T;
  readonly rename: (op: string, from: string, to: string) => void;
  readonly flushDirectory: (op: string, path: string) => void;
}

export interface Renamed {
  readonly from: string;
  readonly to: string;
  /** A temporary name beside `to`. */
  readonly copy: string;
}

/**
 * A crash leaves the source complete, or the copy complete under `to`. Before anything of the source is removed it gets a mark, so
 * that a part of it is never taken for the whole.
 */
export function renameOrCopy(steps: RenameSteps, op: string, { from, to, copy }: Renamed): void {
  const { run, rename, flushDirectory } = steps;
  try {
    rename(`${op}:rename`, from, to);
    return;
  } catch (error) {
    if (!isOfLayers(error, from, to)) throw error;
  }
  try {
    run(`${op}:copy`, to, () => copyTree(from, copy));
    rename(`${op}:copy-rename`, copy, to);
  } catch (error) {
    orUndefined(() => run(`${op}:copy-discard`, copy, () => removeTree(copy)));
    throw error;
  }
  flushDirectory(`${op}:copy-flush`, dirname(to));
  run(`${op}:copy-mark`, from, () => writeAndFlush(join(from, movedMark), '', 0o600));
  flushDirectory(`${op}:copy-mark-flush`, from);
  run(`${op}:copy-remove`, from, () => removeTree(from));
}

/** Both names are on one file system: a mount in between is the mistake of a person, and stays an error. */
function isOfLayers(error: unknown, from: string, to: string): boolean {
  if (!(error instanceof WritError) || error.code !== 'PATH_CROSS_DEVICE') return false;
  const source = lookAt(from);
  return source?.isDirectory() === true && lookAt(dirname(from))?.dev === lookAt(dirname(to))?.dev;
}

/** True for a directory of which a complete copy has another name: only a crash leaves it, and it may be removed. */
export function isLeftBehind(path: string): boolean {
  return lookAt(join(path, movedMark)) !== undefined;
}

const notHere = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT'];

/**
 * Asks the file system whether it renames this directory, and changes nothing: the new name is that of a directory which is not empty.
 * @param scratchIn a directory on the same file system
 * @returns undefined where nothing can be tried
 */
export function isRenamed(directory: string, scratchIn: string): boolean | undefined {
  const scratch = unlessRefused(() => fs.mkdtempSync(join(scratchIn, temporaryPrefix)), notHere);
  if (scratch === undefined) return undefined;
  try {
    fs.mkdirSync(join(scratch, 'full'));
    fs.renameSync(directory, scratch);
    return undefined;
  } catch (error) {
    if (isSystemError(error, 'EXDEV')) return false;
    return isSystemError(error, 'ENOTEMPTY') || isSystemError(error, 'EEXIST') ? true : undefined;
  } finally {
    unlessRefused(() => removeTree(scratch), notHere);
  }
}
