// The signed list of the deltas of a release: their base releases, digests and lengths. Has the type, the parser, and the choice of
// a delta by a host. src/core/delta has the format of a delta.
import { type Digest, digestFromHex, digestHex } from '../names.js';

/** One delta of a release. It produces the tree of the same manifest. */
export interface DeltaInfo {
  /**
   * Digest of the manifest of its base release. A serial is not enough, because two trees may share one after a repository was lost.
   */
  readonly from: Digest;
  /** Digest of the file of the delta. */
  readonly digest: Digest;
  readonly length: number;
}

/** Hosts store them in the record of each release. */
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
 * @returns undefined for a list that no publisher of Writ writes
 */
export function parseDeltas(rows: unknown, to: Digest): readonly DeltaInfo[] | undefined {
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > maxDeltas) return undefined;
  const deltas = rows.flatMap((row: unknown) => parseDelta(row) ?? []);
  // Two deltas with one base, or one from the release to itself, would be ambiguous.
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
 * @param bases digests of the manifests of the complete trees on the host
 * @returns the smallest delta from one of them; undefined if none is smaller than the archive
 */
export function usableDelta(
  deltas: readonly DeltaInfo[] | undefined,
  bases: ReadonlySet<Digest>,
  archiveBytes: number,
): DeltaInfo | undefined {
  const usable = (deltas ?? []).filter(({ from, length }) => bases.has(from) && length < archiveBytes);
  return usable.sort((a, b) => a.length - b.length)[0];
}
