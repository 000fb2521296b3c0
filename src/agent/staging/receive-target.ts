// Takes the bytes of one signed file from a mirror, at their place in an open file: bounded by the signed length, digested while they
// come, over as many cuts as a transfer may have. What is there already is digested before anything is asked for. Owns when it
// begins again; where the file lies, and what becomes of it, is its caller's.
import * as fs from 'node:fs';
import { isWritError, toWritError, WritError } from '../../core/errors.js';
import { maxResumptions } from '../../core/limits.js';
import { openTargetDigest, type TargetDigest } from '../../core/tuf/target-digest.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import type { OpenTransfer, SeenVersion } from '../../trust/download.js';
import type { SignedTarget } from '../../trust/signed-target.js';

/** An open file, as far as it was received by an earlier run. */
export interface ReceivedFile extends OpenFile {
  readonly foundBytes: number;
  /** Which version they are of. */
  readonly seen: SeenVersion | undefined;
  /** Told which version a mirror sends; undefined where it names none. */
  note(seen: SeenVersion | undefined): void;
}

export interface DownloadOptions {
  readonly file: ReceivedFile;
  readonly target: SignedTarget;
  readonly durable: DurableFs;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Told from where on bytes are received, where some were here; 0 when those turned out to be of no use. */
  readonly onResume?: (fromByte: number) => void;
}

export interface Download extends DownloadOptions {
  digest: TargetDigest;
  doneBytes: number;
  /** Of an earlier run, and in use. */
  fromByte: number;
  /** Of whoever was asked before, in this turn of a mirror. */
  inheritedBytes: number;
  seen: SeenVersion | undefined;
  /** `yes`: all of it was here, under the signed digest. */
  wasWhole: 'yes' | 'no';
}

/**
 * Digests what is there; a whole that lacks the signed digest is thrown away.
 * @throws WritError INTERRUPTED, DISK_*
 */
export async function beginDownload(options: DownloadOptions, signal?: AbortSignal): Promise<Download> {
  const { file, target, onProgress, onResume } = options;
  const { foundBytes, seen } = file;
  const download: Download = { ...options, ...nothingYet(target), seen, wasWhole: 'no' };
  if (foundBytes === 0) return download;
  await digestFound(download, signal);
  onResume?.(foundBytes);
  onProgress?.(foundBytes, target.length);
  Object.assign(download, { doneBytes: foundBytes, fromByte: foundBytes });
  if (foundBytes < target.length) return download;
  if (wrongWhole(download) === undefined) download.wasWhole = 'yes';
  else startOver(download);
  return download;
}

function nothingYet({ path, file }: SignedTarget) {
  return {
    digest: openTargetDigest(path, file),
    doneBytes: 0,
    fromByte: 0,
    inheritedBytes: 0,
    seen: undefined,
  };
}

const pieceBytes = 262_144;

async function digestFound({ file, digest }: Download, signal: AbortSignal | undefined): Promise<void> {
  const pace = unboundedPace(signal);
  const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, file.foundBytes));
  for (let done = 0; done < file.foundBytes; ) {
    const wanted = Math.min(buffer.length, file.foundBytes - done);
    const count = fs.readSync(file.descriptor, buffer, 0, wanted, done);
    // Somebody has cut it meanwhile: what is missing is seen at the end, as any other wrong byte.
    if (count === 0) return;
    digest.update(buffer.subarray(0, count));
    done += count;
    await pace.spent(count);
  }
}

/** One mirror's turn: the file so far, and the way to the rest of it. */
export interface Turn {
  readonly download: Download;
  readonly open: OpenTransfer;
  readonly signal: AbortSignal;
  /** Whether another mirror is left. */
  readonly others: 'yes' | 'no';
}

/**
 * Takes what is missing from one mirror. When the whole lacks the signed digest, the bytes from before may be at fault. Those
 * of an earlier run may be this mirror's own, so the next one is asked for the whole, or this one where it is the last; beside
 * those of a mirror before, this one is judged by its own alone, or a liar's half would discredit the honest.
 * @throws WritError DOWNLOAD_DIGEST, and what the transfer throws
 */
export async function receiveVerified(turn: Turn): Promise<void> {
  const { download, others } = turn;
  download.inheritedBytes = download.doneBytes;
  await receive(turn);
  const wrong = wrongWhole(download);
  if (wrong === undefined) return;
  const { inheritedBytes, fromByte } = download;
  startOver(download);
  if (inheritedBytes === 0 || (fromByte > 0 && others === 'yes')) throw wrong;
  await receive(turn);
  const alone = wrongWhole(download);
  if (alone === undefined) return;
  startOver(download);
  throw alone;
}

/** @returns undefined when all is there and right; asked once for a digest */
function wrongWhole({ digest }: Download): WritError | undefined {
  try {
    digest.requireSame();
    return undefined;
  } catch (error) {
    return toWritError(error);
  }
}

/** Not a byte of what was wrong stays: a process that dies now would leave it to the next one. */
function startOver(download: Download): void {
  const { target, fromByte, onResume } = download;
  if (fromByte > 0) onResume?.(0);
  goBackTo(download, nothingYet(target));
}

/** A place to go back to. */
type Mark = Pick<Download, 'digest' | 'doneBytes' | 'fromByte' | 'seen'>;

function markOf({ digest, ...here }: Download): Mark {
  const { doneBytes, fromByte, seen } = here;
  return { digest: digest.copy(), doneBytes, fromByte, seen };
}

function goBackTo(download: Download, mark: Mark): void {
  const { durable, file } = download;
  durable.truncate('fetch.archive:restart', file, mark.doneBytes);
  file.note(mark.seen);
  Object.assign(download, mark);
}

/** Who sends more than was signed has sent something else: nothing of it stays, and all that was here before. */
async function receive(turn: Turn): Promise<void> {
  const before = markOf(turn.download);
  try {
    await receiveAll(turn);
  } catch (error) {
    if (isWritError(error) && error.code === 'DOWNLOAD_TOO_LARGE') goBackTo(turn.download, before);
    throw error;
  }
}

/** The digest goes on over a cut: what is there is not written or digested twice. */
async function receiveAll(turn: Turn): Promise<void> {
  const { download, signal } = turn;
  const { target } = download;
  for (let resumptions = 0; download.doneBytes < target.length; resumptions += 1) {
    const problem = await receiveUntilCut(turn);
    if (download.doneBytes === target.length && problem === undefined) return;
    if (signal.aborted) throw new WritError('INTERRUPTED', `${target.path}: the transfer was interrupted`);
    if (resumptions === maxResumptions || !isCut(problem)) throw problem ?? truncated(download);
  }
}

/** @returns what ended the stream, undefined when it ended by itself */
async function receiveUntilCut({ download, open, signal }: Turn): Promise<unknown> {
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
      if (at + chunk.length > target.length) throw tooLarge(target);
      // Who begins at the start may be cut, or lie: what is here stays until a whole has another digest.
      const fresh = chunk.subarray(Math.max(0, download.doneBytes - at));
      at += chunk.length;
      // An empty one only says that the transfer goes on.
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

/** Only what the way here did is worth another try: a full disk or a body too long would end the same way. */
function isCut(problem: unknown): boolean {
  return problem === undefined || (isWritError(problem) && cutCodes.has(problem.code));
}

function truncated({ target, doneBytes }: Download): WritError {
  return new WritError('DOWNLOAD_TRUNCATED', `${target.path}: it is shorter than its signed length`, {
    facts: { target: target.path, expected: target.length, actual: doneBytes },
  });
}

function tooLarge(target: SignedTarget): WritError {
  return new WritError('DOWNLOAD_TOO_LARGE', `${target.path}: more bytes than were signed`, {
    facts: { target: target.path, expected: target.length },
  });
}
