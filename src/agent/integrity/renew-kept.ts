// Rewrites lost retained files of an intact tree: the manifest from the tree itself, the record from the signed metadata. Needs no free
// space to unpack and changes no tree. Staging handles lost archives.
import { isWritError } from '../../core/errors.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { type ExaminedBundle, examineBundle, isTreeWhole } from '../generations/examine.js';
import { findRepairTarget } from '../generations/recorded-target.js';
import { renewManifest, renewRecord } from '../generations/renew-release.js';
import type { Host } from '../state/host.js';
import type { PolicyPart } from './repair-plan.js';

export interface RenewOptions {
  readonly generation: number;
  /** The attempt's directory in staging. */
  readonly staging: string;
  readonly signal: AbortSignal;
}

/**
 * @returns the parts after the renewal. A file that could not be written stays damage, and the log has the reason
 * @throws WritError INTERRUPTED
 */
export async function renewRetainedFiles(
  host: Host,
  parts: readonly PolicyPart[],
  options: RenewOptions,
): Promise<PolicyPart[]> {
  const renewed: PolicyPart[] = [];
  for (const part of parts)
    renewed.push(isTreeWhole(part.found) ? await renewPart(host, part, options) : part);
  return renewed;
}

async function renewPart(
  host: Host,
  part: PolicyPart,
  { generation, staging, signal }: RenewOptions,
): Promise<PolicyPart> {
  const { bundle, found } = part;
  if (!isLost(found, 'manifest') && !isLost(found, 'record')) return part;
  try {
    const { manifest, release } = found;
    if (manifest !== undefined && isLost(found, 'manifest'))
      renewManifest(host, { bundle: bundle.name, release, manifest, staging });
    if (isLost(found, 'record'))
      renewRecord(host, findRepairTarget(host, { bundle: bundle.name, channel: bundle.channel, release }), {
        staging,
      });
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, bundle: bundle.name }, 'the kept files of a release could not be rewritten');
  }
  const place = { generation, bundle: bundle.name, treeDirectory: found.treeDirectory };
  const again = await examineBundle(host, place, { contents: 'digests', pace: unboundedPace(signal) });
  return { bundle, found: again };
}

function isLost({ kept }: ExaminedBundle, part: 'manifest' | 'record'): boolean {
  return kept.some((one) => one.part === part);
}
