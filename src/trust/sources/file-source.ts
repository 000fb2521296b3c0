// A repository in a directory: a USB stick, a mirror, or the publisher's own files. It opens only regular files inside of the
// directory, so that no read blocks and no link leads outside.
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
 * @param location as the configuration has it, for messages
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

/** @returns undefined if the file is absent and the repository exists */
async function openInside(directory: string, path: string): Promise<OpenedFile | undefined> {
  const segments = decodePath(path);
  const full = join(directory, ...segments);
  // An encoded slash is a part of a name for a web server and a separator for the file system.
  if (segments.some((segment) => segment.includes('/'))) return undefined;
  try {
    await requireInside(directory, full);
    // Opening a FIFO without O_NONBLOCK blocks until there is a writer.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    return await requireRegular(await open(full, flags), full);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT') && !isSystemError(error, 'ENOTDIR')) throw readError(error, full);
    await requireRepository(directory);
    return undefined;
  }
}

/** A link in a directory of the path could lead outside: O_NOFOLLOW checks only the last name. */
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

/** A USB stick that is not mounted is an unreachable server, not an empty repository. */
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
