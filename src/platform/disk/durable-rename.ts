// Renames a directory that the file system refuses to rename: overlayfs returns EXDEV for a directory of a lower layer
// (`redirect_dir` off). The directory is copied to a temporary name, the copy is renamed, and the source is removed. Each step
// has a label of durable-fs.ts.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, orUndefined, unlessRefused, WritError } from '../../core/errors.js';
import { lstatIfPresent } from '../read-file.js';
import { removeTree, writeAndFlush } from './durable-calls.js';
import { copyTree } from './durable-copy.js';
import { movedMark, temporaryPrefix } from './temporary-names.js';

/** The labelled steps of durable-fs.ts. */
export interface RenameSteps {
  readonly run: <T>(op: string, path: string, act: () => T) => T;
  readonly rename: (op: string, from: string, to: string) => void;
  readonly flushDirectory: (op: string, path: string) => void;
}

export interface Renamed {
  readonly from: string;
  readonly to: string;
  /** A temporary name in the directory of `to`. */
  readonly copy: string;
}

/**
 * After a crash the source is complete, or the copy is complete at `to`. The source gets a mark before its removal begins, so
 * that an incomplete source is never used.
 */
export function renameOrCopy(steps: RenameSteps, op: string, { from, to, copy }: Renamed): void {
  const { run, rename, flushDirectory } = steps;
  try {
    rename(`${op}:rename`, from, to);
    return;
  } catch (error) {
    if (!isRefusedByOverlay(error, from, to)) throw error;
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

/** @returns false if the paths are on two file systems: a mount between them is an error of the operator, and is reported */
function isRefusedByOverlay(error: unknown, from: string, to: string): boolean {
  if (!(error instanceof WritError) || error.code !== 'PATH_CROSS_DEVICE') return false;
  const source = lstatIfPresent(from);
  return (
    source?.isDirectory() === true && lstatIfPresent(dirname(from))?.dev === lstatIfPresent(dirname(to))?.dev
  );
}

/** @returns true for a source that a crash left after its complete copy got the new name; it may be removed */
export function isMovedSource(path: string): boolean {
  return lstatIfPresent(join(path, movedMark)) !== undefined;
}

const untestable = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT'];

/**
 * Tests whether the file system can rename this directory, and changes nothing: the new name is that of a directory which is not
 * empty, so that the rename always fails.
 * @param scratchIn a directory on the same file system
 * @returns undefined if the test is not possible
 */
export function canRenameDirectory(directory: string, scratchIn: string): boolean | undefined {
  const scratch = unlessRefused(() => fs.mkdtempSync(join(scratchIn, temporaryPrefix)), untestable);
  if (scratch === undefined) return undefined;
  try {
    fs.mkdirSync(join(scratch, 'full'));
    fs.renameSync(directory, scratch);
    return undefined;
  } catch (error) {
    if (isSystemError(error, 'EXDEV')) return false;
    return isSystemError(error, 'ENOTEMPTY') || isSystemError(error, 'EEXIST') ? true : undefined;
  } finally {
    unlessRefused(() => removeTree(scratch), untestable);
  }
}
