// A repository in a directory: a mounted stick, a mirror, the publisher's own tree. Owns what may be opened
// there: regular files inside it, and nothing that could hang a read or lead out.
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { exactLength, readBounded, targetMissing, tooLarge, truncated } from './exact-length.js';
import type { FetchVerdict, RepositorySource, StreamOptions } from './source.js';
import { decodePath } from './source-path.js';

const chunkBytes = 65_536;

/**
 * @param directory absolute path of the repository
 * @param location as people wrote it, for messages
 */
export function openFileSource(directory: string, location: string): RepositorySource {
  return {
    location,
    fetch: async (path, { maxBytes, signal }) => {
      refuseAborted(signal);
      const opened = await openInside(directory, path);
      return opened === undefined ? { kind: 'absent' } : readWhole(opened, maxBytes);
    },
    stream: (path, options) => streamFile(directory, path, options),
    close: async () => undefined,
  };
}

interface OpenedFile {
  readonly handle: FileHandle;
  readonly sizeBytes: number;
  readonly path: string;
}

async function readWhole(opened: OpenedFile, maxBytes: number): Promise<FetchVerdict> {
  try {
    if (opened.sizeBytes > maxBytes) throw tooLarge(opened.path, maxBytes, opened.sizeBytes);
    const exact = { expected: opened.sizeBytes, what: opened.path };
    const chunks = exactLength(readChunks(opened.handle, 0), exact);
    return { kind: 'found', bytes: await readBounded(chunks, maxBytes, opened.path) };
  } catch (error) {
    throw readError(error, opened.path);
  } finally {
    await opened.handle.close();
  }
}

async function* streamFile(directory: string, path: string, options: StreamOptions): AsyncGenerator<Buffer> {
  const { length, offset = 0, onBegin, signal } = options;
  if (offset >= length) return;
  const opened = await openInside(directory, path);
  if (opened === undefined) throw targetMissing(join(directory, path));
  try {
    if (opened.sizeBytes > length) throw tooLarge(opened.path, length, opened.sizeBytes);
    if (opened.sizeBytes < length) throw truncated(opened.path, length, opened.sizeBytes);
    const exact = { expected: length - offset, what: opened.path };
    onBegin?.({ offset });
    for await (const chunk of exactLength(readChunks(opened.handle, offset), exact)) {
      refuseAborted(signal);
      yield chunk;
    }
  } catch (error) {
    throw readError(error, opened.path);
  } finally {
    await opened.handle.close();
  }
}

async function* readChunks(handle: FileHandle, offset: number): AsyncGenerator<Buffer> {
  for (let position = offset; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** @returns undefined if there is no such file in a repository that is there */
async function openInside(directory: string, path: string): Promise<OpenedFile | undefined> {
  const segments = decodePath(path);
  const full = join(directory, ...segments);
  // An encoded slash would be one name to a web server and two to the file system.
  if (segments.some((segment) => segment.includes('/'))) return undefined;
  try {
    await requireInside(directory, full);
    // Opening a FIFO without O_NONBLOCK waits for a writer for ever.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    return await requireRegular(await open(full, flags), full);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'ENOTDIR')) throw readError(error, full);
    await requireRepository(directory);
    return undefined;
  }
}

/** A link in the middle of the path could lead anywhere; O_NOFOLLOW looks at the last name only. */
async function requireInside(directory: string, full: string): Promise<void> {
  const top = await realpath(directory);
  const parent = await realpath(dirname(full));
  if (parent === top || parent.startsWith(top.endsWith(sep) ? top : top + sep)) return;
  throw notAFile(full, 'lies outside the repository');
}

async function requireRegular(handle: FileHandle, path: string): Promise<OpenedFile> {
  const status = await handle.stat();
  if (status.isFile()) return { handle, sizeBytes: status.size, path };
  await handle.close();
  throw notAFile(path, 'is not a regular file');
}

/** A stick that is not mounted is a server that is down, not an empty repository. */
async function requireRepository(directory: string): Promise<void> {
  const status = await stat(directory).catch(() => undefined);
  if (status?.isDirectory()) return;
  throw new WritError('SERVER_UNREACHABLE', `${directory} is not there`, {
    facts: { url: directory, errno: 'ENOENT' },
    hint: 'Mount it, or correct `repository`.',
  });
}

function notAFile(path: string, what: string): WritError {
  return new WritError('SERVER_ERROR', `${path} ${what}`, { facts: { url: path } });
}

function readError(error: unknown, path: string): unknown {
  if (isWritError(error) || !isSystemError(error)) return error;
  return new WritError('SERVER_ERROR', `${path}: ${error.message}`, {
    facts: { url: path, errno: error.code },
    cause: error,
  });
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new WritError('INTERRUPTED', 'the read was interrupted', { cause: signal.reason });
}
