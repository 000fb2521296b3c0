// Every bound on input in one place, with its default. A limit is a number with its unit in its name.

/** Bounds on one archive while it is fetched and staged. */
export type ArchiveLimits = Readonly<typeof defaultArchiveLimits>;

export const defaultArchiveLimits = {
  maxArchiveBytes: 1_000_000_000,
  maxEntries: 100_000,
  maxFileBytes: 2_000_000_000,
  maxTreeBytes: 4_000_000_000,
  maxDepth: 32,
  /** Unpacked bytes a packed byte may become. */
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

/** Greatest size in bytes of a file by its role; files of delegated roles are targets. */
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

/** Deadlines on the way to one mirror, in milliseconds. */
export type TransportLimits = Readonly<typeof defaultTransportLimits>;

export const defaultTransportLimits = {
  connectTimeoutMs: 10_000,
  /** Between two pieces of an answer. */
  idleTimeoutMs: 15_000,
  /** One metadata file. */
  metadataTimeoutMs: 60_000,
  /** One transfer of an archive. */
  archiveTimeoutMs: 3_600_000,
  /** One refresh, with all its requests. */
  refreshTimeoutMs: 300_000,
};

/**
 * So long a worker that says "not now" is asked again at a steady pace after a move: the default time in which a host
 * watches whether a release stays good.
 */
export const steadyNotNowMs = 600_000;

/** A probe is asked for so long: twice and more what a daemon with large policy takes to load it. */
export const defaultProbeDeadlineMs = 60_000;

/** From the end of one attempt of a probe to the next one. */
export const defaultProbeGapMs = 1000;

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
