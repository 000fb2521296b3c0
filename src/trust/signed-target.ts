// A release as the signed targets describe it: the facts on which an agent decides before it fetches the archive. Derives path,
// length and digest of the archive from a target entry.
import { WritError } from '../core/errors.js';
import { type Digest, deltaPath, digestFromHex, digestHex } from '../core/names.js';
import type { DeltaInfo } from '../core/release/deltas.js';
import { parseReleaseInfo, type ReleaseInfo } from '../core/release/release.js';
import { requireAcceptedSerial } from '../core/release/serial.js';
import type { FoundTarget } from '../core/tuf/target-search.js';
import { recallFile, requireTrusted, type TrustedSet } from '../core/tuf/trusted-set.js';
import type { TargetFile } from '../core/tuf/tuf-metadata.js';
import { encodePath } from './sources/source-path.js';

/** A target of any publisher that the trusted metadata lists. */
export interface FoundFile {
  /** Target path; Writ publishes `<bundle>/<channel>.tar.br`. */
  readonly path: string;
  readonly file: TargetFile;
  /** Path in the repository, for RepositorySource. */
  readonly archivePath: string;
  /** In bytes. */
  readonly length: number;
  readonly vouchedBy: Vouchers;
}

export interface SignedTarget extends FoundFile {
  readonly release: ReleaseInfo;
  readonly digest: Digest;
}

/** The exact bytes of the metadata that proves a target: part of the release record. */
export interface Vouchers {
  /** Name of the role that signed the entry. */
  readonly role: string;
  /** File of that role. */
  readonly bytes: Uint8Array;
  readonly rootVersion: number;
  /** From the top-level targets to that role: each file delegates to the next. */
  readonly chain: readonly { readonly role: string; readonly bytes: Uint8Array }[];
}

/** @returns the path and length of its archive, and the metadata that proves it, from the top-level targets on */
export function describeFound(set: TrustedSet, { path, file, chain }: FoundTarget): FoundFile {
  const archivePath = targetLocation(set, path, file);
  return { path, file, archivePath, length: file.length, vouchedBy: vouchersOf(set, chain) };
}

interface ChannelName {
  readonly bundle: string;
  readonly channel: string;
}

/**
 * Parses the release of a found target.
 * @throws WritError TARGET_MALFORMED if a member is missing, the serial is above the bound, or the entry is of another bundle
 */
export function readSignedTarget(found: FoundFile, name: ChannelName): SignedTarget {
  const target = parseSignedTarget(found, name);
  requireAcceptedSerial(target.release, found.path);
  return target;
}

/** @throws WritError TARGET_MALFORMED */
function parseSignedTarget(found: FoundFile, { bundle, channel }: ChannelName): SignedTarget {
  const { path, file } = found;
  const release = parseReleaseInfo(file.custom, path);
  // A signed entry of one bundle under the path of another would give a host the wrong policy.
  if (release.bundle !== bundle || release.channel !== channel) throw malformed(path, 'bundle or channel');
  const digest = digestFromHex(file.hashes['sha256']);
  if (digest === undefined) throw malformed(path, 'hashes.sha256');
  return { ...found, release, digest };
}

/**
 * Reads a target from the metadata in its record. The caller decides whether current keys sign it.
 * @returns undefined if the metadata cannot be read or does not list it
 * @throws WritError TARGET_MALFORMED
 */
export function recallSignedTarget(
  path: string,
  vouchedBy: Vouchers,
  wanted: ChannelName,
): SignedTarget | undefined {
  const targets = recallFile(vouchedBy.bytes, 'targets', vouchedBy.role)?.signed.targets ?? {};
  const file = Object.hasOwn(targets, path) ? targets[path] : undefined;
  if (file === undefined) return undefined;
  // Writ publishes with consistent snapshots. From other repositories only the retained archive is available.
  const archivePath = locationOf(path, file.hashes['sha256']);
  // Without the bound on serials, because Writ 0.1.0 activated releases above it.
  return parseSignedTarget({ path, file, archivePath, length: file.length, vouchedBy }, wanted);
}

/**
 * @returns the path of a delta of this release, for RepositorySource: the encoded path of the delta below targets/, with the
 *   digest of the delta before the file name
 */
export function deltaLocation({ release }: Pick<SignedTarget, 'release'>, { digest }: DeltaInfo): string {
  return locationOf(deltaPath(release.bundle, release.channel), digestHex(digest));
}

function vouchersOf(set: TrustedSet, chain: FoundTarget['chain']): Vouchers {
  const last = chain.at(-1) ?? requireTrusted(set, 'targets');
  return {
    role: last.name,
    bytes: last.bytes,
    rootVersion: set.root.signed.version,
    chain: chain.map(({ name, bytes }) => ({ role: name, bytes })),
  };
}

/**
 * @returns the path of a target in the repository, for RepositorySource. With consistent snapshots a digest precedes the last part
 *   of the name (specification 5.7.3).
 */
function targetLocation(set: TrustedSet, path: string, file: TargetFile): string {
  const isConsistent = set.root.signed.consistent_snapshot === true;
  return locationOf(path, isConsistent ? (file.hashes['sha256'] ?? file.hashes['sha512']) : undefined);
}

function locationOf(path: string, hex: string | undefined): string {
  const segments = path.split('/');
  const name = segments.pop() ?? '';
  return encodePath('targets', ...segments, hex === undefined ? name : `${hex}.${name}`);
}

function malformed(path: string, member: string): WritError {
  return new WritError('TARGET_MALFORMED', `${path}: ${member} is missing or wrong`, {
    facts: { target: path, member },
  });
}
