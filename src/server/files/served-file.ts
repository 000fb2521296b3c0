// Opens files of the repository for serving, and nothing beside them: what was opened is asked for its real
// place, so that neither a link nor a swap of a directory under our feet leads out of the repository.
// Synchronous on purpose, as in nginx: an open of a local file costs less than a trip to the thread pool.
import * as fs from 'node:fs';
import { join, relative, sep } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { isPlainName } from './request-path.js';

export interface ServedFile {
  /** Whoever gets it closes it. */
  readonly descriptor: number;
  readonly length: number;
  /** Epoch milliseconds, with fractions. */
  readonly modifiedMs: number;
}

const absent = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO']);

/**
 * @param file relative to the repository, as request-path gives it
 * @returns undefined when there is no such regular file inside metadata/ or targets/
 * @throws the system's error when the file is there and cannot be opened
 */
export function openServedFile(repository: string, file: string): ServedFile | undefined {
  const path = join(repository, file);
  let descriptor: number;
  try {
    // Every poll asks for a root that is not there: a stat says so for a quarter of what an exception costs.
    if (fs.statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    // A FIFO would hang an open without O_NONBLOCK for ever.
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

/** The kernel's own answer to where the open file lies: a check of the path before the open could be raced. */
function isInside(repository: string, descriptor: number): boolean {
  const real = fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  const [folder = '', ...rest] = relative(fs.realpathSync(repository), real).split(sep);
  return (folder === 'metadata' || folder === 'targets') && rest.length > 0 && rest.every(isPlainName);
}
