// Which partial downloads are used, and which are removed. Pure: the facts of the files are arguments.

/** Since the last byte of a partial download. */
export const partialRetentionMs = 86_400_000;
/** Of all downloads together. */
export const maxPartials = 8;

/** Facts of a file, as `lstat` has them. */
export interface PartialFacts extends Readonly<Record<'mode' | 'nlink' | 'uid' | 'size', number>> {
  isFile(): boolean;
}

/**
 * True for a file that only this user can have written. A link, a pipe, a second name of another file, or a file that other users may
 * write is neither continued nor written to.
 */
export function isOwnPartial(facts: PartialFacts, uid: number): boolean {
  const { mode, nlink, size } = facts;
  return facts.isFile() && facts.uid === uid && nlink === 1 && (mode & 0o7777) === 0o600 && size > 0;
}

export interface FoundPartial {
  readonly name: string;
  readonly sizeBytes: number;
  /** Epoch milliseconds: when its last byte came. */
  readonly modifiedMs: number;
}

/**
 * @param maxBytes of all downloads together; the newest one is kept in any case
 * @returns the names of those to remove: too old, from the future, or beyond the limits
 */
export function partialsToDrop(
  found: readonly FoundPartial[],
  { nowMs, maxBytes }: { readonly nowMs: number; readonly maxBytes: number },
): string[] {
  const newestFirst = [...found].sort((a, b) => b.modifiedMs - a.modifiedMs);
  let kept = 0;
  let bytes = 0;
  return newestFirst.flatMap(({ name, sizeBytes, modifiedMs }) => {
    const isRecent = Math.abs(nowMs - modifiedMs) < partialRetentionMs;
    const fits = kept === 0 || (kept < maxPartials && bytes + sizeBytes <= maxBytes);
    if (!isRecent || !fits) return [name];
    kept += 1;
    bytes += sizeBytes;
    return [];
  });
}
