// What the publisher signs about the deltas of a release: from which tree each one leads to it. Owns the shape of these members and
// their parser, and which of them a host takes; what is inside of a delta is core/delta's.
import { type Digest, digestFromHex, digestHex } from '../names.js';

/** One delta of a release: another way to the same manifest. */
export interface DeltaInfo {
  /** Digest of the manifest of its base: two trees may share a serial where a repository was lost, never a digest. */
  readonly from: Digest;
  /** Of its file. */
  readonly digest: Digest;
  readonly length: number;
}

/** Hosts keep them in the record of every release. */
export const maxDeltas = 8;

/** @returns the member `deltas` of `custom.writ` */
export function encodeDeltas(deltas: readonly DeltaInfo[]): Record<string, unknown>[] {
  return deltas.map(({ from, digest, length }) => ({
    from: digestHex(from),
    length,
    sha256: digestHex(digest),
  }));
}

/**
 * @param to digest of the manifest of the release
 * @returns undefined for what no publisher of ours writes
 */
export function parseDeltas(rows: unknown, to: Digest): readonly DeltaInfo[] | undefined {
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > maxDeltas) return undefined;
  const deltas = rows.flatMap((row: unknown) => parseDelta(row) ?? []);
  // Two ways from one base, or one from the release to itself: which is right could not be said.
  const bases = new Set<Digest>([to, ...deltas.map(({ from }) => from)]);
  return bases.size === rows.length + 1 ? deltas : undefined;
}

function parseDelta(row: unknown): DeltaInfo | undefined {
  if (typeof row !== 'object' || row === null) return undefined;
  const { from, length, sha256 } = row as Record<string, unknown>;
  const [base, digest] = [digestFromHex(from), digestFromHex(sha256)];
  if (base === undefined || digest === undefined) return undefined;
  if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 1) return undefined;
  return { from: base, digest, length };
}

/**
 * @param bases digests of manifests that the host has whole
 * @returns the smallest delta from one of them; undefined where none saves bytes against the archive
 */
export function usableDelta(
  deltas: readonly DeltaInfo[] | undefined,
  bases: ReadonlySet<Digest>,
  archiveBytes: number,
): DeltaInfo | undefined {
  const usable = (deltas ?? []).filter(({ from, length }) => bases.has(from) && length < archiveBytes);
  return usable.sort((a, b) => a.length - b.length)[0];
}
