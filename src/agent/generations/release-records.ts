// The kept proof of every release on this host: archive, manifest, and the target entry with the metadata that
// vouched for it, byte for byte. Read by rollback, repair and recovery.
import { basename, dirname, join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex, digestHex, isName } from '../../core/names.js';
import { judgeKeptPath } from '../../core/release/entry-rules.js';
import { type Manifest, manifestDigest, parseManifest } from '../../core/release/manifest.js';
import { encodeReleaseInfo, parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { maxVisitedRoles } from '../../core/tuf/target-search.js';
import { type DurableFs, isTemporaryName } from '../../platform/disk/durable-fs.js';
import { isLeftBehind } from '../../platform/disk/durable-rename.js';
import { lookAt, readSmallFile } from '../../platform/read-file.js';
import type { SignedTarget, Vouchers } from '../../trust/signed-target.js';
import { type HostPaths, releaseDirectoryName } from '../state/paths.js';
import { listDirectories } from './generations.js';
import { archiveFile, type KeptCopy, readKeptCopy, writeKeptCopy } from './kept-copies.js';

export interface ReleaseRecord {
  readonly release: ReleaseInfo;
  readonly archive: { readonly path: string; readonly length: number; readonly digest: Digest };
  readonly target: string;
  readonly rootVersion: number;
  /** Names of the roles that vouched, from the top-level targets to the one that lists the release. */
  readonly vouchedBy: readonly string[];
  /** Epoch milliseconds: when this host staged it. */
  readonly stagedAtMs: number;
}

export const manifestFile = 'manifest.json';
export const recordFile = 'record.json';
/** One file a role of the chain, by its place in it: what names others give their roles is no name of a file here. */
export const voucherFile = (index: number): string =>
  index === 0 ? 'targets.json' : `delegated-${index}.json`;

export interface KeepOptions {
  readonly target: SignedTarget;
  /** What it was made of, in staging as far as it was fetched now. */
  readonly copy: KeptCopy;
  readonly manifestBytes: Uint8Array;
  readonly staging: string;
  readonly stagedAtMs: number;
}

/** Moves a staged release's proof into `archives/`, whole and flushed, in the place of an older copy of it. */
export function keepRelease(paths: HostPaths, durable: DurableFs, options: KeepOptions): void {
  const { target, staging } = options;
  const { release } = target;
  const built = join(staging, `record-${release.bundle}`);
  durable.makeDirectory('flush.record', built, 0o700);
  writeKeptCopy(durable, built, options.copy);
  durable.createFile('flush.record-manifest', join(built, manifestFile), options.manifestBytes, 0o600);
  for (const [index, { bytes }] of target.vouchedBy.chain.entries()) {
    durable.createFile('flush.record-targets', join(built, voucherFile(index)), bytes, 0o600);
  }
  durable.createFile('flush.record-entry', join(built, recordFile), recordText(options), 0o600);
  durable.flushDirectory('flush.record-directory', built);
  const place = releasePath(
    paths,
    release.bundle,
    releaseDirectoryName(release.serial, release.manifest.digest),
  );
  durable.ensureDirectory('flush.record-bundle', dirname(place), 0o700);
  const aside = `${place}${asideSuffix}`;
  const removed = join(staging, `old-${release.bundle}`);
  // The older copy may be the proof of the active tree, and no directory is renamed onto another: it waits beside
  // its place, from where a start puts it back.
  if (lookAt(place)) {
    if (lookAt(aside)) durable.rename('flush.record-older', aside, `${removed}-older`);
    durable.rename('flush.record-aside', place, aside);
  }
  try {
    durable.rename('flush.record-place', built, place);
  } catch (error) {
    putBack(durable, { place, aside });
    throw error;
  }
  if (lookAt(aside)) durable.rename('flush.record-replaced', aside, removed);
}

/** @returns the entry of a record, as it is on disk */
export function recordText({ target, stagedAtMs }: Pick<KeepOptions, 'target' | 'stagedAtMs'>): string {
  const record = {
    writ: 1,
    target: target.path,
    archive: { length: target.length, sha256: digestHex(target.digest) },
    custom: { writ: encodeReleaseInfo(target.release) },
    rootVersion: target.vouchedBy.rootVersion,
    vouchedBy: target.vouchedBy.chain.map(({ role }) => role),
    stagedAt: stagedAtMs,
  };
  return `${JSON.stringify(record)}\n`;
}

/** Of a kept release while a newer copy takes its place. */
const asideSuffix = '.replaced';

/** The failure before is the news; what cannot be put back now is put back at the next start. */
function putBack(durable: DurableFs, { place, aside }: { place: string; aside: string }): void {
  try {
    if (lookAt(aside) && !lookAt(place)) durable.rename('flush.record-back', aside, place);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

/** For a start: a release that was being replaced when a crash came has its older copy back, or is rid of it. */
export function settleReplacedReleases(paths: HostPaths, durable: DurableFs): void {
  const bundles = listDirectories(paths.archives).map((bundle) => join(paths.archives, bundle));
  for (const path of bundles.flatMap((at) => listDirectories(at).map((name) => join(at, name)))) {
    if (isTemporaryName(basename(path))) durable.removeTree('recover.sweep-copy', path);
    if (path.endsWith(asideSuffix)) settleReplaced(durable, path);
  }
}

function settleReplaced(durable: DurableFs, aside: string): void {
  const place = aside.slice(0, -asideSuffix.length);
  if (isLeftBehind(place)) durable.removeTree('recover.sweep-moved', place);
  if (lookAt(place)) durable.removeTree('recover.sweep-record', aside);
  else durable.rename('recover.record-back', aside, place);
}

/** @param release its directory name, `<serial>-<digest12>` */
export function releasePath(paths: HostPaths, bundle: string, release: string): string {
  return join(paths.archives, bundle, release);
}

/** @returns where the archive of a release is kept, if it has one of its own */
export function archivePathOf(paths: HostPaths, bundle: string, release: string): string {
  return join(releasePath(paths, bundle, release), archiveFile);
}

/**
 * @param record of that release
 * @returns the files that it is made again from without a network; they may be gone
 * @throws WritError STATE_DAMAGED
 */
export function keptCopyOf(
  paths: HostPaths,
  { bundle, release }: { readonly bundle: string; readonly release: string },
  { archive, target, release: { manifest } }: ReleaseRecord,
): KeptCopy {
  const own = { target, archive: { ...archive, manifest }, deltas: [] };
  return readKeptCopy(releasePath(paths, bundle, release), own);
}

/**
 * Reads a release's record.
 * @param name the release's directory name, `<serial>-<digest12>`
 * @throws WritError STATE_DAMAGED
 */
export function readRecord(paths: HostPaths, bundle: string, name: string): ReleaseRecord {
  const directory = releasePath(paths, bundle, name);
  try {
    const value: unknown = JSON.parse(
      readBounded(join(directory, recordFile), maxRecordBytes).toString('utf8'),
    );
    if (!isRecord(value)) throw new WritError('STATE_DAMAGED', 'a member is missing or wrong');
    const digest = digestFromHex(value.archive.sha256);
    if (digest === undefined) throw new WritError('STATE_DAMAGED', 'the digest is wrong');
    return {
      release: parseReleaseInfo(value.custom, value.target),
      archive: { path: join(directory, archiveFile), length: value.archive.length, digest },
      target: value.target,
      rootVersion: value.rootVersion,
      vouchedBy: value.vouchedBy ?? ['targets'],
      stagedAtMs: value.stagedAt,
    };
  } catch (cause) {
    throw damaged(join(directory, recordFile), cause);
  }
}

const maxRecordBytes = 1_000_000;
/** As the trust store: larger than any metadata that is accepted. */
const maxVoucherBytes = 16_000_000;
/** The top-level targets and as many delegated roles as one search visits. */
const maxVouchers = 1 + maxVisitedRoles;

/**
 * Reads the metadata that listed a release, byte for byte as this host accepted it; nothing is judged here. The files
 * above it stay on the disk: keys of today are held against the one that lists it, and all of them could be many.
 * @throws WritError STATE_DAMAGED
 */
export function readLastVoucher(paths: HostPaths, bundle: string, name: string): Buffer {
  const { vouchedBy } = readRecord(paths, bundle, name);
  return readVoucher(releasePath(paths, bundle, name), vouchedBy.length - 1);
}

/**
 * Reads every file that vouched for a release: for a repair, which keeps it again.
 * @throws WritError STATE_DAMAGED
 */
export function readVouchers(paths: HostPaths, bundle: string, name: string): Vouchers {
  const { vouchedBy, rootVersion } = readRecord(paths, bundle, name);
  const directory = releasePath(paths, bundle, name);
  const chain = vouchedBy.map((role, index) => ({ role, bytes: readVoucher(directory, index) }));
  const last = chain.at(-1);
  if (last === undefined) throw damaged(directory, 'no trusted role lists it');
  return { role: last.role, bytes: last.bytes, rootVersion, chain };
}

function readVoucher(directory: string, index: number): Buffer {
  const path = join(directory, voucherFile(index));
  try {
    return readBounded(path, maxVoucherBytes);
  } catch (cause) {
    throw damaged(path, cause);
  }
}

/** A file that has grown is damaged, and must not fill the memory to be found so. */
function readBounded(path: string, maxBytes: number): Buffer {
  const verdict = readSmallFile(path, { maxBytes });
  if (verdict.kind === 'read') return verdict.bytes;
  throw new WritError('STATE_DAMAGED', verdict.why, {
    facts: { path },
    ...(verdict.kind === 'refused' ? { cause: verdict.cause } : {}),
  });
}

interface RecordFile {
  readonly target: string;
  readonly archive: { readonly length: number; readonly sha256: unknown };
  readonly custom: unknown;
  readonly rootVersion: number;
  /** Absent in records of the time before delegations. */
  readonly vouchedBy?: readonly string[];
  readonly stagedAt: number;
}

function isRecord(value: unknown): value is RecordFile {
  if (typeof value !== 'object' || value === null) return false;
  const { target, archive, rootVersion, stagedAt, vouchedBy } = value as Record<string, unknown>;
  const length =
    typeof archive === 'object' && archive !== null ? (archive as { length?: unknown }).length : undefined;
  return (
    [length, rootVersion, stagedAt].every((one) => Number.isSafeInteger(one)) &&
    typeof target === 'string' &&
    (vouchedBy === undefined || isChain(vouchedBy))
  );
}

function isChain(value: unknown): boolean {
  const isWhole = Array.isArray(value) && value.length >= 1 && value.length <= maxVouchers;
  return isWhole && value.every((role) => typeof role === 'string');
}

export interface KeptManifest {
  /** As they were signed. */
  readonly bytes: Buffer;
  /** @throws WritError STATE_DAMAGED */
  parsed(): Manifest;
}

/**
 * Reads a release's manifest: proven against its digest when this returns, and parsed when it is asked for, since that takes a
 * hundred times as long, and not everybody needs its files.
 * @param signed digest of the manifest, as it was signed
 * @throws WritError STATE_DAMAGED
 */
export function openManifest(paths: HostPaths, bundle: string, name: string, signed: Digest): KeptManifest {
  const path = join(releasePath(paths, bundle, name), manifestFile);
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (cause) {
      throw damaged(path, cause);
    }
  };
  const bytes = attempt(() => readBounded(path, defaultArchiveLimits.maxManifestBytes));
  if (manifestDigest(bytes) !== signed)
    throw damaged(path, new WritError('MANIFEST_DIGEST', 'not as signed'));
  let manifest: Manifest | undefined;
  const parsed = (): Manifest => {
    manifest ??= attempt(() => parseManifest(bytes, defaultArchiveLimits, judgeKeptPath));
    return manifest;
  };
  return { bytes, parsed };
}

function damaged(path: string, cause: unknown): WritError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new WritError('STATE_DAMAGED', `${path}: ${why}`, { facts: { path }, cause });
}

/** @returns all releases kept on this host. */
export function listReleases(paths: HostPaths): { bundle: string; name: string; path: string }[] {
  return listDirectories(paths.archives)
    .filter(isName)
    .flatMap((bundle) => {
      const names = listDirectories(join(paths.archives, bundle)).filter(isReleaseName);
      return names.map((name) => ({ bundle, name, path: releasePath(paths, bundle, name) }));
    });
}

/** One that is being replaced, or copied, has no name of its own. */
const isReleaseName = (name: string): boolean => !name.endsWith(asideSuffix) && !isTemporaryName(name);
