// A private directory for one test, removed afterwards whatever the test did to its modes.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempDir {
  readonly path: string;
  /** Joins names below the directory. */
  join(...names: string[]): string;
  [Symbol.dispose](): void;
}

/** @example using dir = tempDir(); */
export function tempDir(): TempDir {
  const path = mkdtempSync(join(tmpdir(), 'writ-test-'));
  return {
    path,
    join: (...names) => join(path, ...names),
    [Symbol.dispose]: () => {
      makeWritable(path);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

function makeWritable(path: string): void {
  chmodSync(path, 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(path, entry.name));
  }
}
