// The retained files that restore a release without a network: its archive, or a base archive with every delta since. Owns
// these files and their list. Each release has its own hard link to a file, so that the removal of another release never
// removes it. The contents are not verified here, because the restored tree is compared with a signed digest.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { type Digest, digestFromHex, digestHex } from '../../core/names.js';
import { maxKeptDeltas } from '../../core/release/kept-delta-rules.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';

/** One retained file, and the manifest of the tree that results from it. */
export interface KeptFile {
  readonly path: string;
  readonly length: number;
  readonly digest: Digest;
  readonly manifest: ReleaseInfo['manifest'];
}

export interface KeptCopy {
  /** Target path of the archive in the targets metadata. */
  readonly target: string;
  readonly archive: KeptFile;
  /** In the order in which they apply to the tree of the archive; empty if the archive is that of the release itself. */
  readonly deltas: readonly KeptFile[];
}

/** File name of the archive of the release itself. */
export const archiveFile = 'archive.tar.br';
/** File name of the archive of a base release. */
const baseFile = 'base.tar.br';
const deltaFile = (index: number): string => `delta-${index + 1}`;
const listFile = 'deltas.json';

/**
 * Adds the files to the directory of a retained release. Moves an archive of the release itself, and adds a hard link for
 * every other file.
 * @param directory new directory in staging
 * @throws WritError DISK_*
 */
export function writeKeptCopy(durable: DurableFs, directory: string, copy: KeptCopy): void {
  const { archive, deltas } = copy;
  if (deltas.length === 0) {
    durable.rename('flush.record-archive', archive.path, join(directory, archiveFile));
    return;
  }
  durable.linkNew('flush.record-base', archive.path, join(directory, baseFile));
  for (const [index, { path }] of deltas.entries())
    durable.linkNew('flush.record-delta', path, join(directory, deltaFile(index)));
  durable.createFile('flush.record-deltas', join(directory, listFile), listText(copy), 0o600);
}

function listText({ target, archive, deltas }: KeptCopy): string {
  const list = { writ: 1, target, archive: row(archive), deltas: deltas.map(row) };
  return `${JSON.stringify(list)}\n`;
}

function row({ length, digest, manifest }: KeptFile): object {
  const signed = { length: manifest.length, sha256: digestHex(manifest.digest) };
  return { length, sha256: digestHex(digest), manifest: signed };
}

/**
 * Reads the list of files that restore a retained release. The files themselves may be missing.
 * @param own result for a release that has its own archive, from its record
 * @throws WritError STATE_DAMAGED if the list is unreadable or its last delta results in another release
 */
export function readKeptCopy(directory: string, own: KeptCopy): KeptCopy {
  const path = join(directory, listFile);
  const verdict = readSmallFile(path, { maxBytes: maxListBytes, links: 'refused' });
  if (verdict.kind === 'absent') return own;
  const copy = verdict.kind === 'read' ? parseList(directory, verdict.bytes) : undefined;
  if (copy?.deltas.at(-1)?.manifest.digest === own.archive.manifest.digest) return copy;
  throw new WritError('STATE_DAMAGED', `${path}: it is not what Writ wrote`, { facts: { path } });
}

const maxListBytes = 100_000;

function parseList(directory: string, bytes: Buffer): KeptCopy | undefined {
  const { target, archive, deltas } = orEmpty(parseJson(bytes));
  const base = parseRow(join(directory, baseFile), archive);
  if (typeof target !== 'string' || base === undefined || !Array.isArray(deltas)) return undefined;
  const rows = deltas.flatMap((one, index) => parseRow(join(directory, deltaFile(index)), one) ?? []);
  const isWhole = rows.length === deltas.length && rows.length <= maxKeptDeltas;
  return isWhole ? { target, archive: base, deltas: rows } : undefined;
}

function parseRow(path: string, value: unknown): KeptFile | undefined {
  const { length, sha256, manifest } = orEmpty(value);
  const signed = orEmpty(manifest);
  const [digest, tree] = [digestFromHex(sha256), digestFromHex(signed['sha256'])];
  if (digest === undefined || tree === undefined) return undefined;
  if (!isLength(length) || !isLength(signed['length'])) return undefined;
  return { path, length, digest, manifest: { digest: tree, length: signed['length'] } };
}

function isLength(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function orEmpty(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** @returns true if every file exists with its recorded length; the contents are not read */
export function isCopyPresent({ archive, deltas }: KeptCopy): boolean {
  return [archive, ...deltas].every(({ path, length }) => {
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    return stats?.isFile() === true && stats.size === length;
  });
}
