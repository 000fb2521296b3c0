// The manifest: the list of a bundle's files with sizes and digests, first entry of its archive. Its digest is
// signed, and is what "the same tree" means. Has one form only: bytes that are not the canonical JSON of
// what they say are refused, so that no two readers can see two lists in one file.
import { createHash } from 'node:crypto';
import { WritError } from '../errors.js';
import type { ArchiveLimits } from '../limits.js';
import { type Digest, digestFromHex, digestHex } from '../names.js';
import { compareCodePoints } from '../text/canonical-json.js';
import { createPathSet, entryRules, judgeEntryPath, type PathSet } from './entry-rules.js';

export { manifestName } from './entry-rules.js';

export interface ManifestFile {
  /** Relative, with `/`, accepted by the entry rules. */
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
 * @param manifest its paths have passed the entry rules; its order does not matter
 * @returns canonical JSON: the one form of this manifest
 */
export function encodeManifest(manifest: Manifest): Buffer {
  const files = manifest.files.map((file) => ({ file, key: Buffer.from(file.path, 'utf8') }));
  files.sort((a, b) => Buffer.compare(a.key, b.key));
  const rows = files.map(({ file }) => encodeFile(file)).join(',');
  return Buffer.from(`{"files":[${rows}],"writ":${formatVersion}}`, 'utf8');
}

// Written out because the general encoder would sort the same four keys a hundred thousand times.
// Entry rules leave only the quotation mark to be escaped.
function encodeFile({ path, digest, sizeBytes, executable }: ManifestFile): string {
  const text = path.replaceAll('"', '\\"');
  return `{"executable":${executable},"path":"${text}","sha256":"${digestHex(digest)}","size":${sizeBytes}}`;
}

/** @param bytes the manifest as it lies in the archive */
export function manifestDigest(bytes: Uint8Array): Digest {
  return digestFromHex(createHash('sha256').update(bytes).digest('hex')) as Digest;
}

/**
 * Reads a manifest strictly: known members only, sorted, each path once and accepted by the entry rules.
 * @throws WritError MANIFEST_MALFORMED; ARCHIVE_LIMIT for too many files or bytes
 */
export function parseManifest(bytes: Uint8Array, limits: ArchiveLimits): Manifest {
  bound('manifest bytes', bytes.length, limits.maxManifestBytes);
  const rows = filesOf(parseJson(bytes));
  bound('files', rows.length, limits.maxEntries);
  const paths = createPathSet(limits);
  const files = rows.map((row) => parseFile(row, limits, paths));
  const treeBytes = files.reduce((total, file) => total + file.sizeBytes, 0);
  bound('bytes of all files', treeBytes, limits.maxTreeBytes);
  requireOrder(files);
  const manifest = { files };
  // Duplicate members, other number forms, white space and escapes all end here.
  if (!encodeManifest(manifest).equals(bytes)) throw malformed('it is not in canonical form');
  return manifest;
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    throw malformed('it is not JSON in UTF-8', { cause: error });
  }
}

function filesOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) throw malformed('it is no object');
  const { writ, files } = value as Record<string, unknown>;
  if (writ !== formatVersion) throw malformed('its format version is not the known one', { actual: writ });
  if (!Array.isArray(files)) throw malformed('it has no list of files');
  return files;
}

function parseFile(row: unknown, limits: ArchiveLimits, paths: PathSet): ManifestFile {
  if (typeof row !== 'object' || row === null) throw malformed('a file is no object');
  const { path, sha256, size, executable } = row as Record<string, unknown>;
  if (typeof path !== 'string') throw malformed('a file has no path');
  const alone = judgeEntryPath(path, limits);
  const verdict = alone.kind === 'accepted' ? paths.add(path) : alone;
  if (verdict.kind === 'refused') {
    throw malformed(`path ${JSON.stringify(path.slice(0, 200))} ${entryRules[verdict.rule]}`, {
      rule: verdict.rule,
    });
  }
  const digest = digestFromHex(sha256);
  if (digest === undefined) throw malformed(`${path} has no digest`);
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw malformed(`${path} has no size`);
  }
  bound(`bytes of ${path}`, size, limits.maxFileBytes);
  if (typeof executable !== 'boolean') throw malformed(`${path} does not say whether it is executable`);
  return { path, sizeBytes: size, digest, executable };
}

function requireOrder(files: readonly ManifestFile[]): void {
  for (const [index, file] of files.entries()) {
    const before = files[index - 1];
    if (before !== undefined && compareCodePoints(before.path, file.path) >= 0) {
      throw malformed(`${file.path} is not in order`);
    }
  }
}

function bound(what: string, actual: number, expected: number): void {
  if (actual <= expected) return;
  throw new WritError('ARCHIVE_LIMIT', `too many ${what}`, { facts: { expected, actual } });
}

function malformed(what: string, { cause, ...facts }: Record<string, unknown> = {}): WritError {
  return new WritError('MANIFEST_MALFORMED', `the manifest is refused: ${what}`, { facts, cause });
}

export interface ManifestDifference {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Other content, size or executable bit. */
  readonly changed: readonly string[];
}

/** @returns the paths by which `after` differs from `before`, each list in the order of its manifest. */
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
