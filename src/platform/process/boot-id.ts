// The id of the current boot. Files in /run belong to one boot.
import { readFileSync } from 'node:fs';

/** @returns an id that is unique to this boot. @throws errors of the system */
export function readBootId(path = '/proc/sys/kernel/random/boot_id'): string {
  return readFileSync(path, 'utf8').trim();
}
