// Files of a release with their stamps, and the signed description of the stamps, as a publisher makes both. Each file with a
// mark is stamped.
import { createHash } from 'node:crypto';
import type { Digest } from '../../../src/core/names.js';
import { encodeManifest, type ManifestFile, manifestDigest } from '../../../src/core/release/manifest.js';
import { findMarks, type Stamped, sourceName, stampMarks } from '../../../src/core/release/stamps.js';

export interface StampedFiles {
  readonly files: Readonly<Record<string, string>>;
  readonly stamped: Stamped;
}

const digestOf = (text: string): Digest =>
  `sha256:${createHash('sha256').update(text).digest('hex')}` as Digest;

/** @param source texts by path, with marks in them */
export function stampedFiles(source: Readonly<Record<string, string>>, serial: number): StampedFiles {
  const files = Object.entries(source).map(([path, text]): ManifestFile => {
    return { path, sizeBytes: Buffer.byteLength(text), digest: digestOf(text), executable: false };
  });
  const tree = manifestDigest(encodeManifest({ files }));
  const stamps = Object.entries(source).flatMap(([path, text]) => {
    const at = findMarks(Buffer.from(text));
    return at === undefined ? [] : [{ path, length: Buffer.byteLength(text), digest: digestOf(text), at }];
  });
  const stamped: Stamped = { source: tree, stamps };
  const name = sourceName({ stamped, manifest: { digest: tree } });
  const fill = (text: string): string =>
    text.replaceAll(stampMarks.serial, String(serial)).replaceAll(stampMarks.source, name);
  return {
    files: Object.fromEntries(Object.entries(source).map(([path, text]) => [path, fill(text)])),
    stamped,
  };
}
