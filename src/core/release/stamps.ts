// Stamps: the places in files where the publisher wrote the serial and the source of a release, and the files before that. Has the
// signed description of stamps and their comparison; the publisher fills them in. Two releases that differ only in stamps have the
// same source.
import { type Digest, digestFromHex, digestHex } from '../names.js';
import type { Manifest } from './manifest.js';

/** One stamped file before its marks were filled in. */
export interface Stamp {
  readonly path: string;
  readonly length: number;
  readonly digest: Digest;
  /** Positions of the marks. With them a host restores the file before, and verifies this digest. */
  readonly at: readonly StampPlace[];
}

export interface StampPlace {
  readonly offset: number;
  readonly mark: StampMark;
}

export type StampMark = 'serial' | 'source';
/** The texts that a user writes into a file where a value belongs. */
export const stampMarks: Readonly<Record<StampMark, string>> = {
  serial: '@writ.serial@',
  source: '@writ.source@',
};

export interface Stamped {
  /** Digest of the manifest of the tree before its marks were filled in. */
  readonly source: Digest;
  readonly stamps: readonly Stamp[];
}

/** Hosts store them in the record of each release and compare each. */
export const maxStamps = 100;
/** Number of marks of one file, because its metadata must stay small. */
export const maxStampPlaces = 1000;
/** Total size of the stamped files of a release before they are filled in, because they are in memory. */
export const maxStampedBytes = 64_000_000;
/** Size of a file after it was filled in: a serial or a source is at most three bytes longer than its mark. */
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

/** @returns undefined for members that no publisher of Writ writes */
export function parseStamps(source: unknown, rows: unknown): Stamped | undefined {
  const digest = digestFromHex(source);
  if (digest === undefined || !Array.isArray(rows)) return undefined;
  if (rows.length === 0 || rows.length > maxStamps) return undefined;
  const stamps = rows.flatMap((one: unknown) => parseStamp(one) ?? []);
  // With one path twice, a file would have two former contents.
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

/** @returns the marks by offset; undefined if there are none or too many, or if two have one offset */
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

/** @returns the manifest of the tree before its marks were filled in; stamps of files that it does not list are ignored */
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

/** @returns the value of `@writ.source@` in a stamped file and of `{source}` in a probe */
export function sourceName({ stamped, manifest }: StampedRelease): string {
  return digestHex(stamped?.source ?? manifest.digest).slice(0, sourceNameCharacters);
}

/** @returns the positions of the marks; undefined if there are none or too many */
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
 * @param at the positions of the marks, in bytes of the file before they were filled in
 * @param values of the marks
 * @returns the file before its marks were filled in; undefined if a position has another text than the value
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
