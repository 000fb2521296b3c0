// Scans a generation: its links, the tree of each bundle, and the retained files that restore that tree (manifest, record,
// archive). An unreadable file counts as damage, so that the scan covers the rest. Reads only, limited by its pace.

import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isSystemError, orUndefined } from '../../core/errors.js';
import { type Digest, digestHex, isName } from '../../core/names.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { DamageFound, DamageKind, ScanDepth } from '../../core/status/scrub-state.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import { lstatIfPresent } from '../../platform/read-file.js';
import type { Pace } from '../../platform/time/rate-limit.js';
import type { Host } from '../state/host.js';
import { bundleLink, parseTreeName, releaseDirectoryName } from '../state/paths.js';
import { notedLinks } from './generation-notes.js';
import { readRecordedTarget } from './recorded-target.js';
import { keptCopyOf, openManifest, type ReleaseRecord, readRecord, releasePath } from './release-records.js';
import {
  createDigester,
  expectedPermissions,
  isMediumError,
  ownerIds,
  rebuildManifest,
  verifyTree,
} from './verify-tree.js';

/** The parts of a host that a scan reads. */
export type DiskView = Pick<Host, 'paths' | 'ledger' | 'config'>;

export interface ExamineOptions {
  /** `digests` reads everything; `sizes`: after a restart of the agent; `places`: only whether files exist, for an unchanged pull. */
  readonly contents: ScanDepth;
  readonly pace: Pace;
}

export interface ExaminedBundle {
  readonly bundle: string;
  readonly treeDirectory: string;
  readonly treePath: string;
  /** Directory name of the retained release. */
  readonly release: string;
  /** Left out if it is unreadable. */
  readonly record?: ReleaseRecord;
  /** Left out if neither the file nor the tree yields the signed manifest, and in a scan of `places`. */
  readonly manifest?: Manifest;
  /** Damage of the tree. */
  readonly tree: readonly DamageFound[];
  /** Damage of the retained record, manifest and archive. */
  readonly kept: readonly DamageFound[];
}

export interface ExaminedGeneration {
  readonly generation: number;
  /** Damage of the links. */
  readonly links: readonly DamageFound[];
  readonly bundles: readonly ExaminedBundle[];
}

/**
 * Scans the links, trees and retained files of a generation. Damage is in the result, never an error.
 * @returns damage of the links, and each bundle with its own; empty lists if all is intact. The bundles are those that the
 *   ledger noted for this number, else those of the valid links. A missing directory is one link damage: `missing`, path `.`
 * @throws WritError INTERRUPTED by the pace; DISK_* for a read error that is no damage of the medium
 */
export async function examineGeneration(
  host: DiskView,
  generation: number,
  options: ExamineOptions,
): Promise<ExaminedGeneration> {
  const directory = readLinks(join(host.paths.generations, String(generation)));
  const noted = notedLinks(host.ledger.read(), generation);
  const expected = new Map(noted === undefined ? validLinks(directory.links) : Object.entries(noted));
  const links = judgeLinks(directory, expected).map(
    (one): DamageFound => ({ generation, part: 'generation', ...one }),
  );
  const bundles: ExaminedBundle[] = [];
  for (const [bundle, treeDirectory] of expected) {
    bundles.push(await examineBundle(host, { generation, bundle, treeDirectory }, options));
  }
  return { generation, links, bundles };
}

/** @returns true if every link and tree is as signed, even if retained copies are damaged */
export function isUsable({ links, bundles }: ExaminedGeneration): boolean {
  return links.length === 0 && bundles.every(isTreeWhole);
}

/** @returns true if the tree was read and matches its signed manifest */
export function isTreeWhole({ tree, manifest }: ExaminedBundle): boolean {
  return tree.length === 0 && manifest !== undefined;
}

/** @returns true if the retained files of this host are enough to repair every damaged tree of the generation */
export function canRepairLocally({ links, bundles }: ExaminedGeneration): boolean {
  return links.length === 0 && bundles.every((one) => isTreeWhole(one) || one.kept.length === 0);
}

/** @returns all damage of a generation: links, trees and retained files */
export function listDamage({ links, bundles }: ExaminedGeneration): DamageFound[] {
  return [...links, ...bundles.flatMap(({ tree, kept }) => [...tree, ...kept])];
}

interface LinkDirectory {
  /** Damage of the directory itself; left out if it is intact. */
  readonly kind?: DamageKind;
  /** Text of each link by its name; undefined for an entry that is no link. */
  readonly links: ReadonlyMap<string, string | undefined>;
}

function readLinks(path: string): LinkDirectory {
  const none = new Map<string, undefined>();
  try {
    const stats = lstatIfPresent(path);
    if (stats === undefined) return { kind: 'missing', links: none };
    if (!stats.isDirectory()) return { kind: 'type', links: none };
    const links = new Map(fs.readdirSync(path).map((name) => [name, readLink(join(path, name))]));
    if ((stats.mode & 0o7777) !== 0o755) return { kind: 'mode', links };
    return ownerIds().includes(stats.uid) ? { links } : { kind: 'owner', links };
  } catch (error) {
    if (isMediumError(error)) return { kind: 'unreadable', links: none };
    throw diskError(error, { op: 'verify.links', path });
  }
}

function readLink(path: string): string | undefined {
  try {
    return fs.readlinkSync(path);
  } catch (error) {
    if (isSystemError(error, 'EINVAL') || isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** @returns tree by bundle, from the valid links alone: the ledger has no record of this generation to compare with */
function validLinks(links: LinkDirectory['links']): [string, string][] {
  return [...links].flatMap(([bundle, text = '']): [string, string][] => {
    const name = text.slice(text.lastIndexOf('/') + 1);
    const isOurs = isName(bundle) && parseTreeName(name) !== undefined && text === bundleLink(bundle, name);
    return isOurs ? [[bundle, name]] : [];
  });
}

type LinkProblem = Pick<DamageFound, 'kind' | 'path' | 'bundle'>;

function judgeLinks({ kind, links }: LinkDirectory, expected: ReadonlyMap<string, string>): LinkProblem[] {
  if (kind === 'missing' || kind === 'type' || kind === 'unreadable') return [{ kind, path: '.' }];
  const wrong = [...expected].flatMap(([bundle, tree]): LinkProblem[] => {
    if (!links.has(bundle)) return [{ kind: 'missing', path: bundle, bundle }];
    const text = links.get(bundle);
    if (text === bundleLink(bundle, tree)) return [];
    return [{ kind: text === undefined ? 'type' : 'changed', path: bundle, bundle }];
  });
  const extra = [...links.keys()].filter((name) => !expected.has(name));
  return [
    ...(kind === undefined ? [] : [{ kind, path: '.' }]),
    ...wrong,
    ...extra.map((path): LinkProblem => ({ kind: 'extra', path })),
  ];
}

interface BundlePlace {
  readonly generation: number;
  readonly bundle: string;
  readonly treeDirectory: string;
}

/**
 * @param treeDirectory the name of the directory that the generation's link names
 * @returns the retained release of the tree and its damage; two empty lists where everything is intact
 * @throws WritError INTERRUPTED by the pace; DISK_* for a read error that is no damage of the medium
 */
export async function examineBundle(
  host: DiskView,
  { generation, bundle, treeDirectory }: BundlePlace,
  options: ExamineOptions,
): Promise<ExaminedBundle> {
  const release = parseTreeName(treeDirectory)?.release ?? treeDirectory;
  const treePath = join(host.paths.bundles, bundle, treeDirectory);
  const of = (part: DamageFound['part'], kind: DamageKind, path = '.'): DamageFound => {
    return { generation, part, kind, bundle, tree: treeDirectory, path };
  };
  const place = releasePath(host.paths, bundle, release);
  // An unreadable record is reported as damage below.
  const record = orUndefined(() => readCheckedRecord(host.paths, { bundle, release }, options));
  const signed = record?.release.manifest.digest ?? findAcceptedManifest(host, bundle, release);
  const kept = signed && readKeptManifest(host.paths, { bundle, release, signed }, options);
  const copy = record === undefined ? [] : await judgeCopy(host, { bundle, release, record }, options);
  const { manifest, problems } = await judgeTree(host, { bundle, treePath, signed, kept }, options);
  return {
    ...{ bundle, treeDirectory, treePath, release },
    ...(record === undefined ? {} : { record }),
    ...(manifest === undefined || options.contents === 'places' ? {} : { manifest }),
    tree: problems.map(({ kind, path }) => of('tree', kind, path)),
    kept: [
      ...(record === undefined ? [of('record', kindOf(join(place, 'record.json')))] : []),
      ...(signed && !kept ? [of('manifest', kindOf(join(place, 'manifest.json')))] : []),
      ...copy.map(({ kind, path }) => of('archive', kind, path)),
    ],
  };
}

/** A scan of `places` accepts a manifest file that exists, and returns it without files because the scan needs none. */
function readKeptManifest(
  paths: DiskView['paths'],
  { bundle, release, signed }: { readonly bundle: string; readonly release: string; readonly signed: Digest },
  { contents }: ExamineOptions,
): Manifest | undefined {
  if (contents !== 'places') return orUndefined(() => openManifest(paths, bundle, release, signed).parsed());
  const path = join(releasePath(paths, bundle, release), 'manifest.json');
  return lstatIfPresent(path)?.isFile() === true ? { files: [] } : undefined;
}

/** @returns the digest that the ledger recorded when this host accepted the release; used if the record is lost */
function findAcceptedManifest({ ledger }: DiskView, bundle: string, release: string): Digest | undefined {
  const { accepted } = ledger.read();
  return Object.entries(accepted)
    .flatMap(([key, releases]) => (key.startsWith(`${bundle}/`) ? releases : []))
    .find(({ serial, manifestDigest }) => releaseDirectoryName(serial, manifestDigest) === release)
    ?.manifestDigest;
}

interface TreeFacts {
  readonly bundle: string;
  readonly treePath: string;
  readonly signed: Digest | undefined;
  readonly kept: Manifest | undefined;
}

/** If the manifest is lost, a tree is intact if its contents yield the signed manifest. */
async function judgeTree(
  host: DiskView,
  { bundle, treePath, signed, kept }: TreeFacts,
  options: ExamineOptions,
): Promise<{ manifest?: Manifest | undefined; problems: readonly Pick<DamageFound, 'kind' | 'path'>[] }> {
  const rootProblems = judgeTreeRoot(treePath);
  if (signed === undefined || rootProblems.length > 0) return { manifest: kept, problems: rootProblems };
  const manifest = kept ?? (await rebuildManifest(treePath, signed, options.pace));
  if (manifest === undefined) return { problems: [{ kind: 'changed', path: '.' }] };
  return {
    manifest,
    problems: await verifyTree(treePath, manifest, { ...options, ...expectedPermissions(host, bundle) }),
  };
}

/** Compares the record with its signed part only in a scan of `digests`. @throws WritError STATE_DAMAGED */
function readCheckedRecord(
  paths: DiskView['paths'],
  { bundle, release }: { readonly bundle: string; readonly release: string },
  { contents }: ExamineOptions,
): ReleaseRecord {
  if (contents === 'digests') readRecordedTarget(paths, bundle, release);
  return readRecord(paths, bundle, release);
}

function kindOf(path: string): DamageKind {
  const stats = lstatIfPresent(path);
  if (stats === undefined) return 'missing';
  return stats.isFile() ? 'changed' : 'type';
}

function judgeTreeRoot(treePath: string): { kind: DamageKind; path: string }[] {
  const stats = lstatIfPresent(treePath);
  if (stats?.isDirectory() === true) return [];
  return [{ kind: stats === undefined ? 'missing' : 'type', path: '.' }];
}

/** Compares the archive of the release, or the base archive and every delta since: a repair needs all of them. */
async function judgeCopy(
  { paths }: DiskView,
  { record, ...place }: { bundle: string; release: string; record: ReleaseRecord },
  options: ExamineOptions,
): Promise<Pick<DamageFound, 'kind' | 'path'>[]> {
  const copy = orUndefined(() => keptCopyOf(paths, place, record));
  if (copy === undefined) return [{ kind: 'changed', path: '.' }];
  const found: Pick<DamageFound, 'kind' | 'path'>[] = [];
  for (const file of [copy.archive, ...copy.deltas]) {
    const kind = await judgeArchive(file, options);
    if (kind !== undefined) found.push({ kind, path: copy.deltas.length === 0 ? '.' : basename(file.path) });
  }
  return found;
}

async function judgeArchive(
  { path, length, digest }: ReleaseRecord['archive'],
  { contents, pace }: ExamineOptions,
): Promise<DamageKind | undefined> {
  try {
    const stats = lstatIfPresent(path);
    if (stats === undefined) return 'missing';
    if (!stats.isFile()) return 'type';
    if (stats.size !== length) return 'changed';
    if (contents !== 'digests') return undefined;
    return (await createDigester(pace).digest(path)) === digestHex(digest) ? undefined : 'changed';
  } catch (error) {
    if (isMediumError(error)) return 'unreadable';
    throw diskError(error, { op: 'verify.archive', path });
  }
}
