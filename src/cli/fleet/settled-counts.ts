// The counts of hosts by bake time, and of hosts that count for none, for commands that require them. Owns their texts and the error for older servers.
import { WritError } from '../../core/errors.js';
import type { WaitFacts, WaitSettled } from '../../core/fleet/answers.js';

/**
 * Requires the counts of hosts by bake time in the answer of a fleet server.
 * @returns `settled` of the answer, unchanged
 * @throws WritError FLEET_TOO_OLD if it is undefined: a server of 0.1.0 does not count hosts by bake time
 */
export function requireSettledCounts({ settled }: Pick<WaitFacts, 'settled'>): WaitSettled {
  if (settled !== undefined) return settled;
  throw new WritError('FLEET_TOO_OLD', 'this fleet server does not count hosts by bake time');
}

/** @returns one text with the count of hosts that share a key with a clone; none without such hosts */
export function clonedTexts({ cloned = 0 }: Pick<WaitFacts, 'cloned'>): string[] {
  return cloned > 0 ? [`${cloned} with a key that two machines share: enrol one of them again`] : [];
}

/** @returns texts for baking, failed, unobserved and unknown hosts, in this order; none for a count of 0 */
export function describeSettledCounts({ baking, failed, unobserved, unknown }: WaitSettled): string[] {
  return [
    ...(baking > 0 ? [`${baking} in their bake time`] : []),
    ...(failed > 0 ? [`${failed} failed and could not go back`] : []),
    ...(unobserved > 0 ? [`${unobserved} settled without an agent that observed it`] : []),
    ...(unknown > 0 ? [`${unknown} with a version that has no bake time`] : []),
  ];
}
