// Measures how much of a bundle a release changes, and finds what exceeds a bound. A publisher compares with the head of a channel,
// a host with its active release. Pure.
import { sizeText } from '../size-text.js';
import { diffManifests, type Manifest, type ManifestDifference } from './manifest.js';

export interface TreeSize {
  readonly files: number;
  readonly bytes: number;
}

export interface EmptiedFile {
  readonly path: string;
  readonly bytesBefore: number;
}

export interface TreeChange {
  readonly before: TreeSize;
  readonly after: TreeSize;
  /** By path: a renamed file counts as removed and added. */
  readonly difference: ManifestDifference;
  /** Files in both trees that are empty now and were not before. */
  readonly emptied: readonly EmptiedFile[];
}

/** A change that exceeds a bound, as text: `at most 50% of 4 files removed` and `3 of 4 files removed (75%)`. */
export interface ChangeExcess {
  readonly rule:
    | 'bundle-empty'
    | 'files-removed'
    | 'bytes-removed'
    | 'file-emptied'
    | 'files-added'
    | 'bytes-added'
    | 'file-removed';
  readonly expected: string;
  readonly actual: string;
}

/** The bounds of a publisher on one change. */
export interface ChangeBounds {
  /** Percentage of the files, and of the bytes, that may be removed. */
  readonly maxRemovedPercent: number;
  /** Percentage by which files and bytes may grow; undefined: unlimited. */
  readonly maxGrowthPercent?: number | undefined;
}

export const defaultMaxRemovedPercent = 50;
/** A file of at most this size may become empty, because it can be a marker. */
export const maxMarkerBytes = 1000;

/** @returns the change between two trees of one bundle */
export function measureChange(before: Manifest, after: Manifest): TreeChange {
  const sizes = new Map(before.files.map((file) => [file.path, file.sizeBytes]));
  const emptied = after.files.flatMap(({ path, sizeBytes }): EmptiedFile[] => {
    const bytesBefore = sizes.get(path) ?? 0;
    return sizeBytes === 0 && bytesBefore > 0 ? [{ path, bytesBefore }] : [];
  });
  const difference = diffManifests(before, after);
  return { before: sizeOf(before), after: sizeOf(after), difference, emptied };
}

function sizeOf({ files }: Manifest): TreeSize {
  return { files: files.length, bytes: files.reduce((sum, file) => sum + file.sizeBytes, 0) };
}

/** @returns true if the part is more than this percentage of the whole, without rounding */
export function exceedsPercent(part: number, whole: number, percent: number): boolean {
  return part * 100 > whole * percent;
}

/** @returns true if the part is less than this percentage of the whole, without rounding */
export function fallsShortOfPercent(part: number, whole: number, percent: number): boolean {
  return part * 100 < whole * percent;
}

/**
 * Finds the parts of a change that exceed the bounds of a publisher. A tree without files or bytes may grow to any size, because
 * there is no percentage of zero.
 * @returns the worst first; empty for a change within the bounds
 */
export function excessOfChange(change: TreeChange, bounds: ChangeBounds): ChangeExcess[] {
  const { before, after } = change;
  const isEmpty = before.bytes > 0 && after.bytes === 0;
  // Nothing is left, so that the other rules would only repeat this.
  if (isEmpty) {
    const actual = `no byte of ${sizeText(before.bytes)} left`;
    return [{ rule: 'bundle-empty', expected: 'some content', actual }];
  }
  return [
    ...removedFiles(change, bounds.maxRemovedPercent),
    ...removedBytes(change, bounds.maxRemovedPercent),
    ...emptiedFiles(change),
    ...(bounds.maxGrowthPercent === undefined ? [] : growth(change, bounds.maxGrowthPercent)),
  ];
}

/** @returns an excess if more than this percentage of the files was removed */
export function removedFiles({ before, difference }: TreeChange, maxPercent: number): ChangeExcess[] {
  const gone = difference.removed.length;
  if (!exceedsPercent(gone, before.files, maxPercent)) return [];
  const expected = `at most ${maxPercent}% of ${countOf(before.files)} removed`;
  const actual = `${gone} of ${countOf(before.files)} removed (${percentAbove(gone, before.files)})`;
  return [{ rule: 'files-removed', expected, actual }];
}

function removedBytes({ before, after }: TreeChange, maxPercent: number): ChangeExcess[] {
  const gone = before.bytes - after.bytes;
  if (!exceedsPercent(gone, before.bytes, maxPercent)) return [];
  const expected = `at most ${maxPercent}% of ${sizeText(before.bytes)} removed`;
  const actual = `${sizeText(gone)} of ${sizeText(before.bytes)} removed (${percentAbove(gone, before.bytes)})`;
  return [{ rule: 'bytes-removed', expected, actual }];
}

function emptiedFiles({ emptied }: TreeChange): ChangeExcess[] {
  const lost = emptied.filter(({ bytesBefore }) => bytesBefore > maxMarkerBytes);
  const [first] = lost;
  if (first === undefined) return [];
  const others = lost.length === 1 ? '' : ` and ${lost.length - 1} more`;
  return [
    {
      rule: 'file-emptied',
      expected: `no file of more than ${sizeText(maxMarkerBytes)} emptied`,
      actual: `${first.path} (${sizeText(first.bytesBefore)})${others} emptied`,
    },
  ];
}

function growth({ before, after }: TreeChange, maxPercent: number): ChangeExcess[] {
  const found: ChangeExcess[] = [];
  const moreFiles = after.files - before.files;
  if (before.files > 0 && exceedsPercent(moreFiles, before.files, maxPercent)) {
    const expected = `at most ${maxPercent}% more than ${countOf(before.files)}`;
    const actual = `${countOf(after.files)} (${percentAbove(moreFiles, before.files)} more)`;
    found.push({ rule: 'files-added', expected, actual });
  }
  const moreBytes = after.bytes - before.bytes;
  if (before.bytes > 0 && exceedsPercent(moreBytes, before.bytes, maxPercent)) {
    const expected = `at most ${maxPercent}% more than ${sizeText(before.bytes)}`;
    const actual = `${sizeText(after.bytes)} (${percentAbove(moreBytes, before.bytes)} more)`;
    found.push({ rule: 'bytes-added', expected, actual });
  }
  return found;
}

/**
 * Rounds up, so that an excess is never shown as the bound itself.
 * @returns as `50.1%`
 */
export function percentAbove(part: number, whole: number): string {
  return percentText(Math.ceil((part * 1000) / whole));
}

/**
 * Rounds down, for a part that is less than a bound.
 * @returns as `49.9%`
 */
export function percentBelow(part: number, whole: number): string {
  return percentText(Math.floor((part * 1000) / whole));
}

function percentText(perMille: number): string {
  return `${perMille / 10}%`;
}

function countOf(files: number): string {
  return `${files} file${files === 1 ? '' : 's'}`;
}
