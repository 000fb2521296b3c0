// Receives one signed file from a mirror into an open file: at most the signed length, digested while the bytes arrive, with a
// bounded number of resumptions. A partial download is digested before the first request. Decides when a download restarts; the
// caller opens the file and keeps or discards it.
import * as fs from 'node:fs';
import { isWritError, toWritError, WritError } from '../../core/errors.js';
import { maxResumptions } from '../../core/limits.js';
import { openTargetDigest, type TargetDigest } from '../../core/tuf/target-digest.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import type { OpenTransfer, SeenVersion } from '../../trust/download.js';
import type { SignedTarget } from '../../trust/signed-target.js';

/** An open file with the bytes that an earlier run received. */
export interface ReceivedFile extends OpenFile {
  readonly foundBytes: number;
  /** Version of these bytes; undefined if the mirror named none. */
  readonly seen: SeenVersion | undefined;
  /** Records the version that a mirror sends; undefined if it names none. */
  note(seen: SeenVersion | undefined): void;
}

export interface TargetDownloadOptions {
  readonly file: ReceivedFile;
  readonly target: SignedTarget;
  readonly durable: DurableFs;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Called with the offset at which a partial download continues; 0 if it was useless. */
  readonly onResume?: (fromByte: number) => void;
}

export interface TargetDownload extends TargetDownloadOptions {
  digest: TargetDigest;
  doneBytes: number;
  /** Number of bytes of an earlier run that are in use. */
  fromByte: number;
  /** Number of bytes from before the attempt of the current mirror. */
  inheritedBytes: number;
  seen: SeenVersion | undefined;
  /** True: the partial download was complete and matched the signed digest. */
  isComplete: boolean;
}

/**
 * Digests the partial download. A complete one with another digest is discarded.
 * @throws WritError INTERRUPTED, DISK_*
 */
export async function beginDownload(
  options: TargetDownloadOptions,
  signal?: AbortSignal,
): Promise<TargetDownload> {
  const { file, target, onProgress, onResume } = options;
  const { foundBytes, seen } = file;
  const download: TargetDownload = { ...options, ...createEmptyDownload(target), seen, isComplete: false };
  if (foundBytes === 0) return download;
  await digestPartial(download, signal);
  onResume?.(foundBytes);
  onProgress?.(foundBytes, target.length);
  Object.assign(download, { doneBytes: foundBytes, fromByte: foundBytes });
  if (foundBytes < target.length) return download;
  if (findDigestError(download) === undefined) download.isComplete = true;
  else restartDownload(download);
  return download;
}

function createEmptyDownload({ path, file }: SignedTarget) {
  return {
    digest: openTargetDigest(path, file),
    doneBytes: 0,
    fromByte: 0,
    inheritedBytes: 0,
    seen: undefined,
  };
}

const pieceBytes = 262_144;

async function digestPartial(
  { file, digest }: TargetDownload,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pace = unboundedPace(signal);
  const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, file.foundBytes));
  for (let done = 0; done < file.foundBytes; ) {
    const wanted = Math.min(buffer.length, file.foundBytes - done);
    const count = fs.readSync(file.descriptor, buffer, 0, wanted, done);
    // The file was truncated meanwhile: the digest at the end shows it, as it shows a wrong byte.
    if (count === 0) return;
    digest.update(buffer.subarray(0, count));
    done += count;
    await pace.spent(count);
  }
}

/** One attempt with one mirror: the download so far, and the transfer for the rest. */
export interface MirrorAttempt {
  readonly download: TargetDownload;
  readonly open: OpenTransfer;
  readonly signal: AbortSignal;
  /** Whether there is another mirror to try. */
  readonly hasOtherMirrors: boolean;
}

/**
 * Receives the missing bytes from one mirror. If the complete file has another digest, the earlier bytes can be wrong. Bytes of an
 * earlier run can come from this mirror, so the next mirror is asked for the complete file, or this one if it is the last. After
 * bytes of another mirror, this mirror sends the complete file, because a malicious half must not discredit an honest mirror.
 * @throws WritError DOWNLOAD_DIGEST, and what the transfer throws
 */
export async function receiveVerified(attempt: MirrorAttempt): Promise<void> {
  const { download, hasOtherMirrors } = attempt;
  download.inheritedBytes = download.doneBytes;
  await receiveWithinLength(attempt);
  const wrong = findDigestError(download);
  if (wrong === undefined) return;
  const { inheritedBytes, fromByte } = download;
  restartDownload(download);
  if (inheritedBytes === 0 || (fromByte > 0 && hasOtherMirrors)) throw wrong;
  await receiveWithinLength(attempt);
  const alone = findDigestError(download);
  if (alone === undefined) return;
  restartDownload(download);
  throw alone;
}

/** @returns undefined if the complete file matches its digest. Called once for a digest. */
function findDigestError({ digest }: TargetDownload): WritError | undefined {
  try {
    digest.requireSame();
    return undefined;
  } catch (error) {
    return toWritError(error);
  }
}

/** Removes every wrong byte, because a process that crashes now would leave them to the next run. */
function restartDownload(download: TargetDownload): void {
  const { target, fromByte, onResume } = download;
  if (fromByte > 0) onResume?.(0);
  restoreCheckpoint(download, createEmptyDownload(target));
}

/** A state of the download that can be restored. */
type Checkpoint = Pick<TargetDownload, 'digest' | 'doneBytes' | 'fromByte' | 'seen'>;

function createCheckpoint({ digest, ...here }: TargetDownload): Checkpoint {
  const { doneBytes, fromByte, seen } = here;
  return { digest: digest.copy(), doneBytes, fromByte, seen };
}

function restoreCheckpoint(download: TargetDownload, checkpoint: Checkpoint): void {
  const { durable, file } = download;
  durable.truncate('fetch.archive:restart', file, checkpoint.doneBytes);
  file.note(checkpoint.seen);
  Object.assign(download, checkpoint);
}

/** Restores the earlier bytes if a mirror sends more than the signed length, because it sent another file. */
async function receiveWithinLength(attempt: MirrorAttempt): Promise<void> {
  const before = createCheckpoint(attempt.download);
  try {
    await receiveWithResumptions(attempt);
  } catch (error) {
    if (isWritError(error) && error.code === 'DOWNLOAD_TOO_LARGE')
      restoreCheckpoint(attempt.download, before);
    throw error;
  }
}

/** Continues after a cut with the same digest, so that no byte is written or digested twice. */
async function receiveWithResumptions(attempt: MirrorAttempt): Promise<void> {
  const { download, signal } = attempt;
  const { target } = download;
  for (let resumptions = 0; download.doneBytes < target.length; resumptions += 1) {
    const problem = await receiveUntilCut(attempt);
    if (download.doneBytes === target.length && problem === undefined) return;
    if (signal.aborted) throw new WritError('INTERRUPTED', `${target.path}: the transfer was interrupted`);
    if (resumptions === maxResumptions || !isCut(problem)) throw problem ?? createTruncatedError(download);
  }
}

/** @returns the error that ended the stream; undefined if it ended without one */
async function receiveUntilCut({ download, open, signal }: MirrorAttempt): Promise<unknown> {
  const { target, durable, file, onProgress, onResume } = download;
  let at = download.doneBytes;
  const onBegin: Parameters<OpenTransfer>[0]['onBegin'] = ({ offset, seen }) => {
    if (offset < at && download.fromByte > 0) onResume?.(0);
    at = offset;
    download.seen = seen;
    file.note(seen);
  };
  try {
    const start = { offset: at, seen: download.seen, onBegin };
    for await (const chunk of open(start, signal)) {
      if (at + chunk.length > target.length) throw createTooLargeError(target);
      // A response that begins at offset 0 can be cut or wrong: earlier bytes stay until the complete file has another digest.
      const fresh = chunk.subarray(Math.max(0, download.doneBytes - at));
      at += chunk.length;
      // An empty chunk only shows that the transfer continues.
      if (fresh.length > 0) durable.write('fetch.archive:write', file, fresh, download.doneBytes);
      download.digest.update(fresh);
      download.doneBytes += fresh.length;
      onProgress?.(at, target.length);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}

const cutCodes: ReadonlySet<string> = new Set([
  'SERVER_UNREACHABLE',
  'PROXY_REFUSED',
  'SERVER_ERROR',
  'DOWNLOAD_TRUNCATED',
  'DOWNLOAD_TIMEOUT',
]);

/** True for failures of the connection, because a full disk or a too long body would fail again. */
function isCut(problem: unknown): boolean {
  return problem === undefined || (isWritError(problem) && cutCodes.has(problem.code));
}

function createTruncatedError({ target, doneBytes }: TargetDownload): WritError {
  return new WritError('DOWNLOAD_TRUNCATED', `${target.path}: it is shorter than its signed length`, {
    facts: { target: target.path, expected: target.length, actual: doneBytes },
  });
}

function createTooLargeError(target: SignedTarget): WritError {
  return new WritError('DOWNLOAD_TOO_LARGE', `${target.path}: more bytes than were signed`, {
    facts: { target: target.path, expected: target.length },
  });
}
