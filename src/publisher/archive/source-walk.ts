// Lists SOURCE: the files of a release, and refusals by name or file type. Reads .writignore and no other file. Attack:
// another user replaces a directory by a link meanwhile. Each directory is therefore opened relative to its parent, and no
// link is followed.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { unlessRefused } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { createPathSet, entryRules, judgeEntryPath, type PathSet } from '../../core/release/entry-rules.js';
import {
  type DirectoryIdentity,
  listOpenDirectory,
  openDirectoryBelow,
} from '../../platform/disk/open-below.js';
import { openSource, openSourceFile, unreadable } from './source-files.js';
import { maxListedRefusals, type Refusal, refusedSource, tooMuch } from './source-refusals.js';
import {
  ignoreFile,
  maxIgnoreBytes,
  type SourceChoice,
  type SourceRules,
  sourceRules,
} from './source-rules.js';

interface Walk {
  readonly limits: ArchiveLimits;
  readonly rules: SourceRules;
  readonly paths: PathSet;
  readonly files: string[];
  readonly emptyDirectories: string[];
  readonly excluded: string[];
  readonly refusals: Refusal[];
}

interface OpenDirectory {
  readonly path: string;
  readonly descriptor: number;
}

/** @returns the identity of the directory SOURCE, and its content. @throws WritError SOURCE_REFUSED, USAGE */
export function walkSource(source: string, limits: ArchiveLimits, choice: SourceChoice) {
  const { descriptor, identity: place } = openSource(source);
  try {
    const rules = sourceRules(choice, readIgnored(place));
    const found = { files: [], emptyDirectories: [], excluded: [], refusals: [] };
    const walk: Walk = { limits, rules, paths: createPathSet(limits), ...found };
    walkDirectory(walk, { path: '', descriptor });
    walk.files.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    return { place, walk };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @returns the number of files below the directory */
function walkDirectory(walk: Walk, { path: directory, descriptor }: OpenDirectory): number {
  let count = 0;
  // Names are read as bytes, because decoding would change a name that is not UTF-8.
  for (const entry of listOpenDirectory(descriptor)) {
    const prefix = directory === '' ? [] : [Buffer.from(`${directory}/`)];
    const name = entry.name.toString('utf8');
    if (isLeftOut(walk, join(directory, name), entry)) continue;
    const verdict = judgeEntryPath(Buffer.concat([...prefix, entry.name]), walk.limits);
    if (verdict.kind === 'refused') {
      const shown = join(directory, name);
      walk.refusals.push({ text: `${shown.slice(0, 300)} ${entryRules[verdict.rule]}` });
    } else if (entry.isDirectory()) {
      count += walkBelow(walk, { parent: descriptor, name, path: verdict.path });
    } else {
      addFile(walk, verdict.path, entry);
      count += 1;
    }
    if (walk.refusals.length >= maxListedRefusals) return count;
  }
  if (count === 0 && directory !== '') walk.emptyDirectories.push(directory);
  return count;
}

/** @returns the text of .writignore; empty without the file. @throws WritError SOURCE_REFUSED */
function readIgnored(place: DirectoryIdentity): string {
  const status = unlessRefused(() => fs.lstatSync(join(place.path, ignoreFile), { throwIfNoEntry: false }));
  if (status === undefined) return '';
  if (!status.isFile()) throw refusedSource(place.path, [{ text: `${ignoreFile} is not a regular file` }]);
  const { descriptor, sizeBytes } = openSourceFile(place, ignoreFile);
  try {
    if (sizeBytes > maxIgnoreBytes) throw tooMuch(`bytes in ${ignoreFile}`, maxIgnoreBytes, sizeBytes);
    return new TextDecoder('utf-8', { fatal: true }).decode(fs.readFileSync(descriptor));
  } catch (error) {
    // Patterns in another encoding would match nothing, and the files that they leave out would be signed.
    if (error instanceof TypeError) throw refusedSource(place.path, [{ text: `${ignoreFile} is not UTF-8` }]);
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}

interface NamedDirectory {
  readonly parent: number;
  readonly name: string;
  readonly path: string;
}

function walkBelow(walk: Walk, { parent, name, path }: NamedDirectory): number {
  const descriptor = openListed(parent, name, path);
  try {
    return walkDirectory(walk, { path, descriptor });
  } finally {
    fs.closeSync(descriptor);
  }
}

function openListed(parent: number, name: string, path: string): number {
  try {
    return openDirectoryBelow(parent, name);
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Called before the entry rules, because excluded paths may have any name. */
function isLeftOut({ rules, excluded, refusals }: Walk, path: string, entry: fs.Dirent<Buffer>): boolean {
  const verdict = rules.judge(path, entry.isDirectory());
  if (verdict?.kind === 'excluded' && path !== ignoreFile) excluded.push(path);
  const shown = path.slice(0, 300);
  if (verdict?.kind === 'ignored-patterns') refusals.push({ text: `${shown} ${verdict.why}` });
  if (verdict?.kind === 'private') {
    const text = `${shown} ${verdict.why}: exclude it with --exclude or ${ignoreFile}, or give --include`;
    refusals.push({ text, secret: { path, what: verdict.why } });
  }
  return verdict !== undefined;
}

function addFile({ paths, files, refusals, limits }: Walk, path: string, entry: fs.Dirent<Buffer>): void {
  const verdict = paths.add(path);
  const refusal = entry.isSymbolicLink()
    ? 'is a link'
    : !entry.isFile()
      ? 'is not a regular file'
      : verdict.kind === 'refused'
        ? entryRules[verdict.rule]
        : undefined;
  if (refusal !== undefined) refusals.push({ text: `${path} ${refusal}` });
  else files.push(path);
  if (files.length > limits.maxEntries) throw tooMuch('files', limits.maxEntries, files.length);
}
