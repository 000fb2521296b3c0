// Copies one archive to another file system with bounded memory. The digest is computed during the copy, and the file is
// complete or does not exist. An existing file is reused only if its bytes have the digest.
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import type { More } from '../../core/work-report.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { createArchiveFile, digestOfFile } from './archive-bytes.js';

export interface CopyOptions {
  readonly from: string;
  readonly to: string;
  /** The signed length in bytes. */
  readonly length: number;
  readonly digestHex: string;
  readonly durableFs: DurableFs;
  /** Receives the numbers of bytes that were copied, or verified in an existing file. */
  readonly more?: More;
}

/**
 * The caller flushes the directory, once for all copies.
 * @throws WritError REPOSITORY_INVALID when the archive is missing or differs from the signed one; DISK_*
 */
export async function copyArchive(options: CopyOptions): Promise<'copied' | 'there'> {
  const { to, digestHex, durableFs } = options;
  if (await hasDigest(to, options)) return 'there';
  const temporary = join(dirname(to), `.writ-tmp-${randomBytes(6).toString('hex')}`);
  try {
    const actual = await streamInto(temporary, options);
    if (actual !== digestHex) throw invalidArchive(options.from, `its digest is ${actual}`);
    durableFs.rename('export.archive', temporary, to);
    return 'copied';
  } finally {
    fs.rmSync(temporary, { force: true });
  }
}

async function hasDigest(path: string, { length, digestHex, more }: CopyOptions): Promise<boolean> {
  const status = fs.lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined || !status.isFile() || status.size !== length) return false;
  return (await digestOfFile(path, more)) === digestHex;
}

/** @returns the digest in hex */
async function streamInto(temporary: string, { from, length, more }: CopyOptions): Promise<string> {
  const digest = createHash('sha256');
  const file = createArchiveFile(temporary, 'export.archive');
  try {
    let bytes = 0;
    for await (const chunk of openArchive(from)) {
      bytes += chunk.length;
      if (bytes > length) throw invalidArchive(from, `it has more than ${length} bytes`);
      digest.update(chunk);
      file.write(chunk);
      more?.(chunk.length);
    }
    return digest.digest('hex');
  } finally {
    fs.closeSync(file.descriptor);
  }
}

async function* openArchive(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of fs.createReadStream(path)) yield chunk as Buffer;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw invalidArchive(path, error.code ?? '');
  }
}

function invalidArchive(path: string, why: string): WritError {
  return new WritError('REPOSITORY_INVALID', `${path} cannot be exported: ${why}`, { facts: { path, why } });
}
