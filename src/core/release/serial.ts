// Serials of releases: the numbers that Writ reads, and those that a host accepts and a publisher signs. Pure.
import { WritError } from '../errors.js';

/** The highest serial that a host accepts and a publisher signs. One release per second reaches it after 30,000 years. */
export const maxSerial = 1_000_000_000_000;

/**
 * The highest serial in a file of a host or a repository, because Writ 0.1.0 accepted each safe integer.
 * A file with such a serial stays readable, so that the release can be withdrawn.
 */
export const maxReadSerial: number = Number.MAX_SAFE_INTEGER;

/** @returns true for a serial that a file may contain */
export function isSerial(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= maxReadSerial;
}

/** @returns the serial of a text from a person or a URL; undefined for any other text */
export function parseSerial(text: string): number | undefined {
  const serial = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : undefined;
  return isSerial(serial) ? serial : undefined;
}

/**
 * Requires that a listed release has a serial that hosts accept. With the stolen key of a team an attacker may sign any number.
 * @param path of the target that lists the release
 * @throws WritError TARGET_MALFORMED
 */
export function requireAcceptedSerial({ bundle, serial }: NamedSerial, path: string): void {
  if (serial <= maxSerial) return;
  const text = `${path}: serial ${serial} of ${bundle} is above ${maxSerial}, the highest that hosts accept`;
  throw new WritError('TARGET_MALFORMED', text, {
    facts: { target: path, member: 'serial', bundle, expected: maxSerial, actual: serial },
    hint: `A stolen key may have signed it. The publisher runs \`${withdrawCommand({ bundle, serial })}\`: docs/operations.md.`,
  });
}

/** @returns the command that withdraws a serial, for a hint */
export function withdrawCommand({ bundle, serial }: NamedSerial): string {
  return `writ withdraw --bundle ${bundle} --serial ${serial}`;
}

interface NamedSerial {
  readonly bundle: string;
  readonly serial: number;
}
