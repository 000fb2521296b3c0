// Deltas of releases for repositories in memory: made by the writer of Writ from one directory to the next, compressed, and
// served below targets/. A test may change the signed and the served bytes.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { type ByteSource, bytesAsSource } from '../../../src/core/delta/byte-source.js';
import { encodeDelta } from '../../../src/core/delta/delta-writer.js';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import type { DeltaInfo } from '../../../src/core/release/deltas.js';
import { encodeManifest, type Manifest, manifestDigest } from '../../../src/core/release/manifest.js';
import { readSourceTree } from '../../../src/publisher/archive/source-tree.js';
import { sha256 } from '../repository/archive-builder.js';

/** A published tree in its own directory. */
export interface PublishedTree {
  readonly directory: string;
  readonly manifest: Manifest;
  readonly manifestBytes: Buffer;
}

/** @returns the directory with the manifest that a publish signs for it */
export async function publishedTree(directory: string): Promise<PublishedTree> {
  const { manifest } = await readSourceTree(directory, defaultArchiveLimits);
  return { directory, manifest, manifestBytes: encodeManifest(manifest) };
}

/** @returns a delta before it is compressed */
export function plainDelta(base: PublishedTree, next: PublishedTree): Buffer {
  const source = (directory: string, path: string | undefined): ByteSource =>
    bytesAsSource(path === undefined ? Buffer.alloc(0) : fs.readFileSync(join(directory, path)));
  const pieces = encodeDelta(base, next, ({ file, from }) => ({
    next: source(next.directory, file.path),
    base: source(base.directory, from?.path),
    close: () => undefined,
  }));
  return Buffer.concat([...pieces]);
}

/** @returns the bytes in Brotli at a low quality, which is fast */
export function compress(plain: Buffer): Buffer {
  return brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
}

/** @returns the signed description of this delta */
export function describeDelta(base: PublishedTree, delta: Buffer): DeltaInfo {
  return { from: manifestDigest(base.manifestBytes), digest: sha256(delta), length: delta.length };
}

/** @returns its path in a repository */
export function deltaPlace(bundle: string, { digest }: DeltaInfo): string {
  return `targets/${bundle}/${digest.slice('sha256:'.length)}.stable.delta`;
}
