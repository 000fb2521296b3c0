// Converts parts of the configuration file to numbers with units: bounds of archives and metadata, timeouts of transport, the
// maximum age of releases, change checks, and the proxy. The caller has validated the file with schema and rules.
import { given, withoutUndefined } from '../given.js';
import { defaultArchiveLimits, defaultMetadataLimits, defaultTransportLimits } from '../limits.js';
import { durationMs, parsePercent, parsePercentRange, sizeBytes } from '../names.js';
import type { ProxySetting } from '../proxy-rules.js';
import type { AgentConfig } from './config.js';
import type { ConfigFile } from './config-schema.js';

type CheckFile = NonNullable<ConfigFile['bundles'][number]['checks']>[number];
type ChangeFile = NonNullable<CheckFile['change']>;

/** @returns the limits in bytes, milliseconds and counts, with defaults for absent keys */
export function buildLimits(
  limits: NonNullable<ConfigFile['limits']> = {},
): Pick<AgentConfig, 'limits' | 'metadataLimits' | 'transport'> {
  const { metadata = {}, timeouts = {} } = limits;
  return {
    limits: {
      ...defaultArchiveLimits,
      ...given({
        maxArchiveBytes: bytes(limits.archive),
        maxFileBytes: bytes(limits.file),
        maxTreeBytes: bytes(limits.tree),
        maxEntries: limits.entries,
        maxDepth: limits.depth,
        maxRatio: limits.ratio,
      }),
    },
    metadataLimits: {
      ...defaultMetadataLimits,
      ...given({
        maxRootBytes: bytes(metadata.root),
        maxTimestampBytes: bytes(metadata.timestamp),
        maxSnapshotBytes: bytes(metadata.snapshot),
        maxTargetsBytes: bytes(metadata.targets),
        maxRootRotations: metadata.rotations,
      }),
    },
    transport: {
      ...defaultTransportLimits,
      ...given({
        connectTimeoutMs: milliseconds(timeouts.connect),
        idleTimeoutMs: milliseconds(timeouts.idle),
        metadataTimeoutMs: milliseconds(timeouts.metadata),
        refreshTimeoutMs: milliseconds(timeouts.refresh),
        archiveTimeoutMs: milliseconds(timeouts.archive),
      }),
    },
  };
}

function bytes(text: string | undefined): number | undefined {
  return text === undefined ? undefined : sizeBytes(text);
}

/** @returns undefined for an absent key */
export function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationMs(text);
}

/** @returns the bounds of a change check, which compares a candidate with the active release */
export function buildChange({ removed, bytes, files }: ChangeFile) {
  const maxRemovedPercent = removed === undefined ? undefined : parsePercent(removed);
  const bytesPercent = bytes === undefined ? undefined : parsePercentRange(bytes);
  return given({ maxRemovedPercent, bytesPercent, files });
}

/** @returns undefined for an absent key: then the environment decides */
export function buildProxy(proxy: ConfigFile['proxy']): ProxySetting | undefined {
  if (typeof proxy !== 'string') return proxy && withoutUndefined(proxy);
  return proxy === 'none' ? 'none' : { url: proxy };
}

/** How long a release may be offered before this host must have it. @param staleAfterMs the default, from the metadata */
export function buildReleaseAge(
  { staleAfter, maxStale }: NonNullable<ConfigFile['release']> = {},
  staleAfterMs: number,
): AgentConfig['freshness']['release'] {
  return {
    staleAfterMs: milliseconds(staleAfter) ?? staleAfterMs,
    ...given({ maxStaleMs: milliseconds(maxStale) }),
  };
}
