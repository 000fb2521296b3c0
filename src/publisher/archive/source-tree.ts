// Reads SOURCE: its regular files and their digests. Refuses content that a bundle must not have (links, special files,
// names that break the entry rules, secrets), and reports all refusals together. Follows no link below SOURCE.
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
import { maxListedRefusals, type Refusal, refusedSource, secretRefusal, tooMuch } from './source-refusals.js';
import type { SourceChoice } from './source-rules.js';
import { walkSource } from './source-walk.js';

/** SOURCE as it was read, represented by its manifest. */
export type SourceTree = Readonly<Awaited<ReturnType<typeof readSourceTree>>>;

/** SOURCE as it is packed. */
export type PackedTree = SourceTree & {
  /** By path: the content that is packed in place of a file of SOURCE. */
  readonly contents?: ReadonlyMap<string, Buffer>;
};

export interface SourceReadOptions extends SourceChoice {
  readonly report?: Pick<WorkReport, 'progress'>;
  readonly signal?: AbortSignal;
  /** `read`: a directory without a file is accepted, because the caller compares it first. By default it is refused. */
  readonly empty?: 'read';
}

/** @throws WritError SOURCE_REFUSED for a directory without a file, because a release is never empty */
export function requireFiles({ source, manifest }: EmptiableTree): void {
  if (manifest.files.length === 0) throw refusedSource(source, [{ text: 'it contains no file' }]);
}

interface EmptiableTree {
  readonly source: string;
  readonly manifest: { readonly files: readonly unknown[] };
}

/**
 * Reads and digests every file to publish, and searches them for secrets. Writes nothing.
 * @param source a directory, or a link to one
 * @returns the manifest with its bytes and digest, and what hosts will not have: dropped directories, excluded paths, unused
 *   patterns, changed modes, hard links. `manifest.files` is empty only with `empty: 'read'`
 * @throws WritError CONTENT_SECRET if at least one path is refused for a secret; SOURCE_REFUSED for other paths, no file, or
 *   too much; both with the first 20 refusals in the facts. USAGE for a pattern of the choice; INTERRUPTED after an abort
 */
export async function readSourceTree(
  source: string,
  limits: ArchiveLimits,
  { report, signal, empty, ...choice }: SourceReadOptions = {},
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
    if (secrets.length >= maxListedRefusals) break;
  }
  if (secrets.length > 0) throw refusedSource(source, secrets);
  const totalBytes = files.reduce((total, file) => total + file.sizeBytes, 0);
  if (totalBytes > limits.maxTreeBytes) throw tooMuch('bytes', limits.maxTreeBytes, totalBytes);
  const bytes = encodeManifest({ files });
  if (bytes.length > limits.maxManifestBytes) throw tooMuch('names', limits.maxManifestBytes, bytes.length);
  return {
    source,
    /** Identifies the directory, for a second reading of its files. */
    place,
    manifest: { files },
    manifestBytes: bytes,
    manifestDigest: manifestDigest(bytes),
    /** Directories without a file below them, which an archive cannot contain. */
    droppedDirectories: walk.emptyDirectories.sort(),
    /** The paths that --exclude and .writignore leave out; of a directory only its own path. */
    excluded: walk.excluded.sort(),
    /** Patterns of --exclude and .writignore without a match, with their places. */
    unusedPatterns: walk.rules.unused(),
    ...notes,
  };
}

/** Properties of SOURCE that hosts will not have. */
interface Notes {
  /** Files that only some users can read, or with a special bit: hosts get mode 0644 or 0755. */
  readonly changedModes: { readonly path: string; readonly mode: string; readonly hostMode: string }[];
  /** Files with several hard links: hosts get a separate file for each. */
  readonly hardLinks: string[];
}

/** The bytes of one read: large enough for speed, small enough for bounded memory. */
export const readBytes = 1_048_576;

interface Digesting {
  readonly maxBytes: number;
  readonly buffer: Buffer;
  readonly pace: Pace;
  readonly more: More;
  /** `own`: the user includes the file, and only secrets of Writ itself are refused. */
  readonly secretsOf: 'all' | 'own';
  readonly notes: Notes;
}

/**
 * Opening a file takes as long as digesting this many bytes. Counting it lets a signal interrupt the reading of many small
 * files.
 */
const bytesPerOpen = 65_536;

async function digestFile(
  place: DirectoryIdentity,
  path: string,
  { maxBytes, buffer, pace, more, secretsOf, notes }: Digesting,
) {
  await pace.spent(bytesPerOpen);
  const opened = openSourceFile(place, path);
  try {
    recordLosses(notes, path, opened);
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
/** Write permission of the group is not reported, because hosts do not keep it, and a umask of 002 is common. */
const writableByOthers = 0o022;

function recordLosses(
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
