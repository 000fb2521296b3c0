// Is a candidate anything else than what is active, and is what is active whole? Reads only.

import type { ActiveBundle, ActivePolicy } from './active-bundles.js';
import type { Host } from './host.js';
import type { CandidateBundle } from './stage-candidates.js';
import { type TreeProblem, verifyTree } from './verify-tree.js';

/** Same bundles, same releases: activating it would change nothing that a worker can see. */
export function sameContent(
  candidate: readonly CandidateBundle[],
  active: ActivePolicy | undefined,
): boolean {
  if (active === undefined) return candidate.length === 0;
  if (candidate.length !== active.bundles.size) return false;
  return candidate.every(({ selection, staged }) => {
    const old = active.bundles.get(selection.bundle.name)?.record.release;
    if (old === undefined) return false;
    const { serial, manifest } = staged?.release ?? old;
    return serial === old.serial && manifest.digest === old.manifest.digest;
  });
}

export interface Damage {
  readonly bundle: string;
  readonly problems: readonly TreeProblem[];
}

/** Checks the active trees in full against their manifests. @returns the damaged ones by bundle */
export async function findDamage(host: Host, active: ActivePolicy | undefined): Promise<Damage[]> {
  const damaged: Damage[] = [];
  for (const [bundle, one] of active?.bundles ?? []) {
    const problems = await verifyActiveTree(host, bundle, one);
    if (problems.length > 0) damaged.push({ bundle, problems });
  }
  return damaged;
}

/** Of a bundle that is not configured any more. */
const defaultMode = 0o644;

function verifyActiveTree(host: Host, bundle: string, active: ActiveBundle): Promise<TreeProblem[]> {
  const config = host.config.bundles.find((one) => one.name === bundle);
  const mode = config?.mode ?? defaultMode;
  return verifyTree(active.entry.treePath, active.manifest, { mode, contents: 'digests' });
}
