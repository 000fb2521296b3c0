// How long a row of deltas a host keeps behind one archive. What it has for itself is made again by them one after the other, so
// that the row is bounded in time and in bytes. Pure.

import type { Digest } from '../names.js';
import { type DeltaInfo, usableDelta } from './deltas.js';

/** Each one is a whole tree to make. */
export const maxKeptDeltas = 16;

/** Lengths, as far as the rule needs them. */
export interface KeptLengths {
  /** Of the deltas that are kept for the base already. */
  readonly deltas: readonly { readonly length: number }[];
}

/**
 * @param from digest of the manifest of the base
 * @param archiveBytes signed length of the archive of the new release
 * @returns the delta to take; undefined where the archive is to come, so that a new row begins
 */
export function deltaToTake(
  deltas: readonly DeltaInfo[] | undefined,
  { from, kept, archiveBytes }: { from: Digest; kept: KeptLengths; archiveBytes: number },
): DeltaInfo | undefined {
  const delta = usableDelta(deltas, new Set([from]), archiveBytes);
  if (delta === undefined || kept.deltas.length >= maxKeptDeltas) return undefined;
  const keptBytes = kept.deltas.reduce((sum, { length }) => sum + length, delta.length);
  // Beside an archive no more than one more of it: that is the room that a release has always taken.
  return keptBytes <= archiveBytes ? delta : undefined;
}
