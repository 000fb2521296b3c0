// Two releases in memory and the delta between them.
import { createHash } from 'node:crypto';
import { bytesAsSource } from '../../../src/core/delta/byte-source.js';
import { createDeltaReader, type DeltaReading } from '../../../src/core/delta/delta-reader.js';
import { encodeDelta } from '../../../src/core/delta/delta-writer.js';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { type Digest, digestFromHex } from '../../../src/core/names.js';
import { encodeManifest, type Manifest, manifestDigest } from '../../../src/core/release/manifest.js';

export type Tree = Readonly<Record<string, Buffer | string>>;

export interface TreeRelease {
  readonly manifest: Manifest;
  readonly manifestBytes: Buffer;
  readonly contents: ReadonlyMap<string, Buffer>;
}

/** @param tree contents by path */
export function releaseOf(tree: Tree): TreeRelease {
  const paths = Object.keys(tree).sort();
  const contents = new Map(paths.map((path) => [path, Buffer.from(tree[path] ?? '')]));
  const files = [...contents].map(([path, bytes]) => {
    const digest = digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;
    return { path, sizeBytes: bytes.length, digest, executable: false };
  });
  return { manifest: { files }, manifestBytes: encodeManifest({ files }), contents };
}

/** @returns a delta before its compression */
export function deltaOf(base: TreeRelease, next: TreeRelease): Buffer {
  const pieces = encodeDelta(base, next, ({ file, from }) => ({
    next: bytesAsSource(next.contents.get(file.path) ?? Buffer.alloc(0)),
    base: bytesAsSource(base.contents.get(from?.path ?? '') ?? Buffer.alloc(0)),
    close: () => undefined,
  }));
  return Buffer.concat([...pieces]);
}

/** @returns the arguments of a delta reader with default limits and the signed manifest of `next` */
export function readingOf(base: TreeRelease, next: TreeRelease): DeltaReading {
  const { manifestBytes } = next;
  const manifest = { digest: manifestDigest(manifestBytes), length: manifestBytes.length };
  return { base, manifest, deltaBytes: 1_000_000, limits: defaultArchiveLimits };
}

export interface Applied {
  readonly manifest: Manifest | undefined;
  /** By path: the files that the delta carried. */
  readonly made: Readonly<Record<string, string>>;
  /** `PATH < FROM`, copies and literals, in order. */
  readonly events: readonly string[];
}

/** Applies a delta in memory. @param sizes of the pieces in bytes, used repeatedly */
export function applyDelta(
  base: TreeRelease,
  next: TreeRelease,
  { delta, sizes = [delta.length], ...changes }: { delta: Buffer; sizes?: number[] } & Partial<DeltaReading>,
): Applied {
  const made: Record<string, string> = {};
  const events: string[] = [];
  let manifest: Manifest | undefined;
  let open: { readonly path: string; readonly from: Buffer } = { path: '', from: Buffer.alloc(0) };
  const reader = createDeltaReader(
    { ...readingOf(base, next), ...changes },
    {
      manifest: (read) => {
        manifest = read;
      },
      open: (file, from) => {
        open = { path: file.path, from: base.contents.get(from?.path ?? '') ?? Buffer.alloc(0) };
        made[file.path] = '';
        events.push(`${file.path} < ${from?.path ?? 'nothing'}`);
      },
      literal: (chunk) => {
        made[open.path] += chunk.toString('latin1');
        events.push(`insert ${chunk.length}`);
      },
      copy: (offset, length) => {
        if (offset < 0 || offset + length > open.from.length) throw new RangeError('outside of the base');
        made[open.path] += open.from.toString('latin1', offset, offset + length);
        events.push(`copy ${offset}+${length}`);
      },
      close: () => events.push('close'),
    },
  );
  for (let at = 0, turn = 0; at < delta.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    reader.write(delta.subarray(at, at + size));
    at += size;
  }
  reader.finish();
  return { manifest, made, events };
}
