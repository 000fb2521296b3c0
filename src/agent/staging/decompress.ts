// Decompresses an archive or delta in pieces, by Brotli or gzip, and rejects bytes after the compressed stream. Converts the errors
// of the decoder. The consumer interprets the pieces.
import * as fs from 'node:fs';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import { createPieceCollector } from '../../platform/process/heap.js';

export interface PackedFile {
  /** A file that matches its signed digest. */
  readonly path: string;
  readonly length: number;
  /** Name in the targets role: `.gz` at its end means gzip, otherwise Brotli. */
  readonly target: string;
  readonly what: 'archive' | 'delta';
  readonly signal?: AbortSignal | undefined;
}

/** Smaller pieces cause more switches of threads; larger ones wait longer for the garbage collector (docs/performance.md). */
const chunkBytes = 64 * 1024;

/**
 * Decompresses on another thread and passes each piece to the consumer. The event loop is free between pieces.
 * @throws WritError ARCHIVE_MALFORMED or DELTA_MALFORMED; INTERRUPTED; DISK_*; and what the consumer throws
 */
export async function decompressFile(
  packed: PackedFile,
  consume: (chunk: Buffer) => Promise<void> | undefined,
): Promise<void> {
  const { path, length, target, signal } = packed;
  const input = fs.createReadStream(path, { highWaterMark: chunkBytes });
  const decoder = target.endsWith('.gz')
    ? createGunzip({ chunkSize: chunkBytes })
    : createBrotliDecompress({ chunkSize: chunkBytes });
  const collectPieces = createPieceCollector();
  let consumerError: unknown;
  const failWith = (done: (error: Error) => void) => (error: unknown) => {
    consumerError = error;
    done(error as Error);
  };
  // A promise is awaited only if the consumer returns one, because most pieces need none.
  const sink = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, done) => {
      try {
        const pending = consume(chunk);
        collectPieces(chunk.length);
        if (pending === undefined) done();
        else pending.then(() => done(), failWith(done));
      } catch (error) {
        failWith(done)(error);
      }
    },
  });
  await pipeline(input, decoder, sink, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    // The pipeline reports the abort of its decoder instead of the consumer's error that caused it.
    throw toDecodeError(consumerError ?? error, packed);
  });
  // A decoder stops at the end of its stream and does not report the bytes after it.
  if (decoder.bytesWritten !== length) {
    const facts = { expected: decoder.bytesWritten, actual: length };
    throw createMalformedError(packed, 'has data after its compressed stream', { facts });
  }
}

function toDecodeError(error: unknown, packed: PackedFile): unknown {
  const { path, target, signal } = packed;
  if (isWritError(error) || !isSystemError(error)) return error;
  if (signal?.aborted)
    return new WritError('INTERRUPTED', `${target}: staging was interrupted`, { cause: error });
  if (error.syscall !== undefined) return diskError(error, { op: 'stage.tree', path: error.path ?? path });
  const code = error.code ?? '';
  if (!decoderErrorCodes.test(code) && !earlyEndCodes.test(code)) return error;
  const why = earlyEndCodes.test(code) ? 'there is data after its compressed stream' : error.message;
  return createMalformedError(packed, `cannot be decompressed: ${why}`, { facts: { target }, cause: error });
}

function createMalformedError(
  { what }: PackedFile,
  text: string,
  rest: { facts: object; cause?: unknown },
): WritError {
  const { facts, cause } = rest;
  const code = what === 'archive' ? 'ARCHIVE_MALFORMED' : 'DELTA_MALFORMED';
  return new WritError(code, `the ${what} ${text}`, { facts: { ...facts }, cause });
}

/** Codes of zlib and Brotli errors. */
const decoderErrorCodes = /^(Z_|ERR__)/;
/** Codes of the pipeline for a decoder that ended before its input. */
const earlyEndCodes = /^(ABORT_ERR|ERR_STREAM_PREMATURE_CLOSE)$/;
