// The differences of two policies, by bundle and by file: the result of `writ diff`. Defines its shape and its bounds. The
// caller passes the function that reads files.

import { withoutUndefined } from '../given.js';
import { diffManifests, type Manifest } from '../release/manifest.js';
import { diffTexts, type TextDifference } from '../text/text-diff.js';

/** One bundle in one of the two policies. */
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
  /** `executable`: only the executable bit changed. */
  readonly only?: 'executable';
  readonly text?: TextDifference;
  /** Why `text` is left out. */
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
  /** The first of the files, sorted by path. */
  readonly files: readonly FileDifference[];
}

/** For all bundles together. */
export const maxListedFiles = 1000;
/** Also bounds the work, because a text that is too different counts as `maxTextLinesPerFile` lines. */
const maxTextLines = 2000;
const maxTextLinesPerFile = 400;
const maxLineCharacters = 400;
/** Larger files are listed without a text. */
export const maxTextBytes = 262_144;

/** @returns the bytes of a file; undefined if they do not match the manifest */
export type ReadBundleFile = (bundle: string, path: string) => Buffer | undefined;

export interface DiffOptions {
  readonly from: ReadonlyMap<string, DiffSide>;
  readonly to: ReadonlyMap<string, DiffSide>;
  /** Left out: the result has names and sizes only. */
  readonly read?: { readonly from: ReadBundleFile; readonly to: ReadBundleFile };
}

/** @returns the bundles that differ, sorted by name; none for equal policies */
export function diffPolicies(options: DiffOptions): BundleDifference[] {
  const names = [...new Set([...options.from.keys(), ...options.to.keys()])].sort();
  const budget = { files: maxListedFiles, lines: maxTextLines };
  return names.flatMap((bundle) => diffBundle(bundle, options, budget) ?? []);
}

interface DiffBudget {
  files: number;
  lines: number;
}

const emptyManifest: Manifest = { files: [] };

function diffBundle(bundle: string, options: DiffOptions, budget: DiffBudget): BundleDifference | undefined {
  const [from, to] = [options.from.get(bundle), options.to.get(bundle)];
  const { added, removed, changed } = diffManifests(
    from?.manifest ?? emptyManifest,
    to?.manifest ?? emptyManifest,
  );
  const isSame = from?.serial === to?.serial && added.length + removed.length + changed.length === 0;
  if (isSame) return undefined;
  const named = Object.entries({ added, removed, changed } as const)
    .flatMap(([kind, paths]) => paths.map((path) => ({ path, kind: kind as FileDifference['kind'] })))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
  const listed = named.slice(0, budget.files);
  budget.files -= listed.length;
  const context = { bundle, from: indexFiles(from), to: indexFiles(to), budget, read: options.read };
  return withoutUndefined<BundleDifference>({
    bundle,
    fromSerial: from?.serial,
    toSerial: to?.serial,
    toRevision: to?.revision,
    added: added.length,
    removed: removed.length,
    changed: changed.length,
    files: listed.map((one) => diffFile(context, one)),
  });
}

type FilesByPath = ReadonlyMap<string, Manifest['files'][number]>;

function indexFiles(side: DiffSide | undefined): FilesByPath {
  return new Map(side?.manifest.files.map((file) => [file.path, file]));
}

interface BundleDiffContext {
  readonly bundle: string;
  readonly from: FilesByPath;
  readonly to: FilesByPath;
  readonly budget: DiffBudget;
  readonly read: DiffOptions['read'];
}

function diffFile(
  context: BundleDiffContext,
  { path, kind }: Pick<FileDifference, 'path' | 'kind'>,
): FileDifference {
  const [old, now] = [context.from.get(path), context.to.get(path)];
  const [fromBytes, toBytes] = [old?.sizeBytes, now?.sizeBytes];
  const named = withoutUndefined<FileDifference>({ path, kind, fromBytes, toBytes });
  if (old !== undefined && old.digest === now?.digest) return { ...named, only: 'executable' };
  // An added or removed file has no text, because every line of it would be added or removed.
  if (kind !== 'changed') return named;
  if (context.read === undefined) return { ...named, noText: 'not wanted' };
  if (context.budget.lines <= 0) return { ...named, noText: 'no room left' };
  if (Math.max(fromBytes ?? 0, toBytes ?? 0) > maxTextBytes) return { ...named, noText: 'too large' };
  return { ...named, ...diffFileTexts(context, path, context.read) };
}

function diffFileTexts(
  { bundle, budget }: BundleDiffContext,
  path: string,
  read: NonNullable<DiffOptions['read']>,
): Pick<FileDifference, 'text' | 'noText'> {
  const [old, now] = [read.from(bundle, path), read.to(bundle, path)];
  if (old === undefined || now === undefined) return { noText: 'damaged on disk' };
  const [before, after] = [decodeText(old), decodeText(now)];
  if (before === undefined || after === undefined) return { noText: 'binary' };
  const maxLines = Math.min(maxTextLinesPerFile, budget.lines);
  const text = diffTexts(before, after, { maxLines, maxLineCharacters });
  budget.lines -= text?.lines.length ?? maxTextLinesPerFile;
  return text === undefined ? { noText: 'too different' } : { text };
}

/** @returns undefined for bytes that are not UTF-8 text */
function decodeText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
