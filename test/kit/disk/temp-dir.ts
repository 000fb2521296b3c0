// A private directory for one test, which is removed afterwards whatever its modes are.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempDir {
  readonly path: string;
  /** Joins names below the directory. */
  join(...names: string[]): string;
  [Symbol.dispose](): void;
}

/**
 * @param parent tmpdir() by default; `memory()` if flushes would take too long
 * @example using dir = tempDir();
 */
export function tempDir(parent: string = tmpdir()): TempDir {
  const path = mkdtempSync(join(parent, 'writ-test-'));
  return {
    path,
    join: (...names) => join(path, ...names),
    [Symbol.dispose]: () => {
      makeWritable(path);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** @returns a directory in memory if the machine has one and TMPDIR names no other place; otherwise tmpdir() */
export function memory(): string {
  return process.env['TMPDIR'] === undefined && existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
}

/**
 * @returns a directory on a disk and not below /dev, for tests of flushes and of rules that leave out /dev. tmpdir() may be
 *   in memory (scripts/test-process.js)
 */
export function onDisk(): string {
  return '/var/tmp';
}

function makeWritable(path: string): void {
  chmodSync(path, 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(path, entry.name));
  }
}
