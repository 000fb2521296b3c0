// Every bound on input in one place, with its default. A limit is a number with its unit in its name.

/** Bounds on one archive while it is fetched and staged. */
export interface ArchiveLimits {
  readonly maxArchiveBytes: number;
  readonly maxEntries: number;
  readonly maxFileBytes: number;
  readonly maxTreeBytes: number;
  readonly maxDepth: number;
  /** Unpacked bytes a packed byte may become. */
  readonly maxRatio: number;
  readonly maxPathBytes: number;
  readonly maxNameBytes: number;
  readonly maxManifestBytes: number;
}

export const defaultArchiveLimits: ArchiveLimits = {
  maxArchiveBytes: 1_000_000_000,
  maxEntries: 100_000,
  maxFileBytes: 2_000_000_000,
  maxTreeBytes: 4_000_000_000,
  maxDepth: 32,
  maxRatio: 200,
  maxPathBytes: 1024,
  maxNameBytes: 255,
  maxManifestBytes: 64_000_000,
};

/** Bounds on metadata files. */
export interface MetadataLimits {
  readonly maxRootBytes: number;
  readonly maxTimestampBytes: number;
  readonly maxSnapshotBytes: number;
  readonly maxTargetsBytes: number;
  readonly maxRootRotations: number;
}

export const defaultMetadataLimits: MetadataLimits = {
  maxRootBytes: 512_000,
  maxTimestampBytes: 16_000,
  maxSnapshotBytes: 2_000_000,
  maxTargetsBytes: 5_000_000,
  maxRootRotations: 256,
};

/** Greatest size in bytes of a file by its role; files of delegated roles are targets. */
export function metadataBytesByRole(
  limits: MetadataLimits,
): Readonly<Record<'root' | 'timestamp' | 'snapshot' | 'targets', number>> {
  const { maxRootBytes, maxTimestampBytes, maxSnapshotBytes, maxTargetsBytes } = limits;
  return {
    root: maxRootBytes,
    timestamp: maxTimestampBytes,
    snapshot: maxSnapshotBytes,
    targets: maxTargetsBytes,
  };
}

/** Deadlines on the way to one mirror, in milliseconds. */
export interface TransportLimits {
  readonly connectTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly idleTimeoutMs: number;
  /** One metadata file. */
  readonly metadataTimeoutMs: number;
  /** One transfer of an archive. */
  readonly archiveTimeoutMs: number;
  /** One refresh, with all its requests. */
  readonly refreshTimeoutMs: number;
}

export const defaultTransportLimits: TransportLimits = {
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 15_000,
  metadataTimeoutMs: 60_000,
  archiveTimeoutMs: 3_600_000,
  refreshTimeoutMs: 300_000,
};

/** How many redirects one request follows. */
export const maxRedirects = 5;
/** How often a cut transfer of an archive goes on from where it stopped, at one mirror. */
export const maxResumptions = 3;
/** A server that asks for more quiet than this gets this: one answer, forged by whoever is on the line, must not buy a day. */
export const maxRetryAfterMs = 3_600_000;
export const maxSocketLineBytes = 65_536;
export const maxSocketPathBytes = 107;
export const maxHookOutputBytes = 65_536;
/** createdAt may be this far ahead of the host's clock. */
export const maxCreatedAheadMs = 600_000;
