// Copies one archive to another file system: bounded memory, digest while it streams, whole or not at all. What is
// there already is believed only when its bytes have the digest.
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import type { More } from '../../core/work-report.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { digestOfFile, openNewFile } from './archive-bytes.js';

export interface CopyOptions {
  readonly from: string;
  readonly to: string;
  /** Bytes, as signed. */
  readonly length: number;
  readonly digestHex: string;
  readonly durableFs: DurableFs;
  /** Told of bytes that were copied, or looked at where they are there already. */
  readonly more?: More;
}

/**
 * The caller flushes: a copy counts only when everything beside it does.
 * @throws WritError REPOSITORY_INVALID when the archive is missing or is not the one that was signed; DISK_*
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
  const file = openNewFile(temporary, 'export.archive');
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
