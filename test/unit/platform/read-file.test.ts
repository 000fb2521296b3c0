import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { listEntries, lstatIfPresent, readFileEnd, readSmallFile } from '../../../src/platform/read-file.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const readerUrl = new URL('../../../src/platform/read-file.js', import.meta.url);

describe('a small file', () => {
  it('is read whole, up to its bound', () => {
    using dir = tempDir();
    for (const length of [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 131_073, 200_000]) {
      const content = randomBytes(length);
      fs.writeFileSync(dir.join('file'), content);
      const verdict = readSmallFile(dir.join('file'), { maxBytes: length });
      assert.ok(verdict.kind === 'read' && verdict.bytes.equals(content), `${length} bytes`);
    }
  });

  it('is refused beyond its bound', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), 'five!');
    const verdict = readSmallFile(dir.join('file'), { maxBytes: 4 });
    assert.equal(verdict.kind === 'refused' && verdict.because, 'too-long');
  });

  it('is bounded also if the system reports no size', () => {
    assert.equal(fs.statSync('/proc/self/maps').size, 0);
    assert.equal(readSmallFile('/proc/self/maps', { maxBytes: 10 }).kind, 'refused');
  });

  it('is read whole if the system reports no size and the file has several chunks', () => {
    const args = Array.from({ length: 2000 }, (_, index) => `argument-${index}-of-a-long-command-line`);
    const read = `import(${JSON.stringify(readerUrl)}).then(({ readSmallFile }) => {
      const { bytes } = readSmallFile('/proc/self/cmdline', { maxBytes: 1e6 });
      process.stdout.write(bytes);
    })`;
    const shown = execFileSync(process.execPath, ['-e', read, ...args], { encoding: 'utf8' });
    assert.deepEqual(shown.split('\0').slice(3), [...args, '']);
  });

  it('is absent, not refused, if its path does not exist', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    const why = [dir.join('none'), dir.join('file', 'below')].map((path) => {
      const verdict = readSmallFile(path, { maxBytes: 10 });
      return verdict.kind === 'absent' && verdict.why;
    });
    assert.deepEqual(why, ['ENOENT', 'ENOTDIR']);
  });

  it('is not a directory and not a FIFO, which would block a reader', () => {
    using dir = tempDir();
    execFileSync('mkfifo', [dir.join('fifo')]);
    for (const path of [dir.path, dir.join('fifo')]) {
      const verdict = readSmallFile(path, { maxBytes: 10 });
      assert.equal(verdict.kind === 'refused' && verdict.because, 'not-regular', path);
    }
  });

  it('may be a link, unless links are refused', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), 'here');
    fs.symlinkSync('file', dir.join('link'));
    assert.equal(readSmallFile(dir.join('link'), { maxBytes: 10 }).kind, 'read');
    const refused = readSmallFile(dir.join('link'), { maxBytes: 10, links: 'refused' });
    assert.deepEqual([refused.kind, refused.kind === 'refused' && refused.why], ['refused', 'ELOOP']);
  });
});

describe('the end of a file', () => {
  it('is its last bytes, or all of a shorter one', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), 'one two three');
    const endOf = (maxBytes: number): string | undefined => {
      const verdict = readFileEnd(dir.join('file'), { maxBytes });
      return verdict.kind === 'read' ? verdict.bytes.toString() : undefined;
    };
    assert.deepEqual([endOf(5), endOf(13), endOf(100)], ['three', 'one two three', 'one two three']);
  });

  it('of a huge sparse file takes only the memory of the requested bytes', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    fs.truncateSync(dir.join('file'), 5_000_000_000);
    const verdict = readFileEnd(dir.join('file'), { maxBytes: 100_000 });
    assert.ok(verdict.kind === 'read' && verdict.bytes.equals(Buffer.alloc(100_000)));
  });
});

describe('lstatIfPresent and listEntries', () => {
  it('find nothing if a part of the path is not a directory, or is a link to itself', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), 'x');
    fs.symlinkSync('loop', dir.join('loop'));
    for (const path of [dir.join('absent'), dir.join('file/below'), dir.join('loop/below')]) {
      assert.equal(lstatIfPresent(path), undefined, path);
      assert.deepEqual(listEntries(path), [], path);
    }
    assert.deepEqual(listEntries(dir.join('file')), []);
    assert.equal(lstatIfPresent(dir.join('loop'))?.isSymbolicLink(), true);
    assert.deepEqual(
      listEntries(dir.path).map(({ name }) => name),
      ['file', 'loop'],
    );
  });
});
