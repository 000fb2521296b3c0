import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { overlaySource } from '../../../../src/trust/sources/overlay-source.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../../src/trust/sources/source.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

function open(path: string): RepositorySource {
  return openRepositorySource(pathToFileURL(path).href, { clock: fakeClock(), version: '9.9.9' });
}

function repository(dir: TempDir): RepositorySource {
  mkdirSync(dir.join('repo', 'metadata'), { recursive: true });
  writeFileSync(dir.join('repo', 'metadata', 'timestamp.json'), 'hello');
  writeFileSync(dir.join('repo', 'archive'), '0123456789');
  writeFileSync(dir.join('secret'), 'secret');
  return open(dir.join('repo'));
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('file source', () => {
  it('reads files, and reports absent ones', async () => {
    using dir = tempDir();
    const source = repository(dir);
    const verdict = await source.fetch('metadata/timestamp.json', { maxBytes: 5 });
    assert.ok(verdict.kind === 'found');
    assert.equal(verdict.bytes.toString(), 'hello');
    assert.equal((await source.fetch('metadata/2.root.json', { maxBytes: 5 })).kind, 'absent');
    assert.equal((await source.fetch('metadata/timestamp.json/x', { maxBytes: 5 })).kind, 'absent');
    assert.equal((await source.fetch('other/2.root.json', { maxBytes: 5 })).kind, 'absent');
    assert.equal((await source.fetch('metadata%2Ftimestamp.json', { maxBytes: 5 })).kind, 'absent');
  });

  it('finds names with a space or a percent sign under their encoded path', async () => {
    using dir = tempDir();
    const source = repository(dir);
    writeFileSync(dir.join('repo', 'a b%.json'), 'odd');
    const verdict = await source.fetch('a%20b%25.json', { maxBytes: 5 });
    assert.equal(verdict.kind === 'found' && verdict.bytes.toString(), 'odd');
  });

  it('reports a missing directory as an unreachable server, not as an empty repository', async () => {
    using dir = tempDir();
    const source = open(dir.join('not-mounted'));
    const error = await rejectsCode(
      'SERVER_UNREACHABLE',
      source.fetch('metadata/2.root.json', { maxBytes: 5 }),
    );
    assert.equal(error.facts['errno'], 'ENOENT');
  });

  it('refuses a file over its bound', async () => {
    using dir = tempDir();
    const error = await rejectsCode('DOWNLOAD_TOO_LARGE', repository(dir).fetch('archive', { maxBytes: 9 }));
    assert.equal(error.facts.actual, 10);
  });

  it('never hangs on a FIFO, and opens neither links nor directories', { timeout: 60_000 }, async () => {
    using dir = tempDir();
    const source = repository(dir);
    execFileSync('mkfifo', [dir.join('repo', 'fifo')]);
    symlinkSync(dir.join('secret'), dir.join('repo', 'link'));
    symlinkSync(dir.path, dir.join('repo', 'out'));
    for (const path of ['fifo', 'link', 'metadata', 'out/secret']) {
      await rejectsCode('SERVER_ERROR', source.fetch(path, { maxBytes: 100 }));
      await rejectsCode('SERVER_ERROR', collect(source.stream(path, { length: 6 })));
    }
  });

  it('stays inside the repository', async () => {
    using dir = tempDir();
    const source = repository(dir);
    for (const path of ['../secret', '%2e%2e/secret', 'metadata/../../secret', '/etc/passwd', 'a%00b']) {
      await rejectsCode('METADATA_MALFORMED', source.fetch(path, { maxBytes: 100 }));
    }
  });

  it('names the system error of a file that cannot be read', {
    skip: process.getuid?.() === 0 ? 'root may do all of this' : false,
  }, async () => {
    using dir = tempDir();
    const source = repository(dir);
    chmodSync(dir.join('repo', 'archive'), 0);
    const error = await rejectsCode('SERVER_ERROR', source.fetch('archive', { maxBytes: 100 }));
    assert.equal(error.facts['errno'], 'EACCES');
  });

  it('streams exactly the signed length, from any offset', async () => {
    using dir = tempDir();
    const source = repository(dir);
    assert.equal(await collect(source.stream('archive', { length: 10 })), '0123456789');
    assert.equal(await collect(source.stream('archive', { length: 10, offset: 7 })), '789');
    assert.equal(await collect(source.stream('archive', { length: 10, offset: 10 })), '');
    await rejectsCode('DOWNLOAD_TOO_LARGE', collect(source.stream('archive', { length: 9 })));
    await rejectsCode('DOWNLOAD_TRUNCATED', collect(source.stream('archive', { length: 11, offset: 3 })));
    await rejectsCode('TARGET_MISSING', collect(source.stream('none', { length: 1 })));
  });

  it('streams a file of many chunks whole', async () => {
    using dir = tempDir();
    const source = repository(dir);
    const text = 'abcdefg'.repeat(50_000);
    writeFileSync(dir.join('repo', 'large'), text);
    assert.equal(await collect(source.stream('large', { length: text.length })), text);
  });

  it('ends when the caller aborts it', async () => {
    using dir = tempDir();
    const source = repository(dir);
    const signal = AbortSignal.abort();
    await rejectsCode('INTERRUPTED', source.fetch('archive', { maxBytes: 100, signal }));
    await rejectsCode('INTERRUPTED', collect(source.stream('archive', { length: 10, signal })));
  });
});

describe('overlay source', () => {
  it('shows its own files first, under the same bounds', async () => {
    using dir = tempDir();
    const files = new Map([
      ['metadata/timestamp.json', Buffer.from('newer')],
      ['next', Buffer.from('0123')],
    ]);
    const source = overlaySource(repository(dir), files);
    const timestamp = await source.fetch('metadata/timestamp.json', { maxBytes: 5 });
    assert.equal(timestamp.kind === 'found' && timestamp.bytes.toString(), 'newer');
    const below = await source.fetch('archive', { maxBytes: 10 });
    assert.equal(below.kind === 'found' && below.bytes.toString(), '0123456789');
    assert.equal((await source.fetch('none', { maxBytes: 5 })).kind, 'absent');
    await rejectsCode('DOWNLOAD_TOO_LARGE', source.fetch('next', { maxBytes: 3 }));
    assert.equal(await collect(source.stream('next', { length: 4, offset: 1 })), '123');
    assert.equal(await collect(source.stream('archive', { length: 10, offset: 9 })), '9');
    await rejectsCode('DOWNLOAD_TRUNCATED', collect(source.stream('next', { length: 5 })));
    await source.close();
  });
});
