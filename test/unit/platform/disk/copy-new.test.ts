// Copies of open files, and further links to a file: which files result, and which existing files refuse them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const bufferBytes = 64;

interface Opened {
  readonly descriptor: number;
  readonly sizeBytes: number;
  readonly buffer: Buffer;
}

function opened(path: string, content: string | Buffer): Opened {
  fs.writeFileSync(path, content, { mode: 0o600 });
  return {
    descriptor: fs.openSync(path, 'r'),
    sizeBytes: content.length,
    buffer: Buffer.alloc(bufferBytes, 'x'),
  };
}

describe('copyNew', () => {
  for (const sizeBytes of [0, 5, bufferBytes, bufferBytes + 1, 5_000_000]) {
    it(`creates a new inode with the given mode, open for reading: ${sizeBytes} bytes`, async () => {
      using dir = tempDir();
      const content = Buffer.alloc(sizeBytes, 'ab');
      const from = opened(dir.join('a'), content);
      fs.chmodSync(dir.join('a'), 0o4755);
      const copy = await createDurableFs().copyNew('test', from, dir.join('b'), { mode: 0o640 });
      const stats = fs.fstatSync(copy);
      assert.deepEqual([stats.mode & 0o7777, stats.size, stats.nlink], [0o640, sizeBytes, 1]);
      assert.notEqual(stats.ino, fs.statSync(dir.join('a')).ino);
      assert.ok(fs.readFileSync(dir.join('b')).equals(content));
      for (const descriptor of [copy, from.descriptor]) fs.closeSync(descriptor);
    });
  }

  it('copies the opened file when its path names another file by now', async () => {
    using dir = tempDir();
    const from = opened(dir.join('a'), 'looked at');
    fs.renameSync(dir.join('a'), dir.join('c'));
    fs.writeFileSync(dir.join('a'), 'another');
    const copy = await createDurableFs().copyNew('test', from, dir.join('b'), { mode: 0o600 });
    assert.equal(fs.readFileSync(dir.join('b'), 'utf8'), 'looked at');
    for (const descriptor of [copy, from.descriptor]) fs.closeSync(descriptor);
  });

  for (const sizeBytes of [5, bufferBytes + 1, 5_000_000]) {
    it(`fails when the path exists, and does not write through it: ${sizeBytes} bytes`, async () => {
      using dir = tempDir();
      const from = opened(dir.join('a'), Buffer.alloc(sizeBytes));
      fs.writeFileSync(dir.join('victim'), 'victim');
      fs.symlinkSync(dir.join('victim'), dir.join('b'));
      const error = await rejectsCode(
        'DISK_FAILED',
        createDurableFs().copyNew('test', from, dir.join('b'), { mode: 0o600 }),
      );
      assert.equal(error.facts['errno'], 'EEXIST');
      assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'victim');
      fs.closeSync(from.descriptor);
    });
  }

  for (const sizeBytes of [5, bufferBytes + 1]) {
    it(`copies the rest of a file that became shorter: ${sizeBytes} bytes`, async () => {
      using dir = tempDir();
      const from = opened(dir.join('a'), Buffer.alloc(sizeBytes, 'ab'));
      fs.truncateSync(dir.join('a'), 3);
      const copy = await createDurableFs().copyNew('test', from, dir.join('b'), { mode: 0o600 });
      assert.equal(fs.readFileSync(dir.join('b'), 'utf8'), 'aba');
      for (const descriptor of [copy, from.descriptor]) fs.closeSync(descriptor);
    });
  }

  it('closes every file when the copy fails', async () => {
    using dir = tempDir();
    const from = { ...opened(dir.join('a'), 'a'), descriptor: fs.openSync(dir.path, 'r') };
    const before = fs.readdirSync('/proc/self/fd').length;
    await rejectsCode('DISK_FAILED', createDurableFs().copyNew('test', from, dir.join('b'), { mode: 0o600 }));
    assert.equal(fs.readdirSync('/proc/self/fd').length, before);
    fs.closeSync(from.descriptor);
  });

  it('calls the observer before and after the operation', async () => {
    using dir = tempDir();
    const seen: string[] = [];
    const durable = createDurableFs({
      before: ({ op, path }) => seen.push(`before ${op} ${path === dir.join('b')}`),
      after: ({ op }) => seen.push(`after ${op}`),
    });
    const from = opened(dir.join('a'), 'a');
    fs.closeSync(await durable.copyNew('test', from, dir.join('b'), { mode: 0o600 }));
    fs.closeSync(from.descriptor);
    assert.deepEqual(seen, ['before test true', 'after test']);
  });
});

describe('linkNew', () => {
  it('links a file, and fails when the path exists', () => {
    using dir = tempDir();
    const durable = createDurableFs();
    fs.writeFileSync(dir.join('a'), 'a');
    durable.linkNew('test', dir.join('a'), dir.join('b'));
    assert.equal(fs.statSync(dir.join('a')).ino, fs.statSync(dir.join('b')).ino);
    const error = throwsCode('DISK_FAILED', () => durable.linkNew('test', dir.join('a'), dir.join('b')));
    assert.equal(error.facts['errno'], 'EEXIST');
  });
});
