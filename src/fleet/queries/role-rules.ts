// What hosts say of the roles of their repository, as one word for each role: that in the middle, so that no host that lies hides the
// end of a key from everybody, nor calls out one that is not there. Pure.
import type { FleetReport } from '../../core/fleet/report.js';

type TrustedRole = FleetReport['trust'][number];

/**
 * @param said a list of each host
 * @returns of each role the middle version, the newer one of two: those that end first come first
 */
export function agreedRoles(said: readonly FleetReport['trust'][]): TrustedRole[] {
  const words = new Map<string, TrustedRole[]>();
  for (const trust of said) {
    // Each host has one word for a role, however often it says it.
    for (const one of new Map(trust.map((role) => [role.role, role])).values())
      words.set(one.role, [...(words.get(one.role) ?? []), one]);
  }
  const agreed = [...words.values()].flatMap((all) => {
    const sorted = all.toSorted((a, b) => a.version - b.version || a.expiresAtMs - b.expiresAtMs);
    return sorted.slice(Math.floor(all.length / 2)).slice(0, 1);
  });
  return agreed.toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
}
