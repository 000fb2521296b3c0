// Reads SOURCE: which regular files it holds, and their digests. Refuses what a bundle must not have (links,
// special files, names that break the entry rules, secrets) and says all of it at once. Follows no link below SOURCE.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex } from '../../core/names.js';
import { encodeManifest, type ManifestFile, manifestDigest } from '../../core/release/manifest.js';
import { createTally, type More, type WorkReport } from '../../core/work-report.js';
import type { DirectoryIdentity } from '../../platform/disk/open-below.js';
import { type Pace, unboundedPace } from '../../platform/time/rate-limit.js';
import { scanForSecrets } from './secret-content.js';
import { openSourceFile } from './source-files.js';
import { maxRefusalsSaid, type Refusal, refusedSource, secretRefusal, tooMuch } from './source-refusals.js';
import type { SourceChoice } from './source-rules.js';
import { walkSource } from './source-walk.js';

/** SOURCE as it was read: its manifest stands for it from here on. */
export type SourceTree = Readonly<Awaited<ReturnType<typeof readSourceTree>>>;

/** SOURCE as it is packed. */
export type PackedTree = SourceTree & {
  /** By path: what is packed in place of a file of SOURCE. */
  readonly contents?: ReadonlyMap<string, Buffer>;
};

export interface ReadOptions extends SourceChoice {
  readonly report?: Pick<WorkReport, 'progress'>;
  readonly signal?: AbortSignal;
  /** `read`: a directory without a file is read, because the caller compares it first; left out: it is refused. */
  readonly empty?: 'read';
}

/** @throws WritError SOURCE_REFUSED for a directory without a file: no release is empty */
export function requireFiles({ source, manifest }: EmptiableTree): void {
  if (manifest.files.length === 0) throw refusedSource(source, [{ text: 'it contains no file' }]);
}

interface EmptiableTree {
  readonly source: string;
  readonly manifest: { readonly files: readonly unknown[] };
}

/**
 * @param source a directory, or a link to one
 * @throws WritError SOURCE_REFUSED or CONTENT_SECRET with every refusal (the first 20) in its facts; USAGE for a pattern of the
 *   choice; INTERRUPTED
 */
export async function readSourceTree(
  source: string,
  limits: ArchiveLimits,
  { report, signal, empty, ...choice }: ReadOptions = {},
) {
  const { place, walk } = walkSource(source, limits, choice);
  if (walk.refusals.length > 0) throw refusedSource(source, walk.refusals);
  if (empty !== 'read') requireFiles({ source, manifest: { files: walk.files } });
  const buffer = Buffer.allocUnsafe(readBytes);
  const part = createTally(walk.files.length, (done, total) =>
    report?.progress('read', { done, total, unit: 'files' }),
  );
  const pace = unboundedPace(signal);
  const files: ManifestFile[] = [];
  const notes: Notes = { changedModes: [], hardLinks: [] };
  const secrets: Refusal[] = [];
  for (const path of walk.files) {
    const secretsOf = walk.rules.isIncluded(path) ? 'own' : 'all';
    const digesting = {
      maxBytes: limits.maxFileBytes,
      buffer,
      pace,
      more: part(1),
      secretsOf,
      notes,
    } as const;
    const { file, secret } = await digestFile(place, path, digesting);
    files.push(file);
    if (secret !== undefined) secrets.push(secretRefusal(path, secret));
    if (secrets.length >= maxRefusalsSaid) break;
  }
  if (secrets.length > 0) throw refusedSource(source, secrets);
  const totalBytes = files.reduce((total, file) => total + file.sizeBytes, 0);
  if (totalBytes > limits.maxTreeBytes) throw tooMuch('bytes', limits.maxTreeBytes, totalBytes);
  const bytes = encodeManifest({ files });
  if (bytes.length > limits.maxManifestBytes) throw tooMuch('names', limits.maxManifestBytes, bytes.length);
  return {
    source,
    /** Which directory it was, for reading its files again. */
    place,
    manifest: { files },
    manifestBytes: bytes,
    manifestDigest: manifestDigest(bytes),
    /** Directories without a file in them: an archive has none. */
    droppedDirectories: walk.emptyDirectories.sort(),
    /** What --exclude and .writignore leave out; of a directory its name alone. */
    excluded: walk.excluded.sort(),
    /** Patterns of --exclude and .writignore that matched nothing, with their places. */
    unusedPatterns: walk.rules.unused(),
    ...notes,
  };
}

/** What hosts will not have as it is in SOURCE. */
interface Notes {
  /** Files that others than their owner cannot read, or that have a special bit: hosts get 0644, or 0755. */
  readonly changedModes: { readonly path: string; readonly mode: string; readonly hostMode: string }[];
  /** Files with several names: hosts get a file for each. */
  readonly hardLinks: string[];
}

/** Bytes of one read: large enough for speed, small enough to stay flat. */
export const readBytes = 1_048_576;

interface Digesting {
  readonly maxBytes: number;
  readonly buffer: Buffer;
  readonly pace: Pace;
  readonly more: More;
  /** `own`: the user includes the file, and only keys of Writ itself are refused in it. */
  readonly secretsOf: 'all' | 'own';
  readonly notes: Notes;
}

/** To open a file takes as long as to digest so much: a signal must not wait for all of many small ones. */
const bytesPerOpen = 65_536;

async function digestFile(
  place: DirectoryIdentity,
  path: string,
  { maxBytes, buffer, pace, more, secretsOf, notes }: Digesting,
) {
  await pace.spent(bytesPerOpen);
  const opened = openSourceFile(place, path);
  try {
    noteLosses(notes, path, opened);
    const digest = createHash('sha256');
    const secrets = scanForSecrets(secretsOf);
    let sizeBytes = 0;
    for (;;) {
      const count = fs.readSync(opened.descriptor, buffer, 0, buffer.length, null);
      if (count === 0) break;
      sizeBytes += count;
      if (sizeBytes > maxBytes) throw tooMuch(`bytes in ${path}`, maxBytes, sizeBytes);
      const chunk = buffer.subarray(0, count);
      digest.update(chunk);
      secrets.add(chunk);
      more(count / opened.sizeBytes);
      await pace.spent(count);
    }
    const found = digestFromHex(digest.digest('hex')) as Digest;
    const file: ManifestFile = { path, sizeBytes, digest: found, executable: opened.executable };
    return { file, secret: secrets.found() };
  } finally {
    fs.closeSync(opened.descriptor);
  }
}

const permissions = 0o7777;
/** Hosts have no group that may write, and need none: a umask of 002 is not reported. */
const writableByOthers = 0o022;

function noteLosses(
  notes: Notes,
  path: string,
  { mode, links, executable }: ReturnType<typeof openSourceFile>,
) {
  const hostMode = executable ? 0o755 : 0o644;
  if ((mode & permissions & ~writableByOthers) !== hostMode)
    notes.changedModes.push({ path, mode: modeText(mode & permissions), hostMode: modeText(hostMode) });
  if (links > 1) notes.hardLinks.push(path);
}

function modeText(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}
