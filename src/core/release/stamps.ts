// Stamps: files of a bundle into which its publisher wrote serial and source, and what they were before. Owns what the
// metadata says of them and how they are compared; the publisher fills them in. A release that differs in stamps alone
// has the same source, and is news to nobody.
import { type Digest, digestFromHex, digestHex } from '../names.js';
import type { Manifest } from './manifest.js';

/** One stamped file, as it was before. */
export interface Stamp {
  readonly path: string;
  readonly length: number;
  readonly digest: Digest;
}

export interface Stamped {
  /** Digest of the manifest of the tree as it was before. */
  readonly source: Digest;
  readonly stamps: readonly Stamp[];
}

/** Hosts keep them in the record of every release, and compare each. */
export const maxStamps = 100;
const maxPathCharacters = 4096;

/** @returns the members of `custom.writ` */
export function encodeStamps({ source, stamps }: Stamped): Record<string, unknown> {
  const rows = stamps.map(({ path, length, digest }) => ({ path, length, sha256: digestHex(digest) }));
  return { source: digestHex(source), stamps: rows };
}

/** @returns undefined for what no publisher of ours writes */
export function parseStamps(source: unknown, rows: unknown): Stamped | undefined {
  const digest = digestFromHex(source);
  if (digest === undefined || !Array.isArray(rows)) return undefined;
  if (rows.length === 0 || rows.length > maxStamps) return undefined;
  const stamps = rows.flatMap((one: unknown) => parseStamp(one) ?? []);
  // A path twice would let a file have been two.
  const paths = new Set(stamps.map(({ path }) => path));
  return paths.size === rows.length ? { source: digest, stamps } : undefined;
}

function parseStamp(row: unknown): Stamp | undefined {
  if (typeof row !== 'object' || row === null) return undefined;
  const { path, length, sha256 } = row as Record<string, unknown>;
  const digest = digestFromHex(sha256);
  if (typeof path !== 'string' || path === '' || path.length > maxPathCharacters) return undefined;
  if (digest === undefined || typeof length !== 'number' || !Number.isSafeInteger(length) || length < 1)
    return undefined;
  return { path, length, digest };
}

/** @returns the manifest of the tree as it was before; a stamp of a file that it does not have is for nothing */
export function unstamped(manifest: Manifest, stamps: readonly Stamp[] = []): Manifest {
  if (stamps.length === 0) return manifest;
  const before = new Map(stamps.map((one) => [one.path, one]));
  return {
    files: manifest.files.map((file) => {
      const stamp = before.get(file.path);
      return stamp === undefined ? file : { ...file, sizeBytes: stamp.length, digest: stamp.digest };
    }),
  };
}

interface StampedRelease {
  readonly stamped?: Stamped;
  readonly manifest: { readonly digest: Digest };
}

const sourceNameCharacters = 16;

/** @returns what stands for `@writ.source@` in a stamped file, and for `{source}` in a probe */
export function sourceName({ stamped, manifest }: StampedRelease): string {
  return digestHex(stamped?.source ?? manifest.digest).slice(0, sourceNameCharacters);
}
