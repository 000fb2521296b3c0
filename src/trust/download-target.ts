// Brings one target of any publisher into a file: found through the same search, and held to the same signed
// length and digests, as an archive of Writ. A file that is there whole is not fetched again; what is refused
// leaves nothing behind.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, isWritError, WritError } from '../core/errors.js';
import { openTargetDigest } from '../core/tuf/target-digest.js';
import type { DurableFs } from '../platform/disk/durable-fs.js';
import type { RepositoryClient } from './repository-client.js';
import type { FoundFile } from './signed-target.js';

export interface DownloadOptions {
  readonly client: Pick<RepositoryClient, 'find' | 'streamTarget'>;
  /** Existing directory; each target becomes one file in it, named by its encoded path. */
  readonly directory: string;
  readonly durable: DurableFs;
  readonly signal?: AbortSignal;
}

export interface DownloadedTarget {
  readonly path: string;
  /** `kept`: it was there already, byte for byte as signed. */
  readonly kind: 'fetched' | 'kept';
}

/** Together with the name of a part in the making, below the 255 bytes of a file name. */
const maxNameBytes = 240;

/**
 * Downloads a target by its path, after a refresh.
 * @throws WritError TARGET_UNKNOWN, TARGET_MALFORMED, TARGET_MISSING, DOWNLOAD_*, DISK_*, and what `find` throws
 */
export async function downloadTarget(path: string, options: DownloadOptions): Promise<DownloadedTarget> {
  const { client, signal } = options;
  const target = await client.find(path, signal === undefined ? {} : { signal });
  if (target === undefined) {
    throw new WritError('TARGET_UNKNOWN', `the repository lists no ${path}`, { facts: { target: path } });
  }
  const place = join(options.directory, fileName(path));
  if (isWhole(place, target)) return { path: place, kind: 'kept' };
  const part = `${place}.part`;
  const discard = (): void => options.durable.discardFile('download.target:discard', part);
  discard();
  try {
    await receive(part, target, options);
    options.durable.rename('download.target', part, place);
  } finally {
    discard();
  }
  return { path: place, kind: 'fetched' };
}

/** One name for one path, also for `../x`: it stays inside the directory. */
function fileName(path: string): string {
  // A leading dot is encoded too: `.` and `..` are no files.
  const name = encodeURIComponent(path).replace(/^\./, '%2E');
  if (name.length <= maxNameBytes) return name;
  throw new WritError('TARGET_MALFORMED', 'the path of the target is too long for a file name', {
    facts: { target: path.slice(0, 200), expected: maxNameBytes, actual: name.length },
  });
}

function isWhole(place: string, { path, file }: FoundFile): boolean {
  const digest = openTargetDigest(path, file);
  try {
    if (fs.statSync(place).size !== file.length) return false;
    const descriptor = fs.openSync(place, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
    try {
      for (const chunk of chunksOf(descriptor)) digest.update(chunk);
    } finally {
      fs.closeSync(descriptor);
    }
    digest.requireSame();
    return true;
  } catch (error) {
    // Absent, unreadable or other bytes: then it is fetched, and a disk that is broken says so there.
    if (isWritError(error) || isSystemError(error)) return false;
    throw error;
  }
}

const chunkBytes = 65_536;

function* chunksOf(descriptor: number): Generator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const bytesRead = fs.readSync(descriptor, chunk);
    if (bytesRead === 0) return;
    yield chunk.subarray(0, bytesRead);
  }
}

async function receive(part: string, target: FoundFile, options: DownloadOptions): Promise<void> {
  const { client, durable, signal } = options;
  const digest = openTargetDigest(target.path, target.file);
  const descriptor = durable.openNew('download.target:create', part, { mode: 0o600 });
  try {
    for await (const chunk of client.streamTarget(target, signal === undefined ? {} : { signal })) {
      digest.update(chunk);
      durable.write('download.target:write', { descriptor, path: part }, chunk);
    }
    digest.requireSame();
    durable.flushDescriptor('download.target:flush', descriptor, part);
  } finally {
    fs.closeSync(descriptor);
  }
}
