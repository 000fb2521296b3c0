// What the log of a repository reads with: its bounds, what did not verify, and what a verified version is.
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
  /** As the root or the delegation names the key; else the beginning of its id. */
  readonly name: string;
}

/** One version of a role that verifies. */
export interface LogVersion<Role extends TopLevelRole> {
  readonly file: ParsedFile<Role>;
  readonly version: number;
  /** When it says that it was signed; left out where it says nothing of it. */
  readonly signedAtMs?: number;
  /** Keys of the role with a valid signature. */
  readonly signers: readonly LogSigner[];
}

/** What a verified snapshot or timestamp says of a file, by its name in metadata/. */
export type NamedFiles = ReadonlyMap<string, MetaFile>;

/**
 * Whoever has a key can sign a version twice: the one that hosts saw is the one that was named.
 * @throws WritError METADATA_MIX for other bytes; a file that no kept version names is left to its signatures
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

/** Of all roles together. */
export interface LogBounds {
  /** Newest versions of each role that are looked at. */
  readonly maxVersions: number;
  readonly maxBytes: number;
  readonly maxMs: number;
}

export const defaultLogBounds: LogBounds = { maxVersions: 1000, maxBytes: 64_000_000, maxMs: 30_000 };

/** What one log may still read, and what it found that does not verify. */
export interface LogReading {
  readonly layout: RepositoryLayout;
  readonly maxVersions: number;
  readonly problems: LogProblem[];
  /** @returns false when a file of so many bytes is beyond what may be read */
  take(bytes: number): boolean;
}

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

/** @returns a version with its time, and the keys whose signatures hold */
export function describe<Role extends TopLevelRole>(
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

/** Takes up what does not verify. @throws what is no WritError, and DISK_*: this machine's fault */
export function note({ problems }: LogReading, where: string, error: unknown): void {
  if (!isWritError(error) || error.code.startsWith('DISK_')) throw error;
  problems.push({ where, code: error.code, message: error.message });
}
