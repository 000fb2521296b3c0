// The kernel's name for the time since the machine booted: what is in /run ends with it.
import { readFileSync } from 'node:fs';

/** @returns an id that no other boot has */
export function readBootId(path = '/proc/sys/kernel/random/boot_id'): string {
  return readFileSync(path, 'utf8').trim();
}
