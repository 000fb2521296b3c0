// The retained record of every release on this host: archive, manifest, and the target entry with the metadata that signed
// it, byte for byte. Rollback, repair and recovery read it.
import { basename, dirname, join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex, digestHex, isName } from '../../core/names.js';
import { judgeKeptPath } from '../../core/release/entry-rules.js';
import { type Manifest, manifestDigest, parseManifest } from '../../core/release/manifest.js';
import { encodeReleaseInfo, parseReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import { maxVisitedRoles } from '../../core/tuf/target-search.js';
import { type DurableFs, isTemporaryName } from '../../platform/disk/durable-fs.js';
import { isMovedSource } from '../../platform/disk/durable-rename.js';
import { lstatIfPresent, readSmallFile } from '../../platform/read-file.js';
import type { SignedTarget, Vouchers } from '../../trust/signed-target.js';
import { type HostPaths, releaseDirectoryName } from '../state/paths.js';
import { listDirectories } from './generations.js';
import { archiveFile, type KeptCopy, readKeptCopy, writeKeptCopy } from './kept-copies.js';

export interface ReleaseRecord {
  readonly release: ReleaseInfo;
  readonly archive: { readonly path: string; readonly length: number; readonly digest: Digest };
  readonly target: string;
  readonly rootVersion: number;
  /** Provenance: names of the roles from the top-level targets to the one that lists the release. */
  readonly vouchedBy: readonly string[];
  /** Epoch milliseconds at which this host staged it. */
  readonly stagedAtMs: number;
}

export const manifestFile = 'manifest.json';
export const recordFile = 'record.json';
/** File name of a role by its index in the chain. Its own name is never used, because a publisher chooses it freely. */
export const voucherFile = (index: number): string =>
  index === 0 ? 'targets.json' : `delegated-${index}.json`;

export interface KeepOptions {
  readonly target: SignedTarget;
  /** The files that the tree was created from; newly downloaded ones are in staging. */
  readonly copy: KeptCopy;
  readonly manifestBytes: Uint8Array;
  readonly staging: string;
  readonly stagedAtMs: number;
}

/**
 * Moves the record of a staged release into `archives/`, complete and flushed, in place of an older record of the release.
 * @throws WritError DISK_*; the older record stays then, or a start restores it
 */
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
  // The older record may belong to the active tree, and a rename never replaces a directory. It is set aside first; after
  // a crash a start restores it.
  if (lstatIfPresent(place)) {
    if (lstatIfPresent(aside)) durable.rename('flush.record-older', aside, `${removed}-older`);
    durable.rename('flush.record-aside', place, aside);
  }
  try {
    durable.rename('flush.record-place', built, place);
  } catch (error) {
    restoreOlderCopy(durable, { place, aside });
    throw error;
  }
  if (lstatIfPresent(aside)) durable.rename('flush.record-replaced', aside, removed);
}

/** @returns the text of a record entry, as it is stored on disk */
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

/** Suffix of a set-aside record while a newer one replaces it. */
const asideSuffix = '.replaced';

/** Ignores a second failure, because the caller throws the first one and the next start restores the record. */
function restoreOlderCopy(durable: DurableFs, { place, aside }: { place: string; aside: string }): void {
  try {
    if (lstatIfPresent(aside) && !lstatIfPresent(place)) durable.rename('flush.record-back', aside, place);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

/** At a start after a crash, restores an older record if the new one is missing, and otherwise removes it. @throws WritError DISK_* */
export function recoverReplacedReleases(paths: HostPaths, durable: DurableFs): void {
  const bundles = listDirectories(paths.archives).map((bundle) => join(paths.archives, bundle));
  for (const path of bundles.flatMap((at) => listDirectories(at).map((name) => join(at, name)))) {
    if (isTemporaryName(basename(path))) durable.removeTree('recover.sweep-copy', path);
    if (path.endsWith(asideSuffix)) settleReplaced(durable, path);
  }
}

function settleReplaced(durable: DurableFs, aside: string): void {
  const place = aside.slice(0, -asideSuffix.length);
  if (isMovedSource(place)) durable.removeTree('recover.sweep-moved', place);
  if (lstatIfPresent(place)) durable.removeTree('recover.sweep-record', aside);
  else durable.rename('recover.record-back', aside, place);
}

/** @returns the directory of a retained release. @param release its directory name, `<serial>-<digest12>` */
export function releasePath(paths: HostPaths, bundle: string, release: string): string {
  return join(paths.archives, bundle, release);
}

/** @returns the path of the archive of a release; the file exists only if the release has an archive of its own */
export function archivePathOf(paths: HostPaths, bundle: string, release: string): string {
  return join(releasePath(paths, bundle, release), archiveFile);
}

/** Lists the files that restore a release without a network; they may be missing. @throws WritError STATE_DAMAGED */
export function keptCopyOf(
  paths: HostPaths,
  { bundle, release }: { readonly bundle: string; readonly release: string },
  { archive, target, release: { manifest } }: ReleaseRecord,
): KeptCopy {
  const own = { target, archive: { ...archive, manifest }, deltas: [] };
  return readKeptCopy(releasePath(paths, bundle, release), own);
}

/**
 * Reads the record of a release.
 * @param name directory name of the release, `<serial>-<digest12>`
 * @throws WritError STATE_DAMAGED if it is missing or invalid
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
/** Larger than any metadata file that Writ accepts; the trust store has the same limit. */
const maxVoucherBytes = 16_000_000;
/** The top-level targets and the most delegated roles that one search visits. */
const maxVouchers = 1 + maxVisitedRoles;

/**
 * Reads the metadata file that listed a release, byte for byte as this host accepted it, without verification. Only this
 * file is compared with the current keys; the files above it could be large and are not read.
 * @throws WritError STATE_DAMAGED
 */
export function readLastVoucher(paths: HostPaths, bundle: string, name: string): Buffer {
  const { vouchedBy } = readRecord(paths, bundle, name);
  return readVoucher(releasePath(paths, bundle, name), vouchedBy.length - 1);
}

/**
 * Reads all metadata files from the top-level targets to the one that listed a release. A repair writes them again.
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

/** Reads a file up to a limit, so that a damaged file that has grown does not fill the memory. */
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
  /** Left out in records of a Writ without delegations. */
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
  /** The signed bytes. */
  readonly bytes: Buffer;
  /** Parses at the first call. @throws WritError STATE_DAMAGED */
  parsed(): Manifest;
}

/**
 * Reads the manifest of a release and verifies its digest. Parsing takes a hundred times as long and happens only when
 * `parsed` is called.
 * @param name directory name of the release, `<serial>-<digest12>`
 * @param signed digest of the manifest, as it was signed
 * @throws WritError STATE_DAMAGED if the file is unreadable or does not match
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

/** @returns all releases that this host retains; `name` is the directory name, `path` the directory */
export function listReleases(paths: HostPaths): { bundle: string; name: string; path: string }[] {
  return listDirectories(paths.archives)
    .filter(isName)
    .flatMap((bundle) => {
      const names = listDirectories(join(paths.archives, bundle)).filter(isReleaseName);
      return names.map((name) => ({ bundle, name, path: releasePath(paths, bundle, name) }));
    });
}

/** False for the set-aside or temporary directory of a release that is being replaced or copied. */
const isReleaseName = (name: string): boolean => !name.endsWith(asideSuffix) && !isTemporaryName(name);
