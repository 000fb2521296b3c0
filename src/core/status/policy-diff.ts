// What one policy has and another has not, bundle by bundle and file by file: the answer of `writ diff`. Owns its shape and
// its bounds. Pure: texts are read by whoever asks.

import { withoutUndefined } from '../given.js';
import { diffManifests, type Manifest } from '../release/manifest.js';
import { diffTexts, type TextDifference } from '../text/text-diff.js';

/** One bundle of a policy. */
export interface DiffSide {
  readonly serial: number;
  readonly revision: string;
  readonly manifest: Manifest;
}

export interface FileDifference {
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly fromBytes?: number;
  readonly toBytes?: number;
  /** `executable`: nothing but that has changed. */
  readonly only?: 'executable';
  readonly text?: TextDifference;
  /** Why there is no text. */
  readonly noText?:
    | 'binary'
    | 'too large'
    | 'too different'
    | 'not wanted'
    | 'no room left'
    | 'damaged on disk';
}

export interface BundleDifference {
  readonly bundle: string;
  readonly fromSerial?: number;
  readonly toSerial?: number;
  readonly toRevision?: string;
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  /** The first of them, sorted by path. */
  readonly files: readonly FileDifference[];
}

/** Of all bundles together. */
export const maxListedFiles = 1000;
/** Also the bound on the work: a text that is too different has cost as much as the most lines of a file. */
const maxTextLines = 2000;
const maxTextLinesPerFile = 400;
const maxLineCharacters = 400;
/** Larger files are named, not read. */
export const maxTextBytes = 262_144;

/** @returns the bytes of a file; undefined when they are not what the manifest says */
export type ReadSide = (bundle: string, path: string) => Buffer | undefined;

export interface DiffOptions {
  readonly from: ReadonlyMap<string, DiffSide>;
  readonly to: ReadonlyMap<string, DiffSide>;
  /** Left out: names and sizes only. */
  readonly read?: { readonly from: ReadSide; readonly to: ReadSide };
}

/** @returns the bundles that differ, sorted by name; none for the same policy */
export function diffPolicies(options: DiffOptions): BundleDifference[] {
  const names = [...new Set([...options.from.keys(), ...options.to.keys()])].sort();
  const room = { files: maxListedFiles, lines: maxTextLines };
  return names.flatMap((bundle) => diffBundle(bundle, options, room) ?? []);
}

interface Room {
  files: number;
  lines: number;
}

const nothing: Manifest = { files: [] };

function diffBundle(bundle: string, options: DiffOptions, room: Room): BundleDifference | undefined {
  const [from, to] = [options.from.get(bundle), options.to.get(bundle)];
  const { added, removed, changed } = diffManifests(from?.manifest ?? nothing, to?.manifest ?? nothing);
  const isSame = from?.serial === to?.serial && added.length + removed.length + changed.length === 0;
  if (isSame) return undefined;
  const named = Object.entries({ added, removed, changed } as const)
    .flatMap(([kind, paths]) => paths.map((path) => ({ path, kind: kind as FileDifference['kind'] })))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
  const listed = named.slice(0, room.files);
  room.files -= listed.length;
  const where = { bundle, from: filesOf(from), to: filesOf(to), room, read: options.read };
  return withoutUndefined<BundleDifference>({
    bundle,
    fromSerial: from?.serial,
    toSerial: to?.serial,
    toRevision: to?.revision,
    added: added.length,
    removed: removed.length,
    changed: changed.length,
    files: listed.map((one) => diffFile(where, one)),
  });
}

type FilesByPath = ReadonlyMap<string, Manifest['files'][number]>;

function filesOf(side: DiffSide | undefined): FilesByPath {
  return new Map(side?.manifest.files.map((file) => [file.path, file]));
}

interface InBundle {
  readonly bundle: string;
  readonly from: FilesByPath;
  readonly to: FilesByPath;
  readonly room: Room;
  readonly read: DiffOptions['read'];
}

function diffFile(where: InBundle, { path, kind }: Pick<FileDifference, 'path' | 'kind'>): FileDifference {
  const [old, now] = [where.from.get(path), where.to.get(path)];
  const [fromBytes, toBytes] = [old?.sizeBytes, now?.sizeBytes];
  const named = withoutUndefined<FileDifference>({ path, kind, fromBytes, toBytes });
  if (old !== undefined && old.digest === now?.digest) return { ...named, only: 'executable' };
  // A file that came or went is all there, or all gone: its name says it.
  if (kind !== 'changed') return named;
  if (where.read === undefined) return { ...named, noText: 'not wanted' };
  if (where.room.lines <= 0) return { ...named, noText: 'no room left' };
  if (Math.max(fromBytes ?? 0, toBytes ?? 0) > maxTextBytes) return { ...named, noText: 'too large' };
  return { ...named, ...textOf(where, path, where.read) };
}

function textOf(
  { bundle, room }: InBundle,
  path: string,
  read: NonNullable<DiffOptions['read']>,
): Pick<FileDifference, 'text' | 'noText'> {
  const [old, now] = [read.from(bundle, path), read.to(bundle, path)];
  if (old === undefined || now === undefined) return { noText: 'damaged on disk' };
  const [before, after] = [decoded(old), decoded(now)];
  if (before === undefined || after === undefined) return { noText: 'binary' };
  const maxLines = Math.min(maxTextLinesPerFile, room.lines);
  const text = diffTexts(before, after, { maxLines, maxLineCharacters });
  room.lines -= text?.lines.length ?? maxTextLinesPerFile;
  return text === undefined ? { noText: 'too different' } : { text };
}

/** @returns undefined for what is no text */
function decoded(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
