// The manifest: the list of the files of a bundle with sizes and digests, and the first entry of its archive. The publisher signs
// its digest, which identifies a tree. A manifest must be in its canonical JSON form, so that no two readers find different lists in
// one file.
import { createHash } from 'node:crypto';
import { WritError } from '../errors.js';
import type { ArchiveLimits } from '../limits.js';
import { type Digest, digestFromHex, digestHex } from '../names.js';
import { compareCodePoints } from '../text/canonical-json.js';
import { createPathSet, entryRules, judgeEntryPath, type PathSet, plainText } from './entry-rules.js';

export { manifestName } from './entry-rules.js';

export interface ManifestFile {
  /** Relative path with `/`, accepted by the entry rules. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly digest: Digest;
  /** Mode 0755 instead of 0644. */
  readonly executable: boolean;
}

export interface Manifest {
  /** Sorted by path bytes, each path once. */
  readonly files: readonly ManifestFile[];
}

const formatVersion = 1;

/**
 * @param manifest in any order; its paths have passed the entry rules
 * @returns canonical JSON: the only encoding of this manifest
 */
export function encodeManifest(manifest: Manifest): Buffer {
  const files = manifest.files.map((file) => ({ file, key: Buffer.from(file.path, 'utf8') }));
  files.sort((a, b) => Buffer.compare(a.key, b.key));
  const rows = files.map(({ file }) => encodeFile(file)).join(',');
  return Buffer.from(`{"files":[${rows}],"writ":${formatVersion}}`, 'utf8');
}

// Not by the general encoder, which would sort the same four keys a hundred thousand times. The entry rules leave only the quotation
// mark to be escaped.
function encodeFile({ path, digest, sizeBytes, executable }: ManifestFile): string {
  const text = path.replaceAll('"', '\\"');
  return `{"executable":${executable},"path":"${text}","sha256":"${digestHex(digest)}","size":${sizeBytes}}`;
}

/**
 * @param bytes the manifest as it is in the archive; not parsed or checked, so empty bytes have a digest too
 * @returns the SHA-256 of the bytes, as `sha256:` and 64 lower-case hex digits. Throws nothing.
 */
export function manifestDigest(bytes: Uint8Array): Digest {
  return digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;
}

/**
 * Parses a manifest strictly: in canonical form, sorted, each path once and accepted by the entry rules. It parses one row at a time
 * and stops at the first error, so that an untrusted manifest never becomes a JSON tree in memory.
 * @param judge judgeKeptPath for a manifest that was accepted before
 * @throws WritError MANIFEST_MALFORMED; ARCHIVE_LIMIT for too many files or bytes
 */
export function parseManifest(bytes: Uint8Array, limits: ArchiveLimits, judge = judgeEntryPath): Manifest {
  bound('manifest bytes', bytes.length, limits.maxManifestBytes);
  // Converts all rows at once, because a buffer for each row would cost more than the rest of the work.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  requireFrame(text);
  const paths = createPathSet(limits);
  const files: ManifestFile[] = [];
  let treeBytes = 0;
  for (const row of rowsOf(text, longestRow(limits))) {
    bound('files', files.length + 1, limits.maxEntries);
    const file = readRow(row, { limits, paths, judge });
    requireOrder(files.at(-1), file);
    treeBytes += file.sizeBytes;
    bound('bytes of all files', treeBytes, limits.maxTreeBytes);
    files.push(file);
  }
  return { files };
}

const frame = { begin: '{"files":[', end: `],"writ":${formatVersion}}` } as const;

function requireFrame(text: string): void {
  const whole = text.length >= frame.begin.length + frame.end.length;
  if (whole && text.startsWith(frame.begin) && text.endsWith(frame.end)) return;
  const end = text.slice(-40);
  const version = /,"writ":([0-9]{1,9})\}$/.exec(end)?.[1];
  if (version !== undefined && version !== String(formatVersion)) {
    throw malformed('its format version is unknown', { actual: Number(version) });
  }
  throw malformed('it is not a list of files in canonical form');
}

/** Length of a row with the longest path, each character of it escaped. */
function longestRow({ maxPathBytes }: ArchiveLimits): number {
  return 2 * maxPathBytes + 200;
}

// A quotation mark in a path is always escaped, so that a path cannot contain these bytes.
const betweenRows = '},{"';

/** Yields the rows in order. A row that is too long is cut, so that it is rejected. */
function* rowsOf(text: string, maxRowBytes: number): Generator<string> {
  const end = text.length - frame.end.length;
  for (let at: number = frame.begin.length; at < end; ) {
    const next = text.indexOf(betweenRows, at);
    const row = text.slice(at, Math.min(next === -1 ? end : next + 1, at + maxRowBytes));
    yield row;
    at += row.length;
    // Skips the comma; a row that was cut has none.
    if (at === next + 1) at += 1;
  }
}

const rowForm =
  /^\{"executable":(true|false),"path":"((?:[^"\\]|\\")*)","sha256":"([0-9a-f]{64})","size":(0|[1-9][0-9]{0,15})\}$/;

interface RowRules {
  readonly limits: ArchiveLimits;
  readonly paths: PathSet;
  readonly judge: typeof judgeEntryPath;
}

function readRow(row: string, { limits, paths, judge }: RowRules): ManifestFile {
  const [, executable, written = '', hex, size] = rowForm.exec(row) ?? [];
  const digest = digestFromHex(hex);
  const sizeBytes = Number(size);
  if (digest === undefined || !Number.isSafeInteger(sizeBytes)) {
    throw malformed(
      `not a file row in canonical form: ${JSON.stringify(Buffer.from(row.slice(0, 200), 'latin1').toString())}`,
    );
  }
  const alone = judge(pathOf(written), limits);
  const verdict = alone.kind === 'accepted' ? paths.add(alone.path) : alone;
  const { path } = verdict;
  if (verdict.kind === 'refused') {
    const shown = JSON.stringify(path.slice(0, 200));
    throw malformed(`path ${shown} ${entryRules[verdict.rule]}`, { rule: verdict.rule });
  }
  if (sizeBytes > limits.maxFileBytes) bound(`bytes of ${path}`, sizeBytes, limits.maxFileBytes);
  return { path, sizeBytes, digest, executable: executable === 'true' };
}

/** @returns the path; as bytes if it is not plain ASCII, because its text was decoded as Latin-1 */
function pathOf(written: string): string | Buffer {
  const path = written.includes('\\') ? written.replaceAll('\\"', '"') : written;
  return plainText.test(path) ? path : Buffer.from(path, 'latin1');
}

function requireOrder(before: ManifestFile | undefined, file: ManifestFile): void {
  if (before === undefined || compareCodePoints(before.path, file.path) < 0) return;
  throw malformed(`${file.path} is not in order`);
}

function bound(what: string, actual: number, expected: number): void {
  if (actual <= expected) return;
  throw new WritError('ARCHIVE_LIMIT', `too many ${what}`, { facts: { expected, actual } });
}

function malformed(what: string, facts: Record<string, unknown> = {}): WritError {
  return new WritError('MANIFEST_MALFORMED', `the manifest is refused: ${what}`, { facts });
}

export interface ManifestDifference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** With another content, size or executable bit. */
  readonly changed: readonly string[];
}

/** @returns the paths in which `after` differs from `before`, each list in the order of its manifest */
export function diffManifests(before: Manifest, after: Manifest): ManifestDifference {
  const old = new Map(before.files.map((file) => [file.path, file]));
  const added: string[] = [];
  const changed: string[] = [];
  for (const file of after.files) {
    const previous = old.get(file.path);
    if (previous === undefined) added.push(file.path);
    else if (!sameFile(previous, file)) changed.push(file.path);
    old.delete(file.path);
  }
  return { added, changed, removed: [...old.keys()] };
}

function sameFile(a: ManifestFile, b: ManifestFile): boolean {
  return a.digest === b.digest && a.executable === b.executable && a.sizeBytes === b.sizeBytes;
}
