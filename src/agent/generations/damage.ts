// Is what is active whole, and the errors that say it is not. Reads only.

import { WritError } from '../../core/errors.js';
import { type DamageFound, damageSummary } from '../../core/status/scrub-state.js';
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

const maxShown = 20;
const hint = '`writ verify --repair` mends it.';

export function damageError(damage: readonly DamageFound[]): WritError {
  return new WritError('STATE_DAMAGED', `the policy on disk is damaged: ${damageSummary(damage)}`, {
    facts: { found: damage.length, damage: damage.slice(0, maxShown) },
    hint,
  });
}

/** What cannot be read may be anything: nobody vouches for it until a look over it comes to its end. */
export function unverifiedError(cause: WritError): WritError {
  return new WritError('STATE_DAMAGED', `the policy on disk could not be verified: ${cause.message}`, {
    facts: { ...cause.facts, cause: cause.code },
    hint: 'See to the cause, then `writ verify` looks again.',
    cause,
  });
}

/** @returns the error for a tree of a generation that is not what its manifest says */
export function damagedTree(generation: number, { bundle, problems }: Damage): WritError {
  return new WritError(
    'STATE_DAMAGED',
    `generation ${generation}: the tree of ${bundle} is not what was published`,
    { facts: { generation, bundle, problems: problems.slice(0, maxShown) }, hint },
  );
}
