// One digest for what a configuration says, so that a start knows whether it is the one of before. Pure; no identity
// of a file: comments, order of keys and defaults written out change nothing.
import { createHash } from 'node:crypto';
import type { Digest } from '../names.js';
import type { AgentConfig } from './config.js';

/** @returns the digest of the configuration as Writ understands it */
export function configDigest(config: AgentConfig): Digest {
  const text = JSON.stringify(config, sortedMembers);
  return `sha256:${createHash('sha256').update(text).digest('hex')}` as Digest;
}

function sortedMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
