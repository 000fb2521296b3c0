// A private directory for one test, removed afterwards whatever the test did to its modes.
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
 * @param parent tmpdir() by default; `memory()` where flushes would cost too much
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

/** @returns a directory in memory if the machine has one and TMPDIR does not name another place; else tmpdir() */
export function memory(): string {
  return process.env['TMPDIR'] === undefined && existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
}

/**
 * @returns a directory that is not below /dev, for tests of rules that leave out what is there, and on a disk, for tests
 *   of flushes: tmpdir() may be in memory (scripts/test-process.js)
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
