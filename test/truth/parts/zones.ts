// Zones whose every part says the version: what the DNS servers here are given, whole, broken in the middle, or empty. The
// stamp is the TXT record `stamp`; a second one behind the middle tells a half-read zone from a whole one.
import { dig, together } from './processes.js';

/** The word of the pages, into which the publisher writes the serial: that of a release here is its version. */
export const stampWord = 'v@writ.serial@';

/** A whole zone. SOA serials only grow here, as a publisher would have it. */
export function zone(version: string): string {
  return `$TTL 1
@ SOA ns.test. admin.test. ${version.slice(1)} 3600 600 86400 1
@ NS ns.test.
stamp TXT "${stampWord}"
last TXT "${stampWord}"
`;
}

/** The same with a line between the two stamps that no server can read. */
export function brokenZone(version: string): string {
  return zone(version).replace('last TXT', 'bad A 192.0.2.999\nlast TXT');
}

/** @returns what the zones say, asked over DNS */
export async function askZones(port: number, ...zones: readonly string[]): Promise<string | undefined> {
  const names = zones.flatMap((one) => [`stamp.${one}`, `last.${one}`]);
  return together(await Promise.all(names.map((name) => dig(port, name, 'TXT'))));
}
