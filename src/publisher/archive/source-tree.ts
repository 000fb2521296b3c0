// Reads SOURCE: which regular files it holds, and their digests. Refuses what a bundle must not have (links,
// special files, names that break the entry rules) and says all of it at once. Follows no link below SOURCE.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, unlessRefused, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex } from '../../core/names.js';
import { createPathSet, entryRules, judgeEntryPath, type PathSet } from '../../core/release/entry-rules.js';
import { encodeManifest, type ManifestFile, manifestDigest } from '../../core/release/manifest.js';
import { createTally, type More, type WorkReport } from '../../core/work-report.js';
import { type Pace, unboundedPace } from '../../platform/time/rate-limit.js';
import {
  ignoreFile,
  maxIgnoreBytes,
  type SourceChoice,
  type SourceRules,
  sourceRules,
} from './source-rules.js';

/** SOURCE as it was read: its manifest stands for it from here on. */
export type SourceTree = Readonly<Awaited<ReturnType<typeof readSourceTree>>>;

/** SOURCE as it is packed. */
export type PackedTree = SourceTree & {
  /** By path: what is packed in place of a file of SOURCE. */
  readonly contents?: ReadonlyMap<string, Buffer>;
};

const maxRefusalsSaid = 20;

export interface ReadOptions extends SourceChoice {
  readonly report?: Pick<WorkReport, 'progress'>;
  readonly signal?: AbortSignal;
  /** `read`: a directory without a file is read, because the caller compares it first; left out: it is refused. */
  readonly empty?: 'read';
}

/** @throws WritError SOURCE_REFUSED for a directory without a file: no release is empty */
export function requireFiles({ source, manifest }: EmptiableTree): void {
  if (manifest.files.length === 0) throw refusedSource(source, ['it contains no file']);
}

interface EmptiableTree {
  readonly source: string;
  readonly manifest: { readonly files: readonly unknown[] };
}

/**
 * @param source a directory, or a link to one
 * @throws WritError SOURCE_REFUSED with every refusal (the first 20) in its facts; USAGE for a pattern of the choice; INTERRUPTED
 */
export async function readSourceTree(
  source: string,
  limits: ArchiveLimits,
  { report, signal, empty, ...choice }: ReadOptions = {},
) {
  const walk = walkSource(source, limits, sourceRules(choice, readIgnored(source)));
  if (walk.refusals.length > 0) throw refusedSource(source, walk.refusals);
  if (empty !== 'read') requireFiles({ source, manifest: { files: walk.files } });
  const buffer = Buffer.allocUnsafe(readBytes);
  const part = createTally(walk.files.length, (done, total) =>
    report?.progress('read', { done, total, unit: 'files' }),
  );
  const pace = unboundedPace(signal);
  const files: ManifestFile[] = [];
  for (const path of walk.files) {
    const digesting = { maxBytes: limits.maxFileBytes, buffer, pace, more: part(1) };
    files.push(await digestFile(source, path, digesting));
  }
  const totalBytes = files.reduce((total, file) => total + file.sizeBytes, 0);
  if (totalBytes > limits.maxTreeBytes) throw tooMuch('bytes', limits.maxTreeBytes, totalBytes);
  const bytes = encodeManifest({ files });
  if (bytes.length > limits.maxManifestBytes) throw tooMuch('names', limits.maxManifestBytes, bytes.length);
  return {
    source,
    manifest: { files },
    manifestBytes: bytes,
    manifestDigest: manifestDigest(bytes),
    /** Directories without a file in them: an archive has none. */
    droppedDirectories: walk.emptyDirectories.sort(),
    /** What --exclude and .writignore leave out; of a directory its name alone. */
    excluded: walk.excluded.sort(),
  };
}

/** @returns the text of .writignore; none where there is no such file. @throws WritError SOURCE_REFUSED */
function readIgnored(source: string): string {
  const status = unlessRefused(() => fs.lstatSync(join(source, ignoreFile), { throwIfNoEntry: false }));
  if (status === undefined) return '';
  const { descriptor, sizeBytes } = openSourceFile(source, ignoreFile);
  try {
    if (sizeBytes > maxIgnoreBytes) throw tooMuch(`bytes in ${ignoreFile}`, maxIgnoreBytes, sizeBytes);
    return fs.readFileSync(descriptor, 'utf8');
  } finally {
    fs.closeSync(descriptor);
  }
}

interface Walk {
  readonly source: string;
  readonly limits: ArchiveLimits;
  readonly rules: SourceRules;
  readonly paths: PathSet;
  readonly files: string[];
  readonly emptyDirectories: string[];
  readonly excluded: string[];
  readonly refusals: string[];
}

function walkSource(source: string, limits: ArchiveLimits, rules: SourceRules): Walk {
  const paths = createPathSet(limits);
  const found = { files: [], emptyDirectories: [], excluded: [], refusals: [] };
  const walk: Walk = { source, limits, rules, paths, ...found };
  walkDirectory(walk, '');
  walk.files.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return walk;
}

/** @returns how many files are below */
function walkDirectory(walk: Walk, directory: string): number {
  let count = 0;
  // As bytes: a name that is not UTF-8 would come as another name.
  for (const entry of listDirectory(join(walk.source, directory))) {
    const prefix = directory === '' ? [] : [Buffer.from(`${directory}/`)];
    if (leavesOut(walk, join(directory, entry.name.toString('utf8')), entry)) continue;
    const verdict = judgeEntryPath(Buffer.concat([...prefix, entry.name]), walk.limits);
    if (verdict.kind === 'refused') {
      const shown = join(directory, entry.name.toString('utf8'));
      walk.refusals.push(`${shown.slice(0, 300)} ${entryRules[verdict.rule]}`);
    } else if (entry.isDirectory()) {
      count += walkDirectory(walk, verdict.path);
    } else {
      takeFile(walk, verdict.path, entry);
      count += 1;
    }
    if (walk.refusals.length >= maxRefusalsSaid) return count;
  }
  if (count === 0 && directory !== '') walk.emptyDirectories.push(directory);
  return count;
}

/** Before the name is judged: what is left out may have any. */
function leavesOut({ rules, excluded, refusals }: Walk, path: string, entry: fs.Dirent<Buffer>): boolean {
  const verdict = rules.judge(path, entry.isDirectory());
  if (verdict?.kind === 'excluded' && path !== ignoreFile) excluded.push(path);
  if (verdict?.kind === 'private')
    refusals.push(
      `${path.slice(0, 300)} ${verdict.why}: exclude it with --exclude or ${ignoreFile}, or give --include`,
    );
  return verdict !== undefined;
}

function listDirectory(path: string): fs.Dirent<Buffer>[] {
  try {
    return fs.readdirSync(path, { encoding: 'buffer', withFileTypes: true });
  } catch (error) {
    throw unreadable(path, error);
  }
}

function takeFile({ paths, files, refusals, limits }: Walk, path: string, entry: fs.Dirent<Buffer>): void {
  const verdict = paths.add(path);
  const refusal = entry.isSymbolicLink()
    ? 'is a link'
    : !entry.isFile()
      ? 'is not a regular file'
      : verdict.kind === 'refused'
        ? entryRules[verdict.rule]
        : undefined;
  if (refusal !== undefined) refusals.push(`${path} ${refusal}`);
  else files.push(path);
  if (files.length > limits.maxEntries) throw tooMuch('files', limits.maxEntries, files.length);
}

/** Bytes of one read: large enough for speed, small enough to stay flat. */
export const readBytes = 1_048_576;

interface Digesting {
  readonly maxBytes: number;
  readonly buffer: Buffer;
  readonly pace: Pace;
  readonly more: More;
}

/** To open a file takes as long as to digest so much: a signal must not wait for all of many small ones. */
const bytesPerOpen = 65_536;

async function digestFile(
  source: string,
  path: string,
  { maxBytes, buffer, pace, more }: Digesting,
): Promise<ManifestFile> {
  await pace.spent(bytesPerOpen);
  const opened = openSourceFile(source, path);
  try {
    const digest = createHash('sha256');
    let sizeBytes = 0;
    for (;;) {
      const count = fs.readSync(opened.descriptor, buffer, 0, buffer.length, null);
      if (count === 0) break;
      sizeBytes += count;
      if (sizeBytes > maxBytes) throw tooMuch(`bytes in ${path}`, maxBytes, sizeBytes);
      digest.update(buffer.subarray(0, count));
      more(count / opened.sizeBytes);
      await pace.spent(count);
    }
    const found = digestFromHex(digest.digest('hex')) as Digest;
    return { path, sizeBytes, digest: found, executable: opened.executable };
  } finally {
    fs.closeSync(opened.descriptor);
  }
}

/**
 * Opens one file of SOURCE without following a link that took its place, nor waiting for a FIFO that did.
 * @throws WritError SOURCE_REFUSED
 */
export function openSourceFile(source: string, path: string) {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  let descriptor: number;
  try {
    descriptor = fs.openSync(join(source, path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    throw unreadable(join(source, path), error);
  }
  const status = fs.fstatSync(descriptor);
  if (status.isFile()) return { descriptor, executable: (status.mode & 0o100) !== 0, sizeBytes: status.size };
  fs.closeSync(descriptor);
  throw changedSource(path);
}

/** What was read twice was not the same twice: a bundle must be one moment of SOURCE. */
export function changedSource(path: string): WritError {
  return new WritError('SOURCE_REFUSED', `${path} changed while it was read`, {
    facts: { path },
    hint: 'Publish a directory that does not change.',
  });
}

function unreadable(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const why =
    error.code === 'ENOTDIR' ? 'is a file: a release is a directory' : `cannot be read: ${error.code}`;
  return new WritError('SOURCE_REFUSED', `${path} ${why}`, {
    facts: { path, errno: error.code },
    hint: 'Give a readable directory without links.',
    cause: error,
  });
}

/** In the message; the facts have more. */
const maxNamed = 5;

function refusedSource(source: string, refusals: readonly string[]): WritError {
  const more = refusals.length > maxNamed ? ` (and ${refusals.length - maxNamed} more)` : '';
  const named = refusals.slice(0, maxNamed).join('\n  ');
  return new WritError('SOURCE_REFUSED', `${source}: ${named}${more}`, { facts: { source, refusals } });
}

function tooMuch(what: string, expected: number, actual: number): WritError {
  return new WritError('SOURCE_REFUSED', `SOURCE has too many ${what}`, { facts: { expected, actual } });
}
