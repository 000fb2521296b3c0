// Shared parts of the repository log: the bounds of one reading, the problems that it found, and the description of a
// verified version.
import { isWritError } from '../../core/errors.js';
import { parseIsoTime } from '../../core/release/release.js';
import { type Authority, requireDigests } from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import type { MetaFile, ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { nameOfKey } from '../keys/signer-names.js';
import type { RepositoryLayout } from '../repository/repository-layout.js';

export interface LogSigner {
  readonly keyId: string;
  /** The name that the root or the delegation gives to the key; without a name, the first characters of the key id. */
  readonly name: string;
}

/** A verified version of a role. */
export interface LogVersion<Role extends TopLevelRole> {
  readonly file: ParsedFile<Role>;
  readonly version: number;
  /** The signing time that the file records; absent where the file records none. */
  readonly signedAtMs?: number;
  /** Keys of the role with a valid signature. */
  readonly signers: readonly LogSigner[];
}

/** The entries of a verified snapshot or timestamp, by file name in metadata/. */
export type NamedFiles = ReadonlyMap<string, MetaFile>;

/**
 * Attack: the holder of a key signs two files with one version. Only the file that a snapshot or timestamp lists was seen
 * by hosts.
 * @throws WritError METADATA_MIX when the bytes differ from the listed ones. Without an entry, only the signatures count
 */
export function requireNamed(named: NamedFiles, name: string, file: ParsedFile<TopLevelRole>): void {
  const meta = named.get(name);
  if (meta !== undefined) requireDigests(file.name, meta, file.bytes);
}

export interface LogProblem {
  readonly where: string;
  readonly code: string;
  readonly message: string;
}

/** Bounds for all roles together. */
export interface LogBounds {
  /** The number of newest versions of each role that are read. */
  readonly maxVersions: number;
  readonly maxBytes: number;
  readonly maxMs: number;
}

export const defaultLogBounds: LogBounds = { maxVersions: 1000, maxBytes: 64_000_000, maxMs: 30_000 };

/** The remaining bounds of one log, and the problems that it has found. */
export interface LogReading {
  readonly layout: RepositoryLayout;
  readonly maxVersions: number;
  readonly problems: LogProblem[];
  /** Counts bytes that are about to be read. @returns false when the bounds do not allow to read them */
  take(bytes: number): boolean;
}

/**
 * Begins the time bound of the reading now.
 * @returns a reading without problems
 */
export function openLogReading(layout: RepositoryLayout, clock: Clock, bounds: LogBounds): LogReading {
  const startedMs = clock.monotonicMs();
  let leftBytes = bounds.maxBytes;
  return {
    layout,
    maxVersions: bounds.maxVersions,
    problems: [],
    take: (bytes) => {
      leftBytes -= bytes;
      return leftBytes >= 0 && clock.monotonicMs() - startedMs <= bounds.maxMs;
    },
  };
}

/** @returns a version with its signing time and the keys that made its valid signatures */
export function describeVersion<Role extends TopLevelRole>(
  file: ParsedFile<Role>,
  { keys, role }: Authority,
  named: object,
): LogVersion<Role> {
  const { signatures, signedBytes, signed } = file;
  const isSigner = (keyid: string): boolean => {
    const alone = { keyids: [keyid], threshold: 1 };
    return countValidSigners({ keys, role: alone, signatures, signedBytes }) === 1;
  };
  const signers = role.keyids.filter(isSigner).map((keyId) => ({ keyId, name: nameOfKey(named, keyId) }));
  const signedAtMs = signedAtOf(signed);
  return { file, version: signed.version, signers, ...(signedAtMs === undefined ? {} : { signedAtMs }) };
}

function signedAtOf(signed: object): number | undefined {
  const { writ } = signed as { readonly writ?: { readonly signedAt?: unknown } | null };
  return typeof writ === 'object' && writ !== null ? parseIsoTime(writ.signedAt) : undefined;
}

/**
 * Records a file that does not verify as a problem.
 * @param where the path of the file in the repository
 * @throws the error itself when it is not a WritError, or is a DISK_* error of this machine
 */
export function recordProblem({ problems }: LogReading, where: string, error: unknown): void {
  if (!isWritError(error) || error.code.startsWith('DISK_')) throw error;
  problems.push({ where, code: error.code, message: error.message });
}
