// The paths that a bundle may contain: an allow-list that publisher and agent share, so that a host accepts each path that a
// publisher packs. An accepted path, joined to a directory, is always inside of it, whatever the file system folds. Readers of
// archives and trees reject links and special files by type. Pure.
import { hash } from 'node:crypto';
import type { ArchiveLimits } from '../limits.js';

/** First entry of each archive; never a file of a bundle. */
export const manifestName = '.writ-manifest.json';

/** Each rule with the text about a path that breaks it. */
export const entryRules = {
  empty: 'is empty',
  'not-utf8': 'is not valid UTF-8',
  'not-normalised': 'is not in Unicode normal form C',
  'control-character': 'has a control character',
  backslash: 'has a backslash',
  character: 'has a character that is not a letter, mark, number, punctuation, symbol or space',
  invisible: 'has an invisible character',
  absolute: 'is absolute',
  'drive-letter': 'begins with a drive letter',
  'trailing-slash': 'ends with a slash',
  'empty-component': 'has an empty component',
  'dot-component': 'has a . or .. component',
  'trailing-dot-or-space': 'has a component that ends with a dot or a space',
  'name-too-long': 'has a component that is too long',
  'path-too-long': 'is too long',
  'too-deep': 'is too deep',
  'reserved-name': 'uses the name of the manifest',
  duplicate: 'occurs twice',
  'file-over-directory': 'is a file where another path needs a directory',
  'directory-over-file': 'needs a directory where another path is a file',
  twin: 'differs from another path only by case or normalisation',
  'too-many-directories': 'is in a directory with too many directories',
} as const;

export type EntryRule = keyof typeof entryRules;

export type PathVerdict =
  | { readonly kind: 'accepted'; readonly path: string }
  | { readonly kind: 'refused'; readonly rule: EntryRule; readonly path: string };

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Checks one path of a regular file alone; createPathSet checks it against the others.
 * @param path as in the archive, relative and with `/`. As bytes if the caller has them, so that invalid UTF-8 is found; in a
 *   string, U+FFFD counts as invalid UTF-8.
 * @returns accepted with the path as a string, or the first rule that it breaks
 */
export function judgeEntryPath(path: string | Uint8Array, limits: ArchiveLimits): PathVerdict {
  // Too many bytes are rejected before they are decoded, because a PAX path may be megabytes long.
  if (path.length > limits.maxPathBytes) return refused('path-too-long', '');
  const text = typeof path === 'string' ? path : decode(path);
  if (text === undefined) return refused('not-utf8', '');
  const rule = wholePathRule(text, limits) ?? componentRule(text.split('/'), limits);
  return rule === undefined ? { kind: 'accepted', path: text } : refused(rule, text);
}

/**
 * As judgeEntryPath, for a release that this host or repository has accepted. Older versions had no rule about invisible characters,
 * and an upgrade must not make an active policy a damaged one.
 */
export function judgeKeptPath(path: string | Uint8Array, limits: ArchiveLimits): PathVerdict {
  const verdict = judgeEntryPath(path, limits);
  const forgiven = verdict.kind === 'refused' && verdict.rule === 'invisible';
  return forgiven ? { kind: 'accepted', path: verdict.path } : verdict;
}

function refused(rule: EntryRule, path: string): PathVerdict {
  return { kind: 'refused', rule, path };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}

const controlCharacter = /\p{Cc}/u;
// Excludes format characters (bidi overrides, joiners), private use, unassigned, and line separators.
const allowedCharacters = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u;
// Invisible letters and marks, as fillers and variation selectors: two names with them would appear equal.
const invisibleCharacter = /\p{Default_Ignorable_Code_Point}/u;
const driveLetter = /^[A-Za-z]:/;
const notUtf8 = /\p{Surrogate}|\ufffd/u;

function wholePathRule(text: string, limits: ArchiveLimits): EntryRule | undefined {
  if (text === '') return 'empty';
  // In printable ASCII only the backslash is rejected, and most paths have no other characters.
  const rule = plainText.test(text) ? undefined : otherTextRule(text, limits);
  if (rule !== undefined) return rule;
  if (text.includes('\\')) return 'backslash';
  if (text.startsWith('/')) return 'absolute';
  if (driveLetter.test(text)) return 'drive-letter';
  if (text.endsWith('/')) return 'trailing-slash';
  return undefined;
}

function otherTextRule(text: string, limits: ArchiveLimits): EntryRule | undefined {
  if (notUtf8.test(text)) return 'not-utf8';
  if (Buffer.byteLength(text) > limits.maxPathBytes) return 'path-too-long';
  if (controlCharacter.test(text)) return 'control-character';
  if (text.includes('\\')) return 'backslash';
  if (!allowedCharacters.test(text)) return 'character';
  if (invisibleCharacter.test(text)) return 'invisible';
  return text.normalize('NFC') === text ? undefined : 'not-normalised';
}

function componentRule(components: readonly string[], limits: ArchiveLimits): EntryRule | undefined {
  if (components.length > limits.maxDepth) return 'too-deep';
  if (foldPath(components[0] ?? '') === manifestName) return 'reserved-name';
  for (const name of components) {
    const rule = nameRule(name, limits);
    if (rule !== undefined) return rule;
  }
  return undefined;
}

function nameRule(name: string, { maxNameBytes }: ArchiveLimits): EntryRule | undefined {
  if (name === '') return 'empty-component';
  if (name === '.' || name === '..') return 'dot-component';
  if (name.endsWith('.') || name.endsWith(' ')) return 'trailing-dot-or-space';
  // A name has at least as many bytes as characters, and an ASCII name has no more.
  if (name.length > maxNameBytes) return 'name-too-long';
  if (plainText.test(name)) return undefined;
  // Bounds the folded name too, because one letter may fold to eighteen and a manifest may contain twenty million letters.
  const bytes = Math.max(Buffer.byteLength(name), foldPath(name).length);
  return bytes > maxNameBytes ? 'name-too-long' : undefined;
}

/** Printable ASCII: equal in UTF-8, Latin-1 and each normal form, with one byte for each character. */
export const plainText = /^[ -~]*$/;
const invisible = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Two paths with one folded form may be one file on a file system that folds case or normalises, so that one would overwrite the
 * other. Upper case comes first, because it changes sharp s to `SS` and separates ligatures. Invisible characters are removed, as
 * ext4 with casefold does.
 */
function foldPath(path: string): string {
  if (plainText.test(path)) return path.toLowerCase();
  return path.normalize('NFKC').replace(invisible, '').toUpperCase().toLowerCase();
}

const longestKey = 64;

/**
 * The digest of a long text, because a manifest may list each file in its own directory of a kilobyte, and the texts would need many
 * times its size. A digest begins with a line break, which no path contains.
 */
function keyOf(folded: string): string {
  return folded.length <= longestKey ? folded : `\n${hash('sha256', folded, 'base64')}`;
}

/** The paths of one bundle so far: add() rejects a path that cannot be in one tree with them. */
export interface PathSet {
  /** @param path accepted by judgeEntryPath. The set must not be used after a refusal. */
  add(path: string): PathVerdict;
}

/** @returns an empty set; it holds at most limits.maxEntries directories, and each path only once in memory */
export function createPathSet(limits: ArchiveLimits): PathSet {
  const files = new Set<string>();
  const directories = new Set<string>();
  const exactOfFolded = new Map<string, string>();

  const isTwin = (path: string): boolean => {
    const folded = keyOf(foldPath(path));
    const exact = exactOfFolded.get(folded) ?? path;
    exactOfFolded.set(folded, exact);
    return exact !== path;
  };
  const directoryRule = (path: string): EntryRule | undefined => {
    if (directories.has(path)) return undefined;
    if (files.has(path)) return 'directory-over-file';
    if (isTwin(path)) return 'twin';
    if (directories.size >= limits.maxEntries) return 'too-many-directories';
    directories.add(path);
    return undefined;
  };
  const ruleOf = (path: string): EntryRule | undefined => {
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
      const rule = directoryRule(path.slice(0, slash));
      if (rule !== undefined) return rule;
    }
    if (files.has(path)) return 'duplicate';
    if (directories.has(path)) return 'file-over-directory';
    if (isTwin(path)) return 'twin';
    files.add(path);
    return undefined;
  };
  return {
    add: (path) => {
      const rule = ruleOf(path);
      return rule === undefined ? { kind: 'accepted', path } : refused(rule, path);
    },
  };
}
