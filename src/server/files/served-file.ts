// Opens files of the repository for serving. Attack: a link, or a directory that is replaced meanwhile, leads out of the
// repository. The real path of the opened file is therefore checked. Synchronous on purpose, as in nginx: opening a local
// file costs less than a switch to the thread pool.
import * as fs from 'node:fs';
import { join, relative, sep } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { isPlainName } from './request-path.js';

export interface ServedFile {
  /** The receiver closes it. */
  readonly descriptor: number;
  readonly length: number;
  /** Epoch milliseconds, with fractions. */
  readonly modifiedMs: number;
}

const absent = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO']);

/**
 * @param file relative to the repository, from request-path
 * @returns the open descriptor, which the caller closes, with length in bytes and modifiedMs; undefined without such a regular
 *   file inside metadata/ or targets/
 * @throws the system's error when the file exists and cannot be opened
 */
export function openServedFile(repository: string, file: string): ServedFile | undefined {
  const path = join(repository, file);
  let descriptor: number;
  try {
    // Every poll requests a root that is absent. A stat for it costs a quarter of an exception.
    if (fs.statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    // Without O_NONBLOCK, opening a FIFO would block for ever.
    descriptor = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error) && absent.has(error.code ?? '')) return undefined;
    throw error;
  }
  try {
    const stats = fs.fstatSync(descriptor);
    if (stats.isFile() && isInside(repository, descriptor)) {
      return { descriptor, length: stats.size, modifiedMs: stats.mtimeMs };
    }
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
  fs.closeSync(descriptor);
  return undefined;
}

/**
 * Reads the path of the open file from the kernel, because a check of the path before the open would have a race condition.
 */
function isInside(repository: string, descriptor: number): boolean {
  const real = fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  const [folder = '', ...rest] = relative(fs.realpathSync(repository), real).split(sep);
  return (folder === 'metadata' || folder === 'targets') && rest.length > 0 && rest.every(isPlainName);
}
