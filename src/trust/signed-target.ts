// A release as the signed targets describe it: all that an agent decides on before a byte of the archive is
// fetched. Owns the way from a target entry to the path, length and digest of the archive.
import { WritError } from '../core/errors.js';
import { type Digest, deltaPath, digestFromHex, digestHex } from '../core/names.js';
import type { DeltaInfo } from '../core/release/deltas.js';
import { parseReleaseInfo, type ReleaseInfo } from '../core/release/release.js';
import { requireAcceptedSerial } from '../core/release/serial.js';
import type { FoundTarget } from '../core/tuf/target-search.js';
import { recallFile, requireTrusted, type TrustedSet } from '../core/tuf/trusted-set.js';
import type { TargetFile } from '../core/tuf/tuf-metadata.js';
import { encodePath } from './sources/source-path.js';

/** A file of any publisher that the trusted metadata lists. */
export interface FoundFile {
  /** As the targets name it; ours are `<bundle>/<channel>.tar.br`. */
  readonly path: string;
  readonly file: TargetFile;
  /** Where the repository has it, as a path for RepositorySource. */
  readonly archivePath: string;
  /** Bytes. */
  readonly length: number;
  readonly vouchedBy: Vouchers;
}

export interface SignedTarget extends FoundFile {
  readonly release: ReleaseInfo;
  readonly digest: Digest;
}

/** The metadata that vouches for a target, byte for byte: part of the release record. */
export interface Vouchers {
  /** Name of the role that lists the target. */
  readonly role: string;
  /** That role's file. */
  readonly bytes: Uint8Array;
  readonly rootVersion: number;
  /** From the top-level targets to that role: each file delegates to the next. */
  readonly chain: readonly { readonly role: string; readonly bytes: Uint8Array }[];
}

/** @returns where its archive lies, how long it is, and which files vouch for it, from the targets on */
export function describeFound(set: TrustedSet, { path, file, chain }: FoundTarget): FoundFile {
  const archivePath = targetLocation(set, path, file);
  return { path, file, archivePath, length: file.length, vouchedBy: vouchersOf(set, chain) };
}

interface ChannelName {
  readonly bundle: string;
  readonly channel: string;
}

/**
 * Reads what Writ needs from a target that was found.
 * @throws WritError TARGET_MALFORMED when the entry lacks it, has a serial above the bound, or names another bundle
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
  // One bundle's well-signed entry under another's name: the wrong policy on the right host.
  if (release.bundle !== bundle || release.channel !== channel) throw malformed(path, 'bundle or channel');
  const digest = digestFromHex(file.hashes['sha256']);
  if (digest === undefined) throw malformed(path, 'hashes.sha256');
  return { ...found, release, digest };
}

/**
 * Reads a target back from metadata that was kept with it; whether keys of today vouch for that is asked elsewhere.
 * @returns undefined when the metadata cannot be read, or does not list it
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
  // What Writ publishes has consistent snapshots: elsewhere only the kept archive can be had.
  const archivePath = locationOf(path, file.hashes['sha256']);
  // Without the bound on serials: Writ 0.1.0 activated releases above it.
  return parseSignedTarget({ path, file, archivePath, length: file.length, vouchedBy }, wanted);
}

/** @returns where the repository has a delta of this release, for RepositorySource */
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
 * @returns where the repository has a target, for RepositorySource: consistent snapshots put a digest before the
 *   last part of the name (specification 5.7.3)
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
