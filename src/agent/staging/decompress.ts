// What a packed file of a release holds, piece by piece: Brotli or gzip, no byte behind its stream. Owns the decoder and what
// its errors mean; what the pieces are is the consumer's.
import * as fs from 'node:fs';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import { createPieceCollector } from '../../platform/process/heap.js';

export interface Packed {
  /** The file, whose every byte is under a signed digest. */
  readonly path: string;
  readonly length: number;
  /** As the targets name it: `.gz` at its end says that it is gzip. */
  readonly target: string;
  readonly what: 'archive' | 'delta';
  readonly signal?: AbortSignal | undefined;
}

/** Smaller pieces are more hops between threads, greater ones wait longer for the collector (docs/performance.md). */
const chunkBytes = 64 * 1024;

/**
 * The decoder works on its own thread and hands over piece by piece: between pieces the event loop is free.
 * @throws WritError ARCHIVE_MALFORMED or DELTA_MALFORMED; INTERRUPTED; DISK_*; and what the consumer throws
 */
export async function decompress(
  packed: Packed,
  consume: (chunk: Buffer) => Promise<void> | undefined,
): Promise<void> {
  const { path, length, target, signal } = packed;
  const input = fs.createReadStream(path, { highWaterMark: chunkBytes });
  const decoder = target.endsWith('.gz')
    ? createGunzip({ chunkSize: chunkBytes })
    : createBrotliDecompress({ chunkSize: chunkBytes });
  const used = createPieceCollector();
  let refusal: unknown;
  const refuse = (done: (error: Error) => void) => (error: unknown) => {
    refusal = error;
    done(error as Error);
  };
  // No promise a piece, but where the consumer asks for one.
  const sink = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, done) => {
      try {
        const pending = consume(chunk);
        used(chunk.length);
        if (pending === undefined) done();
        else pending.then(() => done(), refuse(done));
      } catch (error) {
        refuse(done)(error);
      }
    },
  });
  await pipeline(input, decoder, sink, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    // The pipeline reports the abort of its decoder in place of the refusal that caused it.
    throw decodeError(refusal ?? error, packed);
  });
  // Decoders stop at the end of their stream, and say nothing of what lies behind it.
  if (decoder.bytesWritten !== length) {
    const facts = { expected: decoder.bytesWritten, actual: length };
    throw malformed(packed, 'has data after its compressed stream', { facts });
  }
}

function decodeError(error: unknown, packed: Packed): unknown {
  const { path, target, signal } = packed;
  if (isWritError(error) || !isSystemError(error)) return error;
  if (signal?.aborted)
    return new WritError('INTERRUPTED', `${target}: staging was interrupted`, { cause: error });
  if (error.syscall !== undefined) return diskError(error, { op: 'stage.tree', path: error.path ?? path });
  const code = error.code ?? '';
  if (!decoderErrors.test(code) && !endedEarly.test(code)) return error;
  const why = endedEarly.test(code) ? 'there is data after its compressed stream' : error.message;
  return malformed(packed, `cannot be decompressed: ${why}`, { facts: { target }, cause: error });
}

function malformed({ what }: Packed, text: string, rest: { facts: object; cause?: unknown }): WritError {
  const { facts, cause } = rest;
  const code = what === 'archive' ? 'ARCHIVE_MALFORMED' : 'DELTA_MALFORMED';
  return new WritError(code, `the ${what} ${text}`, { facts: { ...facts }, cause });
}

/** zlib and Brotli have codes of their own. */
const decoderErrors = /^(Z_|ERR__)/;
/** A decoder that ends before its input, as it looks from outside. */
const endedEarly = /^(ABORT_ERR|ERR_STREAM_PREMATURE_CLOSE)$/;
