// Zones with the version in every part, for the DNS servers: valid, broken in the middle, or empty. The stamp is the TXT
// record `stamp`; a second one after the middle distinguishes a partly loaded zone from a complete one.
import { dig, joinVersions } from './processes.js';

/** The placeholder of the pages that the publisher replaces by the serial, which equals the version here. */
export const stampPlaceholder = 'v@writ.serial@';

/** @returns a valid zone. SOA serials only grow, as a publisher requires */
export function zone(version: string): string {
  return `$TTL 1
@ SOA ns.test. admin.test. ${version.slice(1)} 3600 600 86400 1
@ NS ns.test.
stamp TXT "${stampPlaceholder}"
last TXT "${stampPlaceholder}"
`;
}

/** @returns a zone with an invalid line between its two stamps */
export function brokenZone(version: string): string {
  return zone(version).replace('last TXT', 'bad A 192.0.2.999\nlast TXT');
}

/** @returns the versions of the zones, queried over DNS */
export async function askZones(port: number, ...zones: readonly string[]): Promise<string | undefined> {
  const names = zones.flatMap((one) => [`stamp.${one}`, `last.${one}`]);
  return joinVersions(await Promise.all(names.map((name) => dig(port, name, 'TXT'))));
}
