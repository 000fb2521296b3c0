// Writes a new file with a Brotli stream, piece by piece: an archive or a delta. The same pieces give the same bytes.
// Memory is bounded. The file is complete and flushed, or does not exist. The callers decide on the content of the pieces.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type BrotliCompress, constants as brotli, createBrotliCompress } from 'node:zlib';
import { type Digest, digestFromHex } from '../../core/names.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { createPieceCollector } from '../../platform/process/heap.js';
import { createArchiveFile } from './archive-bytes.js';

interface CompressOptions {
  /** The path must not exist. */
  readonly path: string;
  /** Label of the operation, for errors. */
  readonly op: string;
  /** The number of input bytes, where it is known. */
  readonly sizeBytes?: number;
  /** The largest allowed size of the file. */
  readonly maxBytes: number;
  readonly durableFs: DurableFs;
}

/**
 * The caller flushes the directory.
 * @returns undefined, without a file, where the file would exceed `maxBytes`
 * @throws WritError DISK_*, and the errors of the pieces
 */
export async function compressFile(
  pieces: Iterable<Buffer>,
  { path, op, sizeBytes, maxBytes, durableFs }: CompressOptions,
): Promise<{ bytes: number; digest: Digest } | undefined> {
  const { descriptor, write: writeChunk } = createArchiveFile(path, op);
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

// Quality 4 with a window of 4 MB takes half the time of quality 5 with 16 MB, for five per cent more bytes. Every host
// needs the memory of the window while it unpacks (docs/performance.md). A change of level or window changes the bytes of
// every archive.
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

/**
 * Joins the pieces to buffers of about a megabyte, so that there is one switch to the compressor's thread for each buffer
 * and not for each file.
 */
async function* inBlocks(pieces: Iterable<Buffer>): AsyncGenerator<Buffer> {
  const used = createPieceCollector();
  let block: Buffer[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    block.push(piece);
    bytes += piece.length;
    if (bytes < blockBytes) continue;
    yield Buffer.concat(block, bytes);
    // Counts the pieces, and the block that they were copied to.
    used(2 * bytes);
    block = [];
    bytes = 0;
  }
  yield Buffer.concat(block, bytes);
}
