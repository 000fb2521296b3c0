// Decodes the decompressed bytes of a delta while they arrive, and calls a visitor for each instruction. Memory is bounded: two
// manifests and one piece. A delta is untrusted: the new manifest must have its signed digest before a file is decoded, and each
// number is checked against the sizes in the manifest before it is used. The base file is untrusted too. Only the digest of the
// produced file proves the result.
import type { ArchiveLimits } from '../limits.js';
import { requireManifestBytes } from '../release/archive-bounds.js';
import { type Manifest, type ManifestFile, manifestDigest, parseManifest } from '../release/manifest.js';
import type { ReleaseInfo } from '../release/release.js';
import {
  type DeltaRelease,
  deltaMagic,
  malformedDelta,
  minCopyBytes,
  NumberReader,
  newContents,
  stepOf,
} from './delta-format.js';

/** An exception of the visitor ends the decoding. Calls other than `manifest` occur between `open` and `close`. */
export interface DeltaVisitor {
  /** Called once, before the first file, after the digest of the new manifest was verified. */
  manifest(manifest: Manifest, bytes: Buffer): void;
  /** @param from the file of the base that copies read; undefined if no bytes are copied */
  open(file: ManifestFile, from: ManifestFile | undefined): void;
  /** Bytes of an insert. The visitor must copy them if it keeps them. */
  literal(chunk: Buffer): void;
  /** A range of the base file, always within its size. */
  copy(offset: number, length: number): void;
  /** The file is complete. Its digest is not verified yet. */
  close(): void;
}

export interface DeltaReading {
  readonly base: DeltaRelease;
  /** Signed length and digest of the new manifest. */
  readonly manifest: ReleaseInfo['manifest'];
  /** Signed length of the compressed delta; the limit on decompressed bytes depends on it. */
  readonly deltaBytes: number;
  readonly limits: ArchiveLimits;
  /** The parsed new manifest, if the caller has it: it is not parsed again. Its bytes are verified in any case. */
  readonly known?: Manifest;
}

/** Up to this size the ratio is not limited, because a small result is no decompression bomb. */
const ratioFreeBytes = 1_000_000;

/** @returns the number of bytes that a delta of this length may have when decompressed */
export function maxDecodedBytes(deltaBytes: number, { maxRatio }: ArchiveLimits): number {
  return Math.max(ratioFreeBytes, deltaBytes * maxRatio);
}

/**
 * Creates the reader of one delta. It calls no method of the visitor and reads nothing before the first `write`.
 * @returns a reader in its first state, never undefined
 * @throws WritError ARCHIVE_LIMIT if `reading.manifest.length` exceeds `limits.maxManifestBytes`, because the reader allocates
 *   this signed length at once
 */
export function createDeltaReader(reading: DeltaReading, visitor: DeltaVisitor): DeltaReader {
  return new DeltaReader(reading, visitor);
}

/** The file that is being produced, and its base. */
interface Section {
  left: number;
  readonly baseBytes: number;
  /** End of the last copy in the base. */
  copyEnd: number;
  afterInsert: boolean;
}

type Expected = 'magic' | 'from' | 'instruction' | 'offset' | 'literal' | 'end';

export class DeltaReader {
  readonly #reading: DeltaReading;
  readonly #visitor: DeltaVisitor;
  readonly #number = new NumberReader();
  /** The new manifest while it is produced; undefined afterwards. */
  #manifestBytes: Buffer | undefined;
  #files: readonly ManifestFile[] = [];
  #fileIndex = 0;
  #section: Section;
  #expected: Expected = 'magic';
  #magicBytes = 0;
  #literalLeft = 0;
  #copyBytes = 0;
  #decodedLeft: number;

  constructor(reading: DeltaReading, visitor: DeltaVisitor) {
    this.#reading = reading;
    this.#visitor = visitor;
    requireManifestBytes(reading.manifest.length, reading.limits);
    this.#manifestBytes = Buffer.alloc(reading.manifest.length);
    this.#section = sectionOf(reading.manifest.length, reading.base.manifestBytes.length);
    this.#decodedLeft = maxDecodedBytes(reading.deltaBytes, reading.limits);
  }

  /**
   * @throws WritError DELTA_MALFORMED; MANIFEST_MALFORMED or ARCHIVE_LIMIT for the signed manifest; and exceptions of the visitor
   */
  write(chunk: Buffer): void {
    this.#decodedLeft -= chunk.length;
    if (this.#decodedLeft < 0) throw malformedDelta('it unpacks to too much for its length');
    for (let at = 0; at < chunk.length; ) {
      if (this.#expected === 'literal') at += this.#takeLiteral(chunk.subarray(at));
      else at += this.#takeByte(chunk[at] ?? 0);
    }
  }

  /**
   * Must be called after the last byte.
   * @throws WritError DELTA_MALFORMED if the delta is not complete
   */
  finish(): void {
    if (this.#expected !== 'end') throw malformedDelta('it ends too early');
  }

  #takeByte(byte: number): 1 {
    if (this.#expected === 'end') throw malformedDelta('it has data after its end');
    if (this.#expected === 'magic') {
      this.#takeMagic(byte);
      return 1;
    }
    const number = this.#number.take(byte);
    if (number === undefined) return 1;
    if (this.#expected === 'from') this.#openFile(number);
    else if (this.#expected === 'offset') this.#copy(number);
    else this.#begin(number);
    return 1;
  }

  #takeMagic(byte: number): void {
    if (byte !== deltaMagic[this.#magicBytes]) throw malformedDelta('it is not version 1');
    this.#magicBytes += 1;
    if (this.#magicBytes === deltaMagic.length) this.#expected = 'instruction';
  }

  #begin(number: number): void {
    const section = this.#section;
    const length = Math.floor(number / 2);
    if (length === 0) throw malformedDelta('an instruction produces nothing');
    if (length > section.left) {
      throw malformedDelta('a file becomes too long', { expected: section.left, actual: length });
    }
    if (number % 2 === 0) {
      if (section.afterInsert) throw malformedDelta('two inserts follow each other');
      section.afterInsert = true;
      this.#literalLeft = length;
      this.#expected = 'literal';
      return;
    }
    if (length < minCopyBytes) {
      throw malformedDelta('a copy is too short', { expected: minCopyBytes, actual: length });
    }
    section.afterInsert = false;
    this.#copyBytes = length;
    this.#expected = 'offset';
  }

  #copy(number: number): void {
    const section = this.#section;
    const offset = section.copyEnd + stepOf(number);
    const end = offset + this.#copyBytes;
    if (offset < 0 || end > section.baseBytes) {
      throw malformedDelta('a copy is outside of the base', { expected: section.baseBytes, actual: end });
    }
    section.copyEnd = end;
    if (this.#manifestBytes === undefined) this.#visitor.copy(offset, this.#copyBytes);
    else this.#reading.base.manifestBytes.copy(this.#manifestBytes, this.#manifestMade(), offset, end);
    this.#made(this.#copyBytes);
  }

  /** @returns the number of bytes that were used */
  #takeLiteral(bytes: Buffer): number {
    const piece = bytes.subarray(0, this.#literalLeft);
    this.#literalLeft -= piece.length;
    if (this.#manifestBytes === undefined) this.#visitor.literal(piece);
    else piece.copy(this.#manifestBytes, this.#manifestMade());
    if (this.#literalLeft > 0) this.#section.left -= piece.length;
    else this.#made(piece.length);
    return piece.length;
  }

  #manifestMade(): number {
    return this.#reading.manifest.length - this.#section.left;
  }

  /** Called at the end of an instruction. */
  #made(length: number): void {
    this.#section.left -= length;
    this.#expected = 'instruction';
    if (this.#section.left > 0) return;
    if (this.#manifestBytes === undefined) this.#close();
    else this.#prove(this.#manifestBytes);
  }

  #prove(bytes: Buffer): void {
    const { base, manifest: signed, limits, known } = this.#reading;
    const actual = manifestDigest(bytes);
    if (actual !== signed.digest) {
      throw malformedDelta('its manifest is not the signed one', { expected: signed.digest, actual });
    }
    const manifest = known ?? parseManifest(bytes, limits);
    this.#manifestBytes = undefined;
    this.#files = newContents(base.manifest, manifest);
    this.#visitor.manifest(manifest, bytes);
    this.#expectFile();
  }

  #expectFile(): void {
    this.#expected = this.#fileIndex < this.#files.length ? 'from' : 'end';
  }

  /** @param number position of the base file in the manifest of the base, from 1; 0 for none */
  #openFile(number: number): void {
    const { files } = this.#reading.base.manifest;
    const from = files[number - 1];
    if (number > files.length) {
      throw malformedDelta('a file has no base', { expected: files.length, actual: number });
    }
    const file = this.#files[this.#fileIndex];
    if (file === undefined) throw new RangeError('no file is expected');
    this.#fileIndex += 1;
    this.#section = sectionOf(file.sizeBytes, from?.sizeBytes ?? 0);
    this.#visitor.open(file, from);
    if (file.sizeBytes === 0) this.#close();
    else this.#expected = 'instruction';
  }

  #close(): void {
    this.#visitor.close();
    this.#expectFile();
  }
}

function sectionOf(left: number, baseBytes: number): Section {
  return { left, baseBytes, copyEnd: 0, afterInsert: false };
}
