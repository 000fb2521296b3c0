// Compares with golden files, which UPDATE_GOLDEN=1 rewrites for a review of their diff.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../sources/source-files.js';

/**
 * @param path below the project, as `test/golden/dependencies.txt`
 * @throws AssertionError if the content differs; ENOENT if the file is missing
 */
export function matchesFile(path: string, actual: string): void {
  const whole = join(projectRoot, path);
  if (process.env['UPDATE_GOLDEN'] === '1') {
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, actual);
  }
  assert.equal(actual, readFileSync(whole, 'utf8'), `${path} differs: UPDATE_GOLDEN=1 writes it anew`);
}
