// Merges what hosts report of the roles of their repository: the median version of each role. So a host with a false report can
// neither hide the expiry of a key nor report an expiry that is not there. Pure.
import type { FleetReport } from '../../core/fleet/report.js';

type TrustedRole = FleetReport['trust'][number];

/**
 * @param reported one list for each host
 * @returns the median version of each role (of two, the newer), sorted by expiry
 */
export function agreedRoles(reported: readonly FleetReport['trust'][]): TrustedRole[] {
  const versions = new Map<string, TrustedRole[]>();
  for (const trust of reported) {
    // Count one version of a role for each host, even if its report repeats the role.
    for (const one of new Map(trust.map((role) => [role.role, role])).values())
      versions.set(one.role, [...(versions.get(one.role) ?? []), one]);
  }
  const agreed = [...versions.values()].flatMap((all) => {
    const sorted = all.toSorted((a, b) => a.version - b.version || a.expiresAtMs - b.expiresAtMs);
    return sorted.slice(Math.floor(all.length / 2)).slice(0, 1);
  });
  return agreed.toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
}
