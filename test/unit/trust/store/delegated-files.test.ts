import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { makeSpaceForDelegated, maxKeptBytes } from '../../../../src/trust/store/delegated-files.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

/** Sparse files, which use no disk space; the first is the oldest. */
function fill(dir: TempDir, sizes: Readonly<Record<string, number>>): void {
  for (const [at, [name, bytes]] of Object.entries(sizes).entries()) {
    writeFileSync(dir.join(name), '');
    truncateSync(dir.join(name), bytes);
    utimesSync(dir.join(name), 1000 + at, 1000 + at);
  }
}

describe('the space for a delegated role', () => {
  it('is made by removing the oldest files, and no more than needed', () => {
    using dir = tempDir();
    fill(dir, { 'old.json': maxKeptBytes / 4, 'mid.json': maxKeptBytes / 4, 'new.json': maxKeptBytes / 2 });
    makeSpaceForDelegated(createDurableFs(), dir.path, 'more.json', 0);
    assert.equal(readdirSync(dir.path).length, 3);
    makeSpaceForDelegated(createDurableFs(), dir.path, 'more.json', 1);
    assert.deepEqual(readdirSync(dir.path).sort(), ['mid.json', 'new.json']);
  });

  it('is not made by removing a top-level role, the new file itself, or a file that is no role', () => {
    using dir = tempDir();
    const names = ['root.json', 'targets.json', 'snapshot.json', 'timestamp.json', 'own.json', 'clock-floor'];
    fill(dir, Object.fromEntries(names.map((name) => [name, maxKeptBytes])));
    mkdirSync(dir.join('roots'));
    mkdirSync(dir.join('directory.json'));
    makeSpaceForDelegated(createDurableFs(), dir.path, 'own.json', maxKeptBytes);
    assert.deepEqual(readdirSync(dir.path).sort(), [...names, 'directory.json', 'roots'].sort());
  });

  it('exists before the directory is created', () => {
    using dir = tempDir();
    makeSpaceForDelegated(createDurableFs(), dir.join('none'), 'own.json', 1);
    assert.deepEqual(readdirSync(dir.path), []);
  });
});
