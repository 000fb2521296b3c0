// Summarizes snapshot and timestamp for the repository log, because a machine re-signs them all the time and each version
// would be an entry without meaning. Determines also the published versions and the digests that snapshots list. Reads
// only.
import { join } from 'node:path';
import { defaultMetadataLimits as limits, metadataBytesByRole } from '../../core/limits.js';
import { isVouchedByRoot, rootAuthority } from '../../core/tuf/metadata-checks.js';
import { listedRole, type MetaFile, type OnlineRole, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { versionIn } from '../repository/delegated-files.js';
import { metadataName, readRepositoryFile, versionsOnDisk } from '../repository/repository-layout.js';
import { readVersionRestarts, type VersionRestarts } from '../repository/version-restarts.js';
import {
  describeVersion,
  type LogReading,
  type LogSigner,
  type LogVersion,
  type NamedFiles,
  recordProblem,
  requireNamed,
} from './log-reading.js';

/** A summary of the retained versions of an online role. */
export interface OnlineSummary {
  readonly role: OnlineRole;
  readonly firstVersion: number;
  readonly lastVersion: number;
  /** The number of retained versions that verify. */
  readonly verified: number;
  readonly firstSignedAtMs?: number;
  readonly lastSignedAtMs?: number;
  readonly signers: readonly LogSigner[];
}

/** The published versions, by role. */
export type Live = ReadonlyMap<string, number>;

/**
 * @returns the published version of each role; empty where snapshot or timestamp do not verify (`writ repo check` reports
 *   why)
 */
export function liveVersions(
  timestamps: readonly LogVersion<'timestamp'>[],
  snapshots: readonly LogVersion<'snapshot'>[],
): Live {
  const version = timestamps.at(-1)?.file.signed.meta['snapshot.json'].version;
  const live = snapshots.find((one) => one.version === version)?.file.signed.meta ?? {};
  return new Map(Object.entries(live).map(([name, meta]) => [listedRole(name), meta.version]));
}

/**
 * @param snapshots oldest first
 * @returns true for a version that no snapshot names, if it is above the published one or lies between the versions that two
 *   consecutive snapshots name
 */
export function isUnseenVersion(
  { live, snapshots }: { readonly live: Live; readonly snapshots: readonly LogVersion<'snapshot'>[] },
  role: string,
  version: number,
): boolean {
  // A version before a restart of the versions may be above the published one (adr/0073).
  if (snapshots.some(({ file }) => versionIn(file.signed.meta, role) === version)) return false;
  if (version > (live.get(role) ?? 0)) return true;
  return snapshots.some((one, index) => {
    const before = snapshots[index - 1];
    const isNext = one.version === 1 || before?.version === one.version - 1;
    const from = versionIn(before?.file.signed.meta ?? {}, role);
    return isNext && from < version && version < versionIn(one.file.signed.meta, role);
  });
}

/** @returns the restarts of versions that the published snapshot records; empty where it does not verify */
export function restartsIn(
  timestamps: readonly LogVersion<'timestamp'>[],
  snapshots: readonly LogVersion<'snapshot'>[],
): VersionRestarts {
  const version = timestamps.at(-1)?.file.signed.meta['snapshot.json'].version;
  return readVersionRestarts(snapshots.find((one) => one.version === version)?.file.signed ?? {});
}

/**
 * @returns the listed entry of each file, by file name. Where two versions list the same file, the newer version counts,
 *   because hosts see that one
 */
export function namedBy(versions: readonly LogVersion<OnlineRole>[]): NamedFiles {
  const metas = versions.flatMap(({ file }) => Object.entries<MetaFile>(file.signed.meta));
  return new Map(metas.map(([name, meta]) => [metadataName(listedRole(name), meta.version), meta]));
}

/** The number of newest snapshots that are read for the summary. */
const maxOnlineVersions = 200;

/**
 * @param read the verified versions of the role, the oldest first
 * @returns one summary, or none where no version was read
 */
export function onlineSummary(role: OnlineRole, read: readonly LogVersion<OnlineRole>[]): OnlineSummary[] {
  const [first, last] = [read[0], read.at(-1)];
  if (first === undefined || last === undefined) return [];
  const signers = new Map(read.flatMap((one) => one.signers).map((one) => [one.keyId, one]));
  return [
    {
      role,
      firstVersion: first.version,
      lastVersion: last.version,
      verified: read.length,
      ...(first.signedAtMs === undefined ? {} : { firstSignedAtMs: first.signedAtMs }),
      ...(last.signedAtMs === undefined ? {} : { lastSignedAtMs: last.signedAtMs }),
      signers: [...signers.values()],
    },
  ];
}

interface Vouching {
  readonly roots: readonly LogVersion<'root'>[];
  readonly named: NamedFiles;
}

/** @returns the versions that a root of the chain verifies, oldest first; a problem is recorded for every other version */
export function onlineVersions<Role extends OnlineRole>(
  reading: LogReading,
  role: Role,
  { roots, named }: Vouching,
): LogVersion<Role>[] {
  const { layout, problems } = reading;
  const names =
    role === 'timestamp'
      ? ['timestamp.json']
      : versionsOnDisk(layout, role)
          .slice(-maxOnlineVersions)
          .map((version) => metadataName(role, version));
  return names.flatMap((name) => {
    try {
      const bytes = readRepositoryFile(join(layout.metadata, name), metadataBytesByRole(limits)[role]);
      if (bytes === undefined) return [];
      const file = parseEnvelope(bytes, role);
      const root = roots.findLast((one) => isVouchedByRoot(file, one.file));
      if (root !== undefined) {
        requireNamed(named, name, file);
        return [describeVersion(file, rootAuthority(root.file, role), root.file.signed)];
      }
      const message = `${role}: no root of the repository lists the keys that signed it`;
      problems.push({ where: `metadata/${name}`, code: 'SIGNATURE_THRESHOLD', message });
    } catch (error) {
      recordProblem(reading, `metadata/${name}`, error);
    }
    return [];
  });
}
