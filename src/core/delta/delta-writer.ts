// Encodes a delta in the order that delta-reader.ts expects. Pure and deterministic: the same two releases produce the same bytes.
// The caller reads the files, compresses the bytes, and decides whether to keep the delta.
import type { Manifest, ManifestFile } from '../release/manifest.js';
import { type ByteSource, bytesAsSource } from './byte-source.js';
import {
  type DeltaRelease,
  deltaMagic,
  encodeInstruction,
  encodeNumber,
  newContents,
} from './delta-format.js';
import { matchBytes } from './match-bytes.js';

/** A file in a delta. */
export interface DeltaFile {
  readonly file: ManifestFile;
  /** The file of the base that copies read. */
  readonly from?: ManifestFile;
}

/** The bytes of a file and of its base, which is empty without a base. */
export interface DeltaContents {
  readonly next: ByteSource;
  readonly base: ByteSource;
  close(): void;
}

/**
 * @returns the files in a delta, in the order of the new manifest. The base of a file is the file with the same path, else a removed
 *   file whose path differs only in digits, because lists are often named by their day.
 */
export function planDelta(base: Manifest, next: Manifest): DeltaFile[] {
  const ofPath = new Map(base.files.map((file) => [file.path, file]));
  const kept = new Set(next.files.map(({ path }) => path));
  const gone = base.files.filter(({ path }) => !kept.has(path));
  const renamed = new Map(gone.map((file) => [withoutDigits(file.path), file]));
  return newContents(base, next).map((file) => {
    const from = ofPath.get(file.path) ?? renamed.get(withoutDigits(file.path));
    return from === undefined ? { file } : { file, from };
  });
}

function withoutDigits(path: string): string {
  return path.replaceAll(/[0-9]+/g, '0');
}

/**
 * Encodes the delta from one release to another. The result is not compressed, and equal releases give equal bytes.
 * @param open called for each file of planDelta in its order; its result is closed before the next call, also after an error
 * @returns a lazy iterator over the bytes: first the magic, then the new manifest, then each file. Without changed files it ends
 *   after the manifest and never calls `open`. It throws only what `open` or its result throws.
 */
export function* encodeDelta(
  base: DeltaRelease,
  next: DeltaRelease,
  open: (file: DeltaFile) => DeltaContents,
): Generator<Buffer> {
  yield deltaMagic;
  yield* encodeFile(bytesAsSource(base.manifestBytes), bytesAsSource(next.manifestBytes));
  const numberOf = new Map(base.manifest.files.map((file, index) => [file, index + 1]));
  for (const one of planDelta(base.manifest, next.manifest)) {
    yield encodeNumber(one.from === undefined ? 0 : (numberOf.get(one.from) ?? 0));
    const contents = open(one);
    try {
      yield* encodeFile(contents.base, contents.next);
    } finally {
      contents.close();
    }
  }
}

/** Number of bytes of an insert that are in memory at a time. */
const pieceBytes = 262_144;

function* encodeFile(base: ByteSource, next: ByteSource): Generator<Buffer> {
  let copyEnd = 0;
  for (const instruction of matchBytes(base, next)) {
    yield encodeInstruction(instruction, copyEnd);
    const { kind, offset, length } = instruction;
    if (kind === 'copy') copyEnd = offset + length;
    else yield* piecesOf(next, offset, offset + length);
  }
}

function* piecesOf(source: ByteSource, from: number, to: number): Generator<Buffer> {
  // Copies the bytes, because the caller compresses them later.
  for (let at = from; at < to; at += pieceBytes)
    yield Buffer.from(source.read(at, Math.min(pieceBytes, to - at)));
}
