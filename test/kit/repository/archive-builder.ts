// Builds tar files byte by byte, so that a test can write entries that no correct tool writes, with the signed target of an
// archive. It shares only the form of manifests with the code under test.
import { createHash } from 'node:crypto';
import { brotliCompressSync, constants } from 'node:zlib';
import { type Digest, digestFromHex } from '../../../src/core/names.js';
import {
  encodeManifest,
  type ManifestFile,
  manifestDigest,
  manifestName,
} from '../../../src/core/release/manifest.js';
import type { ReleaseInfo } from '../../../src/core/release/release.js';
import type { SignedTarget } from '../../../src/trust/signed-target.js';

export interface EntryFields {
  readonly path: string | Buffer;
  readonly content?: string | Buffer;
  readonly mode?: number;
  /** Typeflag, as `0` for a file. */
  readonly type?: string;
  readonly link?: string;
  /** Size in the header; that of the content by default. */
  readonly size?: number;
  /** Raw bytes of the header, set before its checksum, as `{ at: 124, bytes: ... }`. */
  readonly patch?: readonly { readonly at: number; readonly bytes: Buffer }[];
  readonly checksum?: string;
}

/** @returns one entry: header, content, padding */
export function tarEntry(fields: EntryFields): Buffer {
  const content = Buffer.from(fields.content ?? '');
  const header = Buffer.alloc(512);
  Buffer.from(fields.path).copy(header, 0, 0, 100);
  header.write(`${octal(fields.mode ?? 0o644, 7)}\0`, 100);
  header.write(`${octal(0, 7)}\0`, 108);
  header.write(`${octal(0, 7)}\0`, 116);
  header.write(`${octal(fields.size ?? content.length, 11)}\0`, 124);
  header.write(`${octal(0, 11)}\0`, 136);
  header.write(fields.type ?? '0', 156, 'latin1');
  header.write(fields.link ?? '', 157);
  header.write('ustar\u000000', 257);
  for (const { at, bytes } of fields.patch ?? []) bytes.copy(header, at);
  header.write(fields.checksum ?? `${octal(checksum(header), 6)}\0 `, 148, 'latin1');
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

function checksum(header: Buffer): number {
  return header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}

/** @returns a PAX header with these records and their correct lengths; `raw` replaces the body */
export function paxEntry(
  records: readonly (readonly [string, string | Buffer])[],
  { raw }: { raw?: Buffer } = {},
): Buffer {
  const content = raw ?? Buffer.concat(records.map(([key, value]) => paxRecord(key, Buffer.from(value))));
  return tarEntry({ path: 'PaxHeader/x', type: 'x', content });
}

function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length += 1;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

export const endOfArchive: Buffer = Buffer.alloc(1024);

export interface BundleFile {
  readonly path: string;
  readonly content: string | Buffer;
  readonly executable?: boolean;
}

/** @returns the digest in the form of manifests */
export function sha256(bytes: Uint8Array | string): Digest {
  return digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;
}

/** @returns the entry that a manifest has for this file */
export function manifestFile({ path, content, executable = false }: BundleFile): ManifestFile {
  const bytes = Buffer.from(content);
  return { path, sizeBytes: bytes.length, digest: sha256(bytes), executable };
}

/** @returns the canonical manifest of these files as bytes */
export function manifestOf(files: readonly BundleFile[]): Buffer {
  return encodeManifest({ files: files.map(manifestFile) });
}

/** @returns a correct entry of a file, with a PAX path if the name is too long for the header */
export function fileEntry({ path, content, executable = false }: BundleFile): Buffer {
  const entry = tarEntry({ path, content, mode: executable ? 0o755 : 0o644 });
  return Buffer.byteLength(path) > 100 ? Buffer.concat([paxEntry([['path', path]]), entry]) : entry;
}

/** @returns a correct tar: manifest, files sorted by the bytes of their paths, end */
export function bundleTar(files: readonly BundleFile[]): Buffer {
  const sorted = [...files].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const manifest = tarEntry({ path: manifestName, content: manifestOf(files) });
  return Buffer.concat([manifest, ...sorted.map(fileEntry), endOfArchive]);
}

/** @returns the tar with Brotli at a faster level than a publisher's */
export function pack(tar: Buffer): Buffer {
  return brotliCompressSync(tar, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
}

/**
 * @param archive the packed bytes of the listed digest and length
 * @param manifest the bytes of the signed digest
 * @returns the signed target of an archive
 */
export function signedTarget(
  archive: Uint8Array,
  manifest: Uint8Array,
  changes: { target?: Partial<SignedTarget>; release?: Partial<ReleaseInfo> } = {},
): SignedTarget {
  const digest = sha256(archive);
  const path = 'dns-edge/stable.tar.br';
  return {
    path,
    file: { length: archive.length, hashes: { sha256: digest.slice('sha256:'.length) } },
    release: {
      bundle: 'dns-edge',
      channel: 'stable',
      serial: 7,
      revision: 'test',
      createdAtMs: Date.UTC(2026, 10, 1),
      manifest: { digest: manifestDigest(manifest), length: manifest.length },
      withdrawn: [],
      ...changes.release,
    },
    archivePath: `targets/dns-edge/${digest.slice('sha256:'.length)}.stable.tar.br`,
    length: archive.length,
    digest,
    vouchedBy: {
      role: 'targets',
      bytes: new Uint8Array(),
      rootVersion: 1,
      chain: [{ role: 'targets', bytes: new Uint8Array() }],
    },
    ...changes.target,
  };
}
