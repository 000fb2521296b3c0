// Which partials are used and which go. Pure: what the disk says of them comes in as values.

/** Of the last byte of one that stays. */
export const partialLifeMs = 86_400_000;
/** Of all together. */
export const maxPartials = 8;

/** As the disk says it of a file. */
export interface PartialFacts extends Readonly<Record<'mode' | 'nlink' | 'uid' | 'size', number>> {
  isFile(): boolean;
}

/**
 * True for what only this user can have written: a link, a pipe, a second name of somebody's file, or a file that others may
 * write to is not gone on with, and not written into.
 */
export function isOurs(facts: PartialFacts, uid: number): boolean {
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
 * @param maxBytes of all together; the newest stays in any case
 * @returns the names of those that go: too old, from the future, or too many beside newer ones
 */
export function partialsToDrop(
  found: readonly FoundPartial[],
  { nowMs, maxBytes }: { readonly nowMs: number; readonly maxBytes: number },
): string[] {
  const newestFirst = [...found].sort((a, b) => b.modifiedMs - a.modifiedMs);
  let kept = 0;
  let bytes = 0;
  return newestFirst.flatMap(({ name, sizeBytes, modifiedMs }) => {
    const isRecent = Math.abs(nowMs - modifiedMs) < partialLifeMs;
    const hasRoom = kept === 0 || (kept < maxPartials && bytes + sizeBytes <= maxBytes);
    if (!isRecent || !hasRoom) return [name];
    kept += 1;
    bytes += sizeBytes;
    return [];
  });
}
