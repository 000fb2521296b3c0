// The digest of a configuration, so that a start detects a change since the last start. Pure. Comments, the order of keys
// and explicit defaults do not change the digest. A renamed member or changed value of AgentConfig changes it.
import { createHash } from 'node:crypto';
import type { Digest } from '../names.js';
import type { AgentConfig } from './config.js';

/** @returns the digest of the parsed configuration with its defaults */
export function configDigest(config: AgentConfig): Digest {
  const text = JSON.stringify(config, sortedMembers);
  return `sha256:${createHash('sha256').update(text).digest('hex')}` as Digest;
}

function sortedMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
