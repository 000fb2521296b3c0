// The `limits` of the configuration file as numbers with units: bounds on archives and metadata, and deadlines of
// the way to a server. Only called with what schema and rules have accepted.

import {
  type ArchiveLimits,
  defaultArchiveLimits,
  defaultMetadataLimits,
  defaultTransportLimits,
  type MetadataLimits,
  type TransportLimits,
} from '../limits.js';
import { durationMs, sizeBytes } from '../names.js';
import type { AgentConfig } from './config.js';

export type LimitsFile = Readonly<Partial<Record<'archive' | 'file' | 'tree', string>>> &
  Readonly<Partial<Record<'entries' | 'depth' | 'ratio', number>>> & {
    readonly metadata?: Readonly<Partial<Record<'root' | 'timestamp' | 'snapshot' | 'targets', string>>> & {
      readonly rotations?: number;
    };
    readonly timeouts?: Readonly<
      Partial<Record<'connect' | 'idle' | 'metadata' | 'refresh' | 'archive', string>>
    >;
  };

/** @returns the limits in bytes, milliseconds and counts, with the default of each that the file leaves out */
export function buildLimits(
  limits: LimitsFile = {},
): Pick<AgentConfig, 'limits' | 'metadataLimits' | 'transport'> {
  return {
    limits: buildArchiveLimits(limits),
    metadataLimits: buildMetadataLimits(limits.metadata ?? {}),
    transport: buildTransport(limits.timeouts ?? {}),
  };
}

function buildArchiveLimits(limits: LimitsFile): ArchiveLimits {
  const { archive, entries, file, tree, depth, ratio } = limits;
  const defaults = defaultArchiveLimits;
  return {
    ...defaults,
    maxArchiveBytes: sizeOr(archive, defaults.maxArchiveBytes),
    maxFileBytes: sizeOr(file, defaults.maxFileBytes),
    maxTreeBytes: sizeOr(tree, defaults.maxTreeBytes),
    maxEntries: entries ?? defaults.maxEntries,
    maxDepth: depth ?? defaults.maxDepth,
    maxRatio: ratio ?? defaults.maxRatio,
  };
}

function buildMetadataLimits(limits: NonNullable<LimitsFile['metadata']>): MetadataLimits {
  const { root, timestamp, snapshot, targets, rotations } = limits;
  const defaults = defaultMetadataLimits;
  return {
    ...defaults,
    maxRootBytes: sizeOr(root, defaults.maxRootBytes),
    maxTimestampBytes: sizeOr(timestamp, defaults.maxTimestampBytes),
    maxSnapshotBytes: sizeOr(snapshot, defaults.maxSnapshotBytes),
    maxTargetsBytes: sizeOr(targets, defaults.maxTargetsBytes),
    maxRootRotations: rotations ?? defaults.maxRootRotations,
  };
}

function buildTransport(timeouts: NonNullable<LimitsFile['timeouts']>): TransportLimits {
  const { connect, idle, metadata, refresh, archive } = timeouts;
  const defaults = defaultTransportLimits;
  return {
    ...defaults,
    connectTimeoutMs: durationOr(connect, defaults.connectTimeoutMs),
    idleTimeoutMs: durationOr(idle, defaults.idleTimeoutMs),
    metadataTimeoutMs: durationOr(metadata, defaults.metadataTimeoutMs),
    refreshTimeoutMs: durationOr(refresh, defaults.refreshTimeoutMs),
    archiveTimeoutMs: durationOr(archive, defaults.archiveTimeoutMs),
  };
}

function durationOr(text: string | undefined, defaultMs: number): number {
  return text === undefined ? defaultMs : durationMs(text);
}

function sizeOr(text: string | undefined, defaultBytes: number): number {
  return text === undefined ? defaultBytes : sizeBytes(text);
}
