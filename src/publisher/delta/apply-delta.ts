// Applies a delta as a host does and keeps no output: verifies that it produces the signed files from its base. Used by a
// publish before it signs, and by `writ repo check`.
import { createHash, type Hash } from 'node:crypto';
import * as fs from 'node:fs';
import type { ByteSource } from '../../core/delta/byte-source.js';
import { malformedDelta } from '../../core/delta/delta-format.js';
import { createDeltaReader, type DeltaReader, type DeltaReading } from '../../core/delta/delta-reader.js';
import { WritError } from '../../core/errors.js';
import { digestHex } from '../../core/names.js';
import type { ManifestFile } from '../../core/release/manifest.js';
import { decompress } from '../archive/archive-reader.js';

export interface DeltaTrial extends DeltaReading {
  /** The path of the delta. */
  readonly path: string;
  source(file: ManifestFile | undefined): ByteSource;
}

/** The bytes of a copy that are in memory at a time. */
const pieceBytes = 262_144;

/**
 * Verifies that a delta produces the signed files.
 * @throws WritError DELTA_MALFORMED; MANIFEST_MALFORMED, ARCHIVE_LIMIT of the signed manifest; DISK_*
 */
export async function requireDeltaResult(trial: DeltaTrial): Promise<void> {
  let open: { file: ManifestFile; digest: Hash; source: ByteSource } | undefined;
  const reader = createDeltaReader(trial, {
    manifest: () => undefined,
    open: (file, from) => {
      open = { file, digest: createHash('sha256'), source: trial.source(from) };
    },
    literal: (chunk) => void open?.digest.update(chunk),
    copy: (offset, length) => {
      for (let at = offset; at < offset + length; at += pieceBytes) {
        open?.digest.update(open.source.read(at, Math.min(pieceBytes, offset + length - at)));
      }
    },
    close: () => {
      const actual = open?.digest.digest('hex');
      if (open !== undefined && actual !== digestHex(open.file.digest)) throw wrong(open.file.path);
    },
  });
  await readDelta(trial.path, reader);
}

/**
 * @returns the files of the base that a delta copies from. @throws WritError as requireDeltaResult, except for a wrong
 *   result
 */
export async function readSources(trial: Omit<DeltaTrial, 'source'>): Promise<ManifestFile[]> {
  const sources: ManifestFile[] = [];
  const nothing = (): void => undefined;
  const open = (_file: ManifestFile, from: ManifestFile | undefined): void =>
    void (from && sources.push(from));
  const visitor = { manifest: nothing, open, literal: nothing, copy: nothing, close: nothing };
  await readDelta(trial.path, createDeltaReader(trial, visitor));
  return sources;
}

/** Reads a delta to its end. @throws WritError DELTA_MALFORMED for input that is not Brotli; and errors of the reader */
export async function readDelta(path: string, reader: DeltaReader): Promise<void> {
  for await (const chunk of decodedPieces(path)) reader.write(chunk);
  reader.finish();
}

/**
 * @returns the decoded bytes of the Brotli stream; the caller bounds them. @throws WritError DELTA_MALFORMED for other
 *   input
 */
export function decodedPieces(path: string): AsyncGenerator<Buffer> {
  return decompress(readPieces(path), (what) => malformedDelta(what));
}

async function* readPieces(path: string): AsyncGenerator<Buffer> {
  for await (const chunk of fs.createReadStream(path)) yield chunk as Buffer;
}

function wrong(path: string): WritError {
  return new WritError('DELTA_MALFORMED', `the delta does not produce ${path}`, { facts: { path } });
}
