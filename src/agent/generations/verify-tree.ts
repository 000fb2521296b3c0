// Compares a tree on disk with its manifest: names, types, modes, owners, sizes, and content where asked. Reads only;
// repairing, and telling anybody, is the caller's.

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
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { Host } from '../state/host.js';
import { type TreeNode, walkTree } from './walk-tree.js';

export interface TreeProblem {
  /** Relative to the tree; `.` for the tree itself. */
  readonly path: string;
  /** `type`: a link, a second name of a file, or anything else that is no plain file or directory. */
  readonly kind: DamageKind;
}

export interface VerifyOptions {
  /** Mode of plain files, as they were staged. */
  readonly mode: number;
  /** Group that owns the tree; not compared if left out. */
  readonly groupId?: number;
  /** Who may own it; not compared if left out. */
  readonly ownerIds?: readonly number[];
  /** Of `places` only the directory of the tree itself is looked at, whatever the manifest says of its files. */
  readonly contents: ScanDepth;
  /** Without one it reads as fast as it can, and lets others run in between. */
  readonly pace?: Pace;
}

/** A tree with more is lost as a whole: nobody needs the list. */
const maxProblems = 1000;

/**
 * @returns what differs, at most 1000 problems, sorted by path; none for a whole tree. Times are ignored.
 * @throws WritError INTERRUPTED; DISK_* when the tree cannot be read
 */
export async function verifyTree(
  treePath: string,
  manifest: Manifest,
  options: VerifyOptions,
): Promise<TreeProblem[]> {
  try {
    const root = fs.lstatSync(treePath, { bigint: true, throwIfNoEntry: false });
    if (!root?.isDirectory()) return [{ path: '.', kind: root === undefined ? 'missing' : 'type' }];
    const problems = options.contents === 'places' ? [] : await compare(treePath, manifest, options);
    const kind = wrongRights(root, executableMode(options.mode), options);
    if (kind !== undefined) problems.push({ path: '.', kind });
    return problems.slice(0, maxProblems).sort((a, b) => (a.path < b.path ? -1 : 1));
  } catch (error) {
    if (isBadDisk(error)) return [{ path: '.', kind: 'unreadable' }];
    throw diskError(error, { op: 'verify.tree', path: treePath });
  }
}

/**
 * Makes the manifest of a tree from what it holds: where the file is lost, the signed digest says whether it is the one.
 * @param signed digest of the manifest, as it was signed
 * @returns undefined for a tree of which another manifest, or none, comes
 * @throws WritError INTERRUPTED; DISK_* when the tree cannot be read
 */
export async function provenByTree(
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
    if (isBadDisk(error)) return undefined;
    throw diskError(error, { op: 'verify.tree', path: treePath });
  }
  return manifestDigest(encodeManifest({ files })) === signed ? { files } : undefined;
}

/** What the medium says of its own damage; any other error of a read is trouble of ours. */
export function isBadDisk(error: unknown): boolean {
  return ['EIO', 'EUCLEAN', 'EBADMSG'].some((code) => isSystemError(error, code));
}

async function compare(treePath: string, manifest: Manifest, options: VerifyOptions): Promise<TreeProblem[]> {
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
  options: VerifyOptions,
): TreeProblem['kind'] | undefined {
  if (!directories.has(path)) return 'extra';
  if (!stats.isDirectory()) return 'type';
  return wrongRights(stats, executableMode(options.mode), options);
}

function judgeFile(
  { stats }: TreeNode,
  file: ManifestFile,
  options: VerifyOptions,
): TreeProblem['kind'] | undefined {
  // A second name is a way to write into the tree from outside of it.
  if (!stats.isFile() || stats.nlink !== 1n) return 'type';
  if (stats.size !== BigInt(file.sizeBytes)) return 'changed';
  const mode = file.executable ? executableMode(options.mode) : options.mode;
  return wrongRights(stats, mode, options);
}

function wrongRights(
  stats: fs.BigIntStats,
  mode: number,
  { groupId, ownerIds }: VerifyOptions,
): 'mode' | 'owner' | undefined {
  if ((stats.mode & 0o7777n) !== BigInt(mode)) return 'mode';
  if (groupId !== undefined && stats.gid !== BigInt(groupId)) return 'owner';
  return ownerIds === undefined || ownerIds.includes(Number(stats.uid)) ? undefined : 'owner';
}

async function judgeContent(
  path: string,
  file: ManifestFile,
  { contents }: VerifyOptions,
  digester: Digester,
): Promise<TreeProblem['kind'] | undefined> {
  if (contents === 'sizes') return undefined;
  try {
    return (await digester.digest(path)) === digestHex(file.digest) ? undefined : 'changed';
  } catch (error) {
    if (isBadDisk(error)) return 'unreadable';
    throw error;
  }
}

export interface Digester {
  /** @returns the hex digest; undefined for a file that vanished or became a link since it was listed */
  digest(path: string): Promise<string | undefined>;
}

const readBytes = 1_000_000;

/** @param pace told of every read */
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
    // O_NONBLOCK: a FIFO put in place of the file would hold us for ever.
    return fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ELOOP')) return undefined;
    throw error;
  }
}

/** @returns the modes and owners that the tree of a bundle must have */
export function rightsOf(
  { config }: Pick<Host, 'config'>,
  name: string,
): { mode: number; ownerIds: number[]; groupId?: number } {
  const bundle = config.bundles.find((one) => one.name === name);
  const rights = { mode: bundle?.mode ?? defaultMode, ownerIds: ownerIds() };
  const groupId = bundle?.group === undefined ? undefined : knownGroup(bundle.group);
  return groupId === undefined ? rights : { ...rights, groupId };
}

/** Trees belong to root or to the agent. */
export function ownerIds(): number[] {
  return [0, process.geteuid?.() ?? 0];
}

/** A group that was taken off the host is no damage of a tree. */
export function knownGroup(group: string | number): number | undefined {
  try {
    return lookUpGroup(group);
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

/** Of a bundle that is no longer configured. */
export const defaultMode = 0o644;

/** The mode of directories and executables: whoever may read a plain file may enter and run. */
export function executableMode(mode: number): number {
  return mode | ((mode & 0o444) >> 2);
}
