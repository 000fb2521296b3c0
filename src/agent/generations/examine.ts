// A generation on disk against what it must be: its links, the tree of each bundle, and what is kept to make that tree
// again (manifest, record, archive). Reads only, as fast as its pace allows. Whatever is wrong is in the findings: what
// cannot be read does not keep the rest from being looked at.

import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isSystemError, orUndefined } from '../../core/errors.js';
import { type Digest, digestHex, isName } from '../../core/names.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { DamageFound, DamageKind, ScanDepth } from '../../core/status/scrub-state.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import { lookAt } from '../../platform/read-file.js';
import type { Pace } from '../../platform/time/rate-limit.js';
import type { Host } from '../state/host.js';
import { bundleLink, parseTreeName, releaseDirectoryName } from '../state/paths.js';
import { notedLinks } from './generation-notes.js';
import { recordedTarget } from './recorded-target.js';
import { keptCopyOf, openManifest, type ReleaseRecord, readRecord, releasePath } from './release-records.js';
import { createDigester, isBadDisk, ownerIds, provenByTree, rightsOf, verifyTree } from './verify-tree.js';

/** What looking needs of a host. */
export type DiskView = Pick<Host, 'paths' | 'ledger' | 'config'>;

export interface ExamineOptions {
  /** `sizes` is the quick look after a restart of the agent alone, `places` that of a pull with nothing to do. */
  readonly contents: ScanDepth;
  readonly pace: Pace;
}

export interface ExaminedBundle {
  readonly bundle: string;
  readonly treeDirectory: string;
  readonly treePath: string;
  /** Directory of the kept release. */
  readonly release: string;
  /** Left out when it cannot be read. */
  readonly record?: ReleaseRecord;
  /** Left out when nobody can say any more what the tree must be, and by a look at places, which does not ask. */
  readonly manifest?: Manifest;
  /** Of the tree. */
  readonly tree: readonly DamageFound[];
  /** Of the kept record, manifest and archive. */
  readonly kept: readonly DamageFound[];
}

export interface ExaminedGeneration {
  readonly generation: number;
  /** Of the links. */
  readonly links: readonly DamageFound[];
  readonly bundles: readonly ExaminedBundle[];
}

/** @throws WritError INTERRUPTED by the pace; DISK_* when the disk cannot be read for a reason of ours */
export async function examineGeneration(
  host: DiskView,
  generation: number,
  options: ExamineOptions,
): Promise<ExaminedGeneration> {
  const directory = readLinks(join(host.paths.generations, String(generation)));
  const noted = notedLinks(host.ledger.read(), generation);
  const expected = new Map(noted === undefined ? ourLinks(directory.links) : Object.entries(noted));
  const links = judgeLinks(directory, expected).map(
    (one): DamageFound => ({ generation, part: 'generation', ...one }),
  );
  const bundles: ExaminedBundle[] = [];
  for (const [bundle, treeDirectory] of expected) {
    bundles.push(await examineBundle(host, { generation, bundle, treeDirectory }, options));
  }
  return { generation, links, bundles };
}

/** True for a generation that can be used: every link and tree is as signed, whatever became of the kept copies. */
export function isUsable({ links, bundles }: ExaminedGeneration): boolean {
  return links.length === 0 && bundles.every(isTreeWhole);
}

/** True for a tree that was read, and is what was signed. */
export function isTreeWhole({ tree, manifest }: ExaminedBundle): boolean {
  return tree.length === 0 && manifest !== undefined;
}

/** True for a damaged generation of which this host has all that its releases are made again from. */
export function isMendable({ links, bundles }: ExaminedGeneration): boolean {
  return links.length === 0 && bundles.every((one) => isTreeWhole(one) || one.kept.length === 0);
}

/** @returns everything that is wrong with it */
export function damageIn({ links, bundles }: ExaminedGeneration): DamageFound[] {
  return [...links, ...bundles.flatMap(({ tree, kept }) => [...tree, ...kept])];
}

interface LinkDirectory {
  /** Of the directory itself. */
  readonly kind?: DamageKind;
  /** Text of each link by its name; undefined for what is no link. */
  readonly links: ReadonlyMap<string, string | undefined>;
}

function readLinks(path: string): LinkDirectory {
  const none = new Map<string, undefined>();
  try {
    const stats = lookAt(path);
    if (stats === undefined) return { kind: 'missing', links: none };
    if (!stats.isDirectory()) return { kind: 'type', links: none };
    const links = new Map(fs.readdirSync(path).map((name) => [name, readLink(join(path, name))]));
    if ((stats.mode & 0o7777) !== 0o755) return { kind: 'mode', links };
    return ownerIds().includes(stats.uid) ? { links } : { kind: 'owner', links };
  } catch (error) {
    if (isBadDisk(error)) return { kind: 'unreadable', links: none };
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

/** Of a generation that nobody noted, its own links are all that is known. */
function ourLinks(links: LinkDirectory['links']): [string, string][] {
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
  // What is to be compared with and cannot be read is damage like any other.
  const record = orUndefined(() => readTrueRecord(host.paths, { bundle, release }, options));
  const signed = record?.release.manifest.digest ?? acceptedManifest(host, bundle, release);
  const kept = signed && keptManifest(host.paths, { bundle, release, signed }, options);
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

/** A look at places takes a manifest that is there for whole, and asks it for no file. */
function keptManifest(
  paths: DiskView['paths'],
  { bundle, release, signed }: { readonly bundle: string; readonly release: string; readonly signed: Digest },
  { contents }: ExamineOptions,
): Manifest | undefined {
  if (contents !== 'places') return orUndefined(() => openManifest(paths, bundle, release, signed).parsed());
  const path = join(releasePath(paths, bundle, release), 'manifest.json');
  return lookAt(path)?.isFile() === true ? { files: [] } : undefined;
}

/** What this host noted when it accepted the release: it says what the tree must be when the record is lost. */
function acceptedManifest({ ledger }: DiskView, bundle: string, release: string): Digest | undefined {
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

/** Where the manifest is lost too, a tree of which the signed manifest can be made is complete. */
async function judgeTree(
  host: DiskView,
  { bundle, treePath, signed, kept }: TreeFacts,
  options: ExamineOptions,
): Promise<{ manifest?: Manifest | undefined; problems: readonly Pick<DamageFound, 'kind' | 'path'>[] }> {
  const there = treeThere(treePath);
  if (signed === undefined || there.length > 0) return { manifest: kept, problems: there };
  const manifest = kept ?? (await provenByTree(treePath, signed, options.pace));
  if (manifest === undefined) return { problems: [{ kind: 'changed', path: '.' }] };
  return {
    manifest,
    problems: await verifyTree(treePath, manifest, { ...options, ...rightsOf(host, bundle) }),
  };
}

/** In the quick look the signed part of the record stays unread. */
function readTrueRecord(
  paths: DiskView['paths'],
  { bundle, release }: { readonly bundle: string; readonly release: string },
  { contents }: ExamineOptions,
): ReleaseRecord {
  if (contents === 'digests') recordedTarget(paths, bundle, release);
  return readRecord(paths, bundle, release);
}

function kindOf(path: string): DamageKind {
  const stats = lookAt(path);
  if (stats === undefined) return 'missing';
  return stats.isFile() ? 'changed' : 'type';
}

function treeThere(treePath: string): { kind: DamageKind; path: string }[] {
  const stats = lookAt(treePath);
  if (stats?.isDirectory() === true) return [];
  return [{ kind: stats === undefined ? 'missing' : 'type', path: '.' }];
}

/** The archive, or the one of a release before it and the deltas since: each of them is needed. */
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
    const stats = lookAt(path);
    if (stats === undefined) return 'missing';
    if (!stats.isFile()) return 'type';
    if (stats.size !== length) return 'changed';
    if (contents !== 'digests') return undefined;
    return (await createDigester(pace).digest(path)) === digestHex(digest) ? undefined : 'changed';
  } catch (error) {
    if (isBadDisk(error)) return 'unreadable';
    throw diskError(error, { op: 'verify.archive', path });
  }
}
