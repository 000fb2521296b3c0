// Decodes a tar while it arrives, in pieces of any size, and calls a visitor for each regular file. Memory is bounded by one header.
// The tar package is not used, because even in strict mode it accepts a missing end, data after the end, invalid numbers and broken
// PAX records; here each is an error. Pure.
import {
  blockBytes,
  isZero,
  malformed,
  type PaxRecords,
  readPaxRecords,
  readTarHeader,
  type TarHeader,
} from './tar-header.js';

export interface TarEntry {
  /** Path bytes, from the PAX header if there is one; not checked yet. */
  readonly path: Buffer;
  readonly sizeBytes: number;
  readonly mode: number;
}

/**
 * An exception of the visitor ends the decoding. Calls of `data` occur between `begin` and `end`; the visitor must copy bytes that
 * it keeps.
 */
export interface TarVisitor {
  begin(entry: TarEntry): void;
  data(chunk: Buffer): void;
  end(): void;
}

/** Tar programs fill the last record with zeros up to this size. */
const maxPaddingBytes = 10_240;
const endBlocks = 2;

/**
 * Creates the reader of one tar. It calls the visitor only in `write`.
 * @param limits greatest length of the body of a PAX header, in bytes; it contains little more than one path. A longer one is an
 *   error of `write`.
 * @returns a reader before the first byte. The caller calls `write` for each piece and then `finish`. Throws nothing itself.
 */
export function createTarReader(visitor: TarVisitor, limits: { readonly maxPaxBytes: number }): TarReader {
  return new TarReader(visitor, limits.maxPaxBytes);
}

export class TarReader {
  readonly #visitor: TarVisitor;
  readonly #maxPaxBytes: number;
  /** The beginning of an incomplete block. */
  readonly #partial = Buffer.alloc(blockBytes);
  #partialBytes = 0;
  #bodyLeft = 0;
  #paddingLeft = 0;
  /** Set while the body of a PAX header arrives. */
  #paxBody: Buffer | undefined;
  /** Set between a PAX header and its file. */
  #pax: PaxRecords | undefined;
  #zeroBlocks = 0;
  #bytesAfterEnd = 0;

  constructor(visitor: TarVisitor, maxPaxBytes: number) {
    this.#visitor = visitor;
    this.#maxPaxBytes = maxPaxBytes;
  }

  /** @throws WritError ARCHIVE_MALFORMED, ENTRY_REFUSED, and exceptions of the visitor */
  write(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at += this.#take(chunk.subarray(at));
  }

  /**
   * Must be called after the last byte.
   * @throws WritError ARCHIVE_MALFORMED if the archive is not complete
   */
  finish(): void {
    if (this.#zeroBlocks < endBlocks || this.#bytesAfterEnd % blockBytes !== 0) {
      throw malformed('it ends too early');
    }
  }

  /** @returns the number of bytes that were used, at least one */
  #take(bytes: Buffer): number {
    if (this.#zeroBlocks === endBlocks) return this.#takeAfterEnd(bytes);
    if (this.#bodyLeft > 0) return this.#takeBody(bytes);
    if (this.#paddingLeft > 0) return this.#takePadding(bytes);
    return this.#takeHeader(bytes);
  }

  #takeAfterEnd(bytes: Buffer): number {
    this.#bytesAfterEnd += bytes.length;
    // A second archive here would be read by other programs and never checked.
    if (this.#bytesAfterEnd > maxPaddingBytes || !isZero(bytes)) throw malformed('it has data after its end');
    return bytes.length;
  }

  #takeBody(bytes: Buffer): number {
    const piece = bytes.subarray(0, this.#bodyLeft);
    if (this.#paxBody === undefined) this.#visitor.data(piece);
    else piece.copy(this.#paxBody, this.#paxBody.length - this.#bodyLeft);
    this.#bodyLeft -= piece.length;
    if (this.#bodyLeft > 0) return piece.length;
    if (this.#paxBody === undefined) this.#visitor.end();
    else this.#pax = readPaxRecords(this.#paxBody);
    this.#paxBody = undefined;
    return piece.length;
  }

  #takePadding(bytes: Buffer): number {
    const piece = bytes.subarray(0, this.#paddingLeft);
    if (!isZero(piece)) throw malformed('it has data in the padding of an entry');
    this.#paddingLeft -= piece.length;
    return piece.length;
  }

  #takeHeader(bytes: Buffer): number {
    if (this.#partialBytes === 0 && bytes.length >= blockBytes) {
      this.#readBlock(bytes.subarray(0, blockBytes));
      return blockBytes;
    }
    const used = bytes.copy(this.#partial, this.#partialBytes);
    this.#partialBytes += used;
    if (this.#partialBytes === blockBytes) {
      this.#partialBytes = 0;
      this.#readBlock(this.#partial);
    }
    return used;
  }

  #readBlock(block: Buffer): void {
    if (isZero(block)) {
      if (this.#pax !== undefined) throw malformed('a PAX header belongs to no file');
      this.#zeroBlocks += 1;
      return;
    }
    // A reader that stops at the first zero block would ignore the rest.
    if (this.#zeroBlocks > 0) throw malformed('it has one end block, then more');
    const header = readTarHeader(block);
    this.#bodyLeft = header.sizeBytes;
    this.#paddingLeft = (blockBytes - (header.sizeBytes % blockBytes)) % blockBytes;
    if (header.type === 'pax') this.#beginPax(header.sizeBytes);
    else this.#beginFile(header);
  }

  #beginFile(header: TarHeader): void {
    const pax = this.#pax;
    this.#pax = undefined;
    if (pax?.sizeBytes !== undefined && pax.sizeBytes !== header.sizeBytes) {
      const facts = { expected: header.sizeBytes, actual: pax.sizeBytes };
      throw malformed('PAX header and header have different sizes', facts);
    }
    // Copies the path, because the buffer of the header is reused.
    const path = Buffer.from(pax?.path ?? header.path);
    this.#visitor.begin({ path, sizeBytes: header.sizeBytes, mode: header.mode });
    if (header.sizeBytes === 0) this.#visitor.end();
  }

  #beginPax(sizeBytes: number): void {
    if (this.#pax !== undefined) throw malformed('two PAX headers follow each other');
    if (sizeBytes === 0 || sizeBytes > this.#maxPaxBytes) {
      const facts = { expected: this.#maxPaxBytes, actual: sizeBytes };
      throw malformed('a PAX header is empty or too long', facts);
    }
    this.#paxBody = Buffer.alloc(sizeBytes);
  }
}
