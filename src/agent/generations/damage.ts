// Is a candidate anything else than what is active, and is what is active whole? Reads only.
import type { Host } from '../state/host.js';
import type { ActiveBundle, ActivePolicy } from './generation-contents.js';
import { rightsOf, type TreeProblem, verifyTree } from './verify-tree.js';

export interface Damage {
  readonly bundle: string;
  readonly problems: readonly TreeProblem[];
}

/**
 * Checks active trees against their manifests.
 * @param contents `digests` reads every byte, `sizes` is the quick look
 * @returns the damaged ones by bundle
 */
export async function findDamage(
  host: Host,
  active: ActivePolicy | undefined,
  contents: 'digests' | 'sizes' = 'digests',
): Promise<Damage[]> {
  const damaged: Damage[] = [];
  for (const [bundle, one] of active?.bundles ?? []) {
    const problems = await verifyActiveTree(host, one, contents);
    if (problems.length > 0) damaged.push({ bundle, problems });
  }
  return damaged;
}

function verifyActiveTree(
  host: Host,
  { entry, manifest }: ActiveBundle,
  contents: 'digests' | 'sizes',
): Promise<TreeProblem[]> {
  return verifyTree(entry.treePath, manifest, { ...rightsOf(host, entry.bundle), contents });
}
