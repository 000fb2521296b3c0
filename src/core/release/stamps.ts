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
  /** Where each mark began in it: with them every host makes the file of before again, and proves this row. */
  readonly at: readonly StampPlace[];
}

export interface StampPlace {
  readonly offset: number;
  readonly mark: StampMark;
}

export type StampMark = 'serial' | 'source';
/** What the user writes in the syntax of his own file. */
export const stampMarks: Readonly<Record<StampMark, string>> = {
  serial: '@writ.serial@',
  source: '@writ.source@',
};

export interface Stamped {
  /** Digest of the manifest of the tree as it was before. */
  readonly source: Digest;
  readonly stamps: readonly Stamp[];
}

/** Hosts keep them in the record of every release, and compare each. */
export const maxStamps = 100;
/** Of one file: its metadata must stay small. */
export const maxStampPlaces = 1000;
/** Of all stamped files of a release together, before they are filled: they are in memory. */
export const maxStampedBytes = 64_000_000;
/** Of one that is filled: a serial and a source are at most three bytes longer than their marks. */
export const maxFilledBytes: number = maxStampedBytes + 3 * maxStampPlaces;
const maxPathCharacters = 4096;

/** @returns the members of `custom.writ` */
export function encodeStamps({ source, stamps }: Stamped): Record<string, unknown> {
  const rows = stamps.map(({ path, length, digest, at }) => {
    const offsets = (mark: StampMark): number[] =>
      at.filter((one) => one.mark === mark).map(({ offset }) => offset);
    return {
      path,
      length,
      sha256: digestHex(digest),
      serials: offsets('serial'),
      sources: offsets('source'),
    };
  });
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
  const { path, length, sha256, serials, sources } = row as Record<string, unknown>;
  const digest = digestFromHex(sha256);
  const at = placesOf(serials, sources);
  if (typeof path !== 'string' || path === '' || path.length > maxPathCharacters) return undefined;
  if (digest === undefined || typeof length !== 'number' || !Number.isSafeInteger(length) || length < 1)
    return undefined;
  return at === undefined ? undefined : { path, length, digest, at };
}

/** @returns in their order; undefined where none or too many are named, or one twice */
function placesOf(serials: unknown, sources: unknown): readonly StampPlace[] | undefined {
  if (!Array.isArray(serials) || !Array.isArray(sources)) return undefined;
  const placed = (mark: StampMark) => (offset: unknown) => ({ offset: Number(offset), mark });
  const at = [...serials.map(placed('serial')), ...sources.map(placed('source'))];
  const isWrong = ({ offset }: StampPlace): boolean => !Number.isSafeInteger(offset) || offset < 0;
  if (at.length === 0 || at.length > maxStampPlaces || at.some(isWrong)) return undefined;
  if ([...serials, ...sources].some((one) => typeof one !== 'number')) return undefined;
  return new Set(at.map(({ offset }) => offset)).size === at.length
    ? at.sort((a, b) => a.offset - b.offset)
    : undefined;
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

/** @returns where the marks begin; undefined where there are none, or too many */
export function findMarks(content: Buffer): readonly StampPlace[] | undefined {
  const at: StampPlace[] = [];
  for (const mark of ['serial', 'source'] as const) {
    const text = stampMarks[mark];
    for (
      let offset = content.indexOf(text);
      offset !== -1;
      offset = content.indexOf(text, offset + text.length)
    ) {
      at.push({ offset, mark });
      if (at.length > maxStampPlaces) return undefined;
    }
  }
  return at.length === 0 ? undefined : at.sort((a, b) => a.offset - b.offset);
}

/**
 * @param content of the stamped file
 * @param values what the marks stand for
 * @returns the file as it was before; undefined where something else than these values stands in a place
 */
export function unfilled(
  content: Buffer,
  at: readonly StampPlace[],
  values: Readonly<Record<StampMark, string>>,
): Buffer | undefined {
  const parts: Buffer[] = [];
  let [before, now] = [0, 0];
  for (const { offset, mark } of at) {
    const from = now + offset - before;
    const [value, text] = [Buffer.from(values[mark]), Buffer.from(stampMarks[mark])];
    if (from < now || !content.subarray(from, from + value.length).equals(value)) return undefined;
    parts.push(content.subarray(now, from), text);
    [before, now] = [offset + text.length, from + value.length];
  }
  return Buffer.concat([...parts, content.subarray(now)]);
}
