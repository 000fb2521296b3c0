// What a packed file of a release holds, piece by piece: Brotli or gzip, no byte behind its stream. Owns the decoder and what
// its errors mean; what the pieces are is the consumer's.
import * as fs from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { isSystemError, isWritError, WritError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';

export interface Packed {
  /** The file, whose every byte is under a signed digest. */
  readonly path: string;
  readonly length: number;
  /** As the targets name it: `.gz` at its end says that it is gzip. */
  readonly target: string;
  readonly what: 'archive' | 'delta';
  readonly signal?: AbortSignal | undefined;
}

/** Pieces of 128 kB wait longer for the collector: 14 MB more at the peak of a great policy, and no faster. */
const chunkBytes = 32 * 1024;

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
  let refusal: unknown;
  const consumeAll = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    try {
      for await (const chunk of chunks) {
        const done = consume(chunk);
        if (done !== undefined) await done;
      }
    } catch (error) {
      refusal = error;
      throw error;
    }
  };
  await pipeline(input, decoder, consumeAll, signal === undefined ? {} : { signal }).catch(
    (error: unknown) => {
      // The pipeline reports the abort of its decoder in place of the refusal that caused it.
      throw decodeError(refusal ?? error, packed);
    },
  );
  // Decoders stop at the end of their stream, and say nothing of what lies behind it.
  if (decoder.bytesWritten !== length) {
    const facts = { expected: decoder.bytesWritten, actual: length };
    throw malformed(packed, 'has data behind its compressed stream', { facts });
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
  const why = endedEarly.test(code) ? 'data lies behind its compressed stream' : error.message;
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
