// Signed manifests that cost far more to read than to send. Each has two forms: bare, and with so much noise that the
// compression ratio of its archive is allowed. With the expected error codes.
import { brotliCompressSync, constants } from 'node:zlib';
import type { ErrorCode } from '../../../src/core/error-codes.js';
import { manifestName } from '../../../src/core/release/manifest.js';
import { seededBytes } from '../assert/seeded.js';
import { endOfArchive, tarEntry } from './archive-builder.js';

export interface ManifestBomb {
  readonly name: string;
  readonly code: ErrorCode;
  readonly archive: Buffer;
  /** The bytes of the signed digest. */
  readonly manifest: Buffer;
  /** The length in the metadata; the real one by default. */
  readonly manifestLength?: number;
}

const maxBytes = 64_000_000;
const digest = 'a'.repeat(64);

/** @returns a file entry of a manifest in canonical form */
export function row(path: string, size: number | string = 0): string {
  return `{"executable":false,"path":"${path}","sha256":"${digest}","size":${size}}`;
}

/** @param bytes approximate length of the manifest */
const shapes: Readonly<Record<string, { readonly code: ErrorCode; readonly of: (bytes: number) => string }>> =
  {
    objects: {
      code: 'MANIFEST_MALFORMED',
      of: (bytes) => filled('{"files":[', '{},', '{}],"writ":1}', bytes),
    },
    arrays: {
      code: 'MANIFEST_MALFORMED',
      of: (bytes) => filled('{"files":[', '[],', '[]],"writ":1}', bytes),
    },
    nest: { code: 'MANIFEST_MALFORMED', of: (bytes) => filled('{"files":[', '[', ']', bytes) },
    numbers: { code: 'MANIFEST_MALFORMED', of: (bytes) => filled('{"files":[', '1,', '1],"writ":1}', bytes) },
    'one path': {
      code: 'MANIFEST_MALFORMED',
      of: (bytes) => filled('{"files":[{"executable":false,"path":"', 'a', '","sh', bytes),
    },
    members: {
      code: 'MANIFEST_MALFORMED',
      of: (bytes) => `{${numbered(bytes, (n) => `"${n.toString(36).padStart(5, '0')}":1`)}}`,
    },
    rows: {
      code: 'ARCHIVE_LIMIT',
      of: (bytes) => rowsOf(bytes, (n) => `f${padded(n)}`),
    },
    // Each entry is in its own directory, so that the memory for a path must not grow with its length.
    directories: {
      code: 'MANIFEST_MISMATCH',
      of: (bytes) =>
        rowsOf(bytes, (n) => `${'d'.repeat(240)}/${'e'.repeat(240)}/${'f'.repeat(240)}/${padded(n)}/g`),
    },
    // One letter with a case folding of eighteen bytes.
    'folded names': {
      code: 'MANIFEST_MALFORMED',
      of: (bytes) => rowsOf(bytes, (n) => `${'\ufdfa'.repeat(80)}${padded(n)}`),
    },
  };

function padded(n: number): string {
  return String(n).padStart(7, '0');
}

function filled(head: string, piece: string, tail: string, bytes: number): string {
  return head + piece.repeat(Math.floor((bytes - head.length - tail.length) / piece.length)) + tail;
}

function rowsOf(bytes: number, path: (n: number) => string): string {
  return `{"files":[${numbered(bytes, (n) => row(path(n)))}],"writ":1}`;
}

function numbered(bytes: number, of: (n: number) => string): string {
  const count = Math.floor(bytes / (Buffer.byteLength(of(1_000_000)) + 1)) - 1;
  return Array.from({ length: count }, (_, n) => of(n)).join(',');
}

export interface BombOptions {
  /** Approximate length of a manifest in bytes; the maximum by default. */
  readonly bytes?: number;
  /** Writes an entry; in the canonical form by default. */
  readonly entry?: (path: string, content: Buffer) => Buffer;
}

/** @returns each shape twice: rejected for its ratio, and by its parser */
export function* manifestBombs({
  bytes = maxBytes,
  entry = plainEntry,
}: BombOptions = {}): Generator<ManifestBomb> {
  const packed = (manifest: Buffer, noiseBytes: number): Buffer =>
    compressed([
      entry(manifestName, manifest),
      ...(noiseBytes > 0 ? [entry('z', seededBytes(noiseBytes))] : []),
    ]);
  for (const [shape, { code, of }] of Object.entries(shapes)) {
    const manifest = Buffer.from(of(bytes));
    const bare = packed(manifest, 0);
    if (bare.length * 200 < manifest.length) {
      yield { name: `${shape}-bare`, code: 'ARCHIVE_LIMIT', archive: bare, manifest };
    }
    yield { name: `${shape}-heavy`, code, archive: packed(manifest, Math.ceil(bytes / 150)), manifest };
  }
  const manifest = Buffer.from('{"files":[],"writ":1}');
  const small = { code: 'ARCHIVE_LIMIT', archive: packed(manifest, 0), manifest } as const;
  yield { ...small, name: 'endless', manifestLength: Number.MAX_SAFE_INTEGER };
  yield { ...small, name: 'long', manifestLength: 2 * maxBytes };
}

function plainEntry(path: string, content: Buffer): Buffer {
  return tarEntry({ path, content });
}

function compressed(entries: readonly Buffer[]): Buffer {
  return brotliCompressSync(Buffer.concat([...entries, endOfArchive]), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_LGWIN]: 22 },
  });
}
