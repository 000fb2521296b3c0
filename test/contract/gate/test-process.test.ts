// The report of a test run in which a case fails and leaves a timer, so that its process does not end.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';

import { tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface FileResult {
  readonly events: readonly {
    readonly kind: string;
    readonly path?: readonly string[];
    readonly error?: string;
  }[];
  readonly trouble?: string;
}

/** Runs test files in one process, as scripts/run-tests.js does. */
async function runFiles(files: readonly string[], timeoutMs = 60_000): Promise<readonly FileResult[]> {
  const url = pathToFileURL(join(projectRoot, 'scripts/test-process.js')).href;
  const { runUnit } = (await import(url)) as {
    readonly runUnit: (unit: object) => Promise<readonly FileResult[]>;
  };
  return runUnit({ files, timeoutMs, isInMemory: false, hasHeapLimit: true });
}

const leaking = `
import { it } from 'node:test';
it('fails, and leaves a timer', () => {
  setInterval(() => undefined, 1000);
  throw new Error('the true cause');
});`;
const passing = `
import { it } from 'node:test';
it('passes', () => undefined);`;

const long = `
import { it } from 'node:test';
it('takes seconds', { skip: 'long' }, () => undefined);
it('is quick', () => undefined);`;

const first = `
import { it } from 'node:test';
it('starts after the second file is loaded', () => {
  if (globalThis.isSecondLoaded !== true) throw new Error('too early');
});`;
const second = `
await new Promise((resolve) => setTimeout(resolve, 100));
globalThis.isSecondLoaded = true;`;

const endless = `
import { it } from 'node:test';
it('never ends', () => new Promise(() => setInterval(() => undefined, 1000)));`;

describe('a process of the tests', () => {
  it('is described in the result if it is late', async () => {
    using dir = tempDir();
    writeTree(dir.path, { 'endless.test.mjs': endless });
    const [result] = await runFiles([dir.join('endless.test.mjs')], 1_000);
    assert.match(result?.trouble ?? '', /did not end within 1 s/);
    assert.match(result?.trouble ?? '', /process \d+, started by \d+: \S*node /);
  });

  it('reports a long case as left out, and not as skipped', async () => {
    using dir = tempDir();
    writeTree(dir.path, { 'long.test.mjs': long });
    const [result] = await runFiles([dir.join('long.test.mjs')]);
    assert.deepEqual(
      result?.events.map(({ kind, path }) => [kind, path]),
      [
        ['long', ['takes seconds']],
        ['pass', ['is quick']],
      ],
    );
  });

  it('starts its cases after all of its files are loaded', async () => {
    using dir = tempDir();
    writeTree(dir.path, { 'first.test.mjs': first, 'second.test.mjs': second });
    const [result] = await runFiles([dir.join('first.test.mjs'), dir.join('second.test.mjs')]);
    assert.deepEqual(
      result?.events.map(({ kind, error }) => [kind, error]),
      [['pass', undefined]],
    );
  });

  for (const others of [[], ['passing.test.mjs']])
    it(`ends with the error of a case that failed and left a timer (beside ${others.length} files)`, async () => {
      using dir = tempDir();
      writeTree(dir.path, { 'leaking.test.mjs': leaking, 'passing.test.mjs': passing });
      const files = ['leaking.test.mjs', ...others].map((name) => dir.join(name));
      const [result, ...rest] = await runFiles(files);
      assert.equal(result?.trouble, undefined);
      const [failed] = result?.events.filter(({ kind }) => kind === 'fail') ?? [];
      assert.deepEqual(failed?.path, ['fails, and leaves a timer']);
      assert.match(failed?.error ?? '', /the true cause/);
      assert.deepEqual(
        rest.map(({ events }) => events.map(({ kind }) => kind)),
        others.map(() => ['pass']),
      );
    });
});
