// The bounds on input, with their defaults. The name of a limit contains its unit.

/** Bounds on one archive while it is fetched and staged. */
export type ArchiveLimits = Readonly<typeof defaultArchiveLimits>;

export const defaultArchiveLimits = {
  maxArchiveBytes: 1_000_000_000,
  maxEntries: 100_000,
  maxFileBytes: 2_000_000_000,
  maxTreeBytes: 4_000_000_000,
  maxDepth: 32,
  /** Unpacked bytes for each packed byte. */
  maxRatio: 200,
  maxPathBytes: 1024,
  maxNameBytes: 255,
  maxManifestBytes: 64_000_000,
};

/** Bounds on metadata files. */
export type MetadataLimits = Readonly<typeof defaultMetadataLimits>;

export const defaultMetadataLimits = {
  maxRootBytes: 512_000,
  maxTimestampBytes: 16_000,
  maxSnapshotBytes: 2_000_000,
  maxTargetsBytes: 5_000_000,
  maxRootRotations: 256,
};

/** @returns the greatest size in bytes of a file for each role; files of delegated roles are targets */
export function metadataBytesByRole(
  limits: MetadataLimits,
): Readonly<Record<'root' | 'timestamp' | 'snapshot' | 'targets', number>> {
  return {
    root: limits.maxRootBytes,
    timestamp: limits.maxTimestampBytes,
    snapshot: limits.maxSnapshotBytes,
    targets: limits.maxTargetsBytes,
  };
}

/** Timeouts of the requests to one mirror, in milliseconds. */
export type TransportLimits = Readonly<typeof defaultTransportLimits>;

export const defaultTransportLimits = {
  connectTimeoutMs: 10_000,
  /** Between two pieces of a response. */
  idleTimeoutMs: 15_000,
  /** For one metadata file. */
  metadataTimeoutMs: 60_000,
  /** For one transfer of an archive. */
  archiveTimeoutMs: 3_600_000,
  /** For one refresh with all its requests. */
  refreshTimeoutMs: 300_000,
};

/**
 * How long a worker that replies "not now" is notified again at a constant interval after a move. The same as the default bake time.
 */
export const steadyNotNowMs = 600_000;

/** How long a probe is repeated: more than twice the time that a daemon with a large policy takes to load it. */
export const defaultProbeDeadlineMs = 60_000;

/** From the end of one attempt of a probe to the next. */
export const defaultProbeGapMs = 1000;

/** Number of redirects that one request follows. */
export const maxRedirects = 5;
/** Number of times that an interrupted transfer of an archive is resumed at one mirror. */
export const maxResumptions = 3;
/**
 * Longest Retry-After that counts, because an attacker on the network can forge one response and must not delay a host for a day.
 */
export const maxRetryAfterMs = 3_600_000;
export const maxSocketLineBytes = 65_536;
export const maxSocketPathBytes = 107;
export const maxHookOutputBytes = 65_536;
/** How far `createdAt` may be ahead of the clock of the host. */
export const maxCreatedAheadMs = 600_000;
