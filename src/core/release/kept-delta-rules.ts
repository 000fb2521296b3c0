// Limits the chain of deltas that a host retains after an archive. To repair a release, the host applies the chain to the archive,
// so that it is bounded in time and bytes. Pure.

import type { Digest } from '../names.js';
import { type DeltaInfo, usableDelta } from './deltas.js';

/** Each delta of the chain produces a complete tree. */
export const maxKeptDeltas = 16;

/** The lengths that the rule needs. */
export interface KeptLengths {
  /** The deltas that are retained for the base already. */
  readonly deltas: readonly { readonly length: number }[];
}

/**
 * @param from digest of the manifest of the base
 * @param archiveBytes signed length of the archive of the new release
 * @returns the smallest delta from the base; undefined if the archive must be fetched, which begins a new chain: no delta is
 *   smaller than the archive, the chain would have more than 16 deltas, or more bytes than the archive
 */
export function deltaToTake(
  deltas: readonly DeltaInfo[] | undefined,
  { from, kept, archiveBytes }: { from: Digest; kept: KeptLengths; archiveBytes: number },
): DeltaInfo | undefined {
  const delta = usableDelta(deltas, new Set([from]), archiveBytes);
  if (delta === undefined || kept.deltas.length >= maxKeptDeltas) return undefined;
  const keptBytes = kept.deltas.reduce((sum, { length }) => sum + length, delta.length);
  // The deltas may have as many bytes as the archive, because a release has always needed the space of two archives.
  return keptBytes <= archiveBytes ? delta : undefined;
}
