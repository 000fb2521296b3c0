// A new file with a brotli stream in it, written piece by piece: an archive, or a delta. The same bytes for the same pieces, flat in
// memory, whole and flushed or not there at all. What the pieces are is its callers' affair.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type BrotliCompress, constants as brotli, createBrotliCompress } from 'node:zlib';
import { type Digest, digestFromHex } from '../../core/names.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { createPieceCollector } from '../../platform/process/heap.js';
import { openNewFile } from './archive-bytes.js';

interface CompressOptions {
  /** Nothing may be there. */
  readonly path: string;
  /** Label of the operation. */
  readonly op: string;
  /** Of what comes, where it is known. */
  readonly sizeBytes?: number;
  /** Of the file. */
  readonly maxBytes: number;
  readonly durableFs: DurableFs;
}

/**
 * The caller flushes the directory.
 * @returns undefined, and leaves no file, where it would become longer than it may
 * @throws WritError DISK_*, and what the pieces throw
 */
export async function compressFile(
  pieces: Iterable<Buffer>,
  { path, op, sizeBytes, maxBytes, durableFs }: CompressOptions,
): Promise<{ bytes: number; digest: Digest } | undefined> {
  const { descriptor, write: writeChunk } = openNewFile(path, op);
  const tooLong = new Error('too long');
  try {
    fs.fchmodSync(descriptor, 0o644);
    const digest = createHash('sha256');
    let bytes = 0;
    const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > maxBytes) throw tooLong;
        digest.update(chunk);
        writeChunk(chunk);
      }
    };
    await pipeline(inBlocks(pieces), compressor(sizeBytes), write);
    durableFs.flushDescriptor(op, descriptor, path);
    return { bytes, digest: digestFromHex(digest.digest('hex')) as Digest };
  } catch (error) {
    fs.rmSync(path, { force: true });
    if (error === tooLong) return undefined;
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}

// Quality 4 with a window of 4 MB, for half the time of 5 with 16 MB and five per cent more bytes; the window is
// memory that every host needs while it unpacks (docs/performance.md).
// The level and the window are part of the format's determinism: change them and every archive changes.
function compressor(sizeBytes = 0): BrotliCompress {
  return createBrotliCompress({
    params: {
      [brotli.BROTLI_PARAM_QUALITY]: 4,
      [brotli.BROTLI_PARAM_LGWIN]: 22,
      [brotli.BROTLI_PARAM_SIZE_HINT]: Math.min(sizeBytes, 2 ** 31 - 1),
    },
    chunkSize: 65_536,
  });
}

const blockBytes = 1_048_576;

/** In buffers of about a megabyte: one hop to the compressor's thread each, not one a file. */
async function* inBlocks(pieces: Iterable<Buffer>): AsyncGenerator<Buffer> {
  const used = createPieceCollector();
  let block: Buffer[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    block.push(piece);
    bytes += piece.length;
    if (bytes < blockBytes) continue;
    yield Buffer.concat(block, bytes);
    // The pieces, and the block that they became.
    used(2 * bytes);
    block = [];
    bytes = 0;
  }
  yield Buffer.concat(block, bytes);
}
