// Compares a tree on disk with its manifest: names, types, modes, owners, sizes, and optionally contents. Reads only; the
// caller reports and repairs.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { isSystemError, isWritError } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex, digestHex } from '../../core/names.js';
import {
  encodeManifest,
  type Manifest,
  type ManifestFile,
  manifestDigest,
} from '../../core/release/manifest.js';
import type { DamageKind, ScanDepth } from '../../core/status/scrub-state.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import { type Pace, unboundedPace } from '../../platform/time/rate-limit.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import type { Host } from '../state/host.js';
import { type TreeNode, walkTree } from './walk-tree.js';

export interface TreeProblem {
  /** Relative to the tree; `.` is the tree itself. */
  readonly path: string;
  /** `type`: neither a plain file with one hard link nor a directory. */
  readonly kind: DamageKind;
}

export interface TreeVerification {
  /** Mode of plain files, as they were staged. */
  readonly mode: number;
  /** Required group of the tree; left out: not compared. */
  readonly groupId?: number;
  /** Accepted owners of the tree; left out: not compared. */
  readonly ownerIds?: readonly number[];
  /** `digests` also compares contents; `places` compares only the directory of the tree itself. */
  readonly contents: ScanDepth;
  /** Limits the read rate; left out: unlimited, with pauses for the event loop. */
  readonly pace?: Pace;
}

/** Bound of the list: a tree with more problems is replaced completely, so that a longer list has no use. */
const maxProblems = 1000;

/**
 * Compares a tree with its manifest. Times are ignored.
 * @returns at most 1000 differences, sorted by path; empty for an intact tree
 * @throws WritError INTERRUPTED; DISK_* for a read error that is no damage of the medium
 */
export async function verifyTree(
  treePath: string,
  manifest: Manifest,
  options: TreeVerification,
): Promise<TreeProblem[]> {
  try {
    const root = fs.lstatSync(treePath, { bigint: true, throwIfNoEntry: false });
    if (!root?.isDirectory()) return [{ path: '.', kind: root === undefined ? 'missing' : 'type' }];
    const problems = options.contents === 'places' ? [] : await compare(treePath, manifest, options);
    const kind = comparePermissions(root, executableMode(options.mode), options);
    if (kind !== undefined) problems.push({ path: '.', kind });
    return problems.slice(0, maxProblems).sort((a, b) => (a.path < b.path ? -1 : 1));
  } catch (error) {
    if (isMediumError(error)) return [{ path: '.', kind: 'unreadable' }];
    throw diskError(error, { op: 'verify.tree', path: treePath });
  }
}

/**
 * Creates the manifest of a tree again from its files, for a lost manifest file. The signed digest proves the result.
 * @param signed digest of the manifest, as it was signed
 * @returns undefined if the tree yields another manifest, or none
 * @throws WritError INTERRUPTED; DISK_* for a read error that is no damage of the medium
 */
export async function rebuildManifest(
  treePath: string,
  signed: Digest,
  pace: Pace,
): Promise<Manifest | undefined> {
  const digester = createDigester(pace);
  const files: ManifestFile[] = [];
  try {
    for await (const { path, stats } of walkTree(treePath)) {
      if (stats.isDirectory()) continue;
      const hex = stats.isFile() ? await digester.digest(join(treePath, path)) : undefined;
      const digest = hex === undefined ? undefined : digestFromHex(hex);
      if (digest === undefined || files.length >= defaultArchiveLimits.maxEntries) return undefined;
      files.push({ path, sizeBytes: Number(stats.size), digest, executable: (stats.mode & 0o100n) !== 0n });
    }
  } catch (error) {
    if (isMediumError(error)) return undefined;
    throw diskError(error, { op: 'verify.tree', path: treePath });
  }
  return manifestDigest(encodeManifest({ files })) === signed ? { files } : undefined;
}

/** @returns true for an error with which the medium reports its own damage; any other read error is a fault of the host */
export function isMediumError(error: unknown): boolean {
  return ['EIO', 'EUCLEAN', 'EBADMSG'].some((code) => isSystemError(error, code));
}

async function compare(
  treePath: string,
  manifest: Manifest,
  options: TreeVerification,
): Promise<TreeProblem[]> {
  const missing = new Map(manifest.files.map((file) => [file.path, file]));
  const directories = directoriesOf(manifest);
  const problems: TreeProblem[] = [];
  const reader = createDigester(options.pace ?? unboundedPace());
  for await (const node of walkTree(treePath)) {
    if (problems.length >= maxProblems) return problems;
    const file = missing.get(node.path);
    missing.delete(node.path);
    const kind =
      file === undefined
        ? judgeDirectory(node, directories, options)
        : (judgeFile(node, file, options) ??
          (await judgeContent(join(treePath, node.path), file, options, reader)));
    if (kind !== undefined) problems.push({ path: node.path, kind });
  }
  for (const path of missing.keys()) problems.push({ path, kind: 'missing' });
  return problems;
}

function directoriesOf(manifest: Manifest): ReadonlySet<string> {
  const directories = new Set<string>();
  for (const file of manifest.files) {
    for (let path = dirname(file.path); path !== '.' && !directories.has(path); path = dirname(path)) {
      directories.add(path);
    }
  }
  return directories;
}

function judgeDirectory(
  { path, stats }: TreeNode,
  directories: ReadonlySet<string>,
  options: TreeVerification,
): TreeProblem['kind'] | undefined {
  if (!directories.has(path)) return 'extra';
  if (!stats.isDirectory()) return 'type';
  return comparePermissions(stats, executableMode(options.mode), options);
}

function judgeFile(
  { stats }: TreeNode,
  file: ManifestFile,
  options: TreeVerification,
): TreeProblem['kind'] | undefined {
  // A second hard link would allow writes into the tree from outside of it.
  if (!stats.isFile() || stats.nlink !== 1n) return 'type';
  if (stats.size !== BigInt(file.sizeBytes)) return 'changed';
  const mode = file.executable ? executableMode(options.mode) : options.mode;
  return comparePermissions(stats, mode, options);
}

function comparePermissions(
  stats: fs.BigIntStats,
  mode: number,
  { groupId, ownerIds }: TreeVerification,
): 'mode' | 'owner' | undefined {
  if ((stats.mode & 0o7777n) !== BigInt(mode)) return 'mode';
  if (groupId !== undefined && stats.gid !== BigInt(groupId)) return 'owner';
  return ownerIds === undefined || ownerIds.includes(Number(stats.uid)) ? undefined : 'owner';
}

async function judgeContent(
  path: string,
  file: ManifestFile,
  { contents }: TreeVerification,
  digester: Digester,
): Promise<TreeProblem['kind'] | undefined> {
  if (contents === 'sizes') return undefined;
  try {
    return (await digester.digest(path)) === digestHex(file.digest) ? undefined : 'changed';
  } catch (error) {
    if (isMediumError(error)) return 'unreadable';
    throw error;
  }
}

export interface Digester {
  /** @returns the SHA-256 in hex; undefined for a file that was removed or became a link since it was listed */
  digest(path: string): Promise<string | undefined>;
}

const readBytes = 1_000_000;

/** Creates a reader of digests, which shares one buffer. @param pace is called after every read */
export function createDigester(pace: Pace): Digester {
  const buffer = Buffer.allocUnsafe(readBytes);
  return {
    digest: async (path) => {
      const descriptor = openForReading(path);
      if (descriptor === undefined) return undefined;
      try {
        const digest = createHash('sha256');
        for (let count = 1; count > 0; ) {
          count = fs.readSync(descriptor, buffer);
          digest.update(buffer.subarray(0, count));
          await pace.spent(count);
        }
        return digest.digest('hex');
      } finally {
        fs.closeSync(descriptor);
      }
    },
  };
}

function openForReading(path: string): number | undefined {
  try {
    // O_NONBLOCK: a FIFO in place of the file would otherwise block this process for ever.
    return fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ELOOP')) return undefined;
    throw error;
  }
}

/** @returns the mode of plain files, the accepted owners and the group of the tree of a bundle; no group: not compared */
export function expectedPermissions(
  { config }: Pick<Host, 'config'>,
  name: string,
): { mode: number; ownerIds: number[]; groupId?: number } {
  const bundle = config.bundles.find((one) => one.name === name);
  const rights = { mode: bundle?.mode ?? defaultMode, ownerIds: ownerIds() };
  const groupId = bundle?.group === undefined ? undefined : knownGroup(bundle.group);
  return groupId === undefined ? rights : { ...rights, groupId };
}

/** @returns the accepted owners of trees: root and the user of this process */
export function ownerIds(): number[] {
  return [0, process.geteuid?.() ?? 0];
}

/** @returns undefined for a group that was removed from the host, because that is no damage of a tree */
export function knownGroup(group: string | number): number | undefined {
  try {
    return resolveGroup(group);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** Mode of plain files for a bundle that was removed from the configuration. */
export const defaultMode = 0o644;

/** @returns the mode of directories and executables: the mode of plain files with execute wherever it has read */
export function executableMode(mode: number): number {
  return mode | ((mode & 0o444) >> 2);
}
