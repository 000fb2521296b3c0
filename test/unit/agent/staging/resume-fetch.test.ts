// An archive with a partial download of an earlier run.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sweepPartials } from '../../../../src/agent/partials/partials.js';
import { type ArchiveFetchOptions, fetchArchive } from '../../../../src/agent/staging/fetch-archive.js';
import { WritError } from '../../../../src/core/errors.js';
import { digestHex } from '../../../../src/core/names.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { archive, type FetchBench, fetchBench } from '../../../kit/host/fetch-bench.js';
import { signedTarget } from '../../../kit/repository/archive-builder.js';
import { type MemorySource, memorySource } from '../../../kit/repository/memory-source.js';

const other = Buffer.alloc(archive.length, 1);
const hex = digestHex(signedTarget(archive, Buffer.from('{}')).digest);
const seen = { location: 'https://a/', etag: '"v1"' };
const down = (): WritError => new WritError('SERVER_UNREACHABLE', 'cut');

/** A run that ends after so many bytes. */
async function cutAfter(it: FetchBench, bytes: number, from = archive): Promise<void> {
  const error = new WritError('SERVER_BUSY', 'no more');
  await rejectsCode('SERVER_BUSY', run(it, memorySource(from, [{ bytes, error, seen }])));
}

/** A complete cycle: it moves the archive away before its sweep. */
async function run({ options }: FetchBench, client: ArchiveFetchOptions['client']): Promise<void> {
  const { path } = await fetchArchive({ ...options, client });
  assert.deepEqual(fs.readFileSync(path), archive);
  sweepPartials(options.partials);
  fs.rmSync(path);
}

describe('a partial download', () => {
  it('is continued by the next run, which requests the named version and leaves no partial download', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000);
    assert.deepEqual(fs.readdirSync(dir.join('staging')), []);
    assert.equal(fs.statSync(join(it.partials, hex)).size, 60_000);
    const next = memorySource(archive);
    const progress: number[] = [];
    const options = { ...it.options, onProgress: (doneBytes: number) => void progress.push(doneBytes) };
    await run({ ...it, options }, next);
    assert.deepEqual([next.offsets, next.starts[0]?.seen, it.resumedFrom], [[60_000], seen, [60_000]]);
    assert.deepEqual([progress[0], progress.at(-1)], [60_000, 100_000]);
    assert.deepEqual(fs.readdirSync(it.partials), []);
  });

  it('is continued after each of several cuts', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 20_000);
    await cutAfter(it, 20_000);
    const last = memorySource(archive);
    await run(it, last);
    assert.deepEqual([last.offsets, it.resumedFrom], [[40_000], [20_000, 40_000]]);
  });

  it('is retained after an interruption, also while its bytes are digested', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    const abort = new AbortController();
    const onProgress = (): void => abort.abort();
    const { signal } = abort;
    await rejectsCode('INTERRUPTED', fetchArchive({ ...it.options, signal, onProgress }));
    assert.equal(fs.statSync(join(it.partials, hex)).size, 10_000);
    await rejectsCode('INTERRUPTED', fetchArchive({ ...it.options, signal }));
    assert.equal(fs.statSync(join(it.partials, hex)).size, 10_000);
  });

  it('that was completed before an interruption causes no request of the next run', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await fetchArchive(it.options);
    // The start after a kill.
    fs.rmSync(dir.join('staging'), { recursive: true });
    fs.mkdirSync(dir.join('staging'));
    sweepPartials(it.options.partials);
    const client = memorySource(archive);
    await run(it, client);
    assert.deepEqual(client.offsets, []);
    assert.deepEqual(fs.readdirSync(it.partials), [], 'kept elsewhere, it is no partial any more');
  });

  it('that is complete causes no request', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    fs.writeFileSync(join(it.partials, hex), archive, { mode: 0o600 });
    const client = memorySource(archive);
    await run(it, client);
    assert.deepEqual(client.offsets, []);
  });

  it('is retained if a response begins at offset 0: only later bytes are written, and the offset is reported as 0', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 65_000);
    const next = memorySource(archive, [{ begins: 'start' }]);
    const progress: number[] = [];
    const options = { ...it.options, onProgress: (doneBytes: number) => void progress.push(doneBytes) };
    await run({ ...it, options }, next);
    assert.deepEqual([next.offsets, it.resumedFrom], [[65_000], [65_000, 0]]);
    assert.deepEqual(progress.slice(0, 3), [65_000, 10_000, 20_000]);
    assert.equal(progress.at(-1), archive.length);
  });

  it('stays as long as before after a response that begins at offset 0, is wrong, and is cut', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000);
    const busy = new WritError('SERVER_BUSY', 'no more');
    const liar = memorySource(other, [{ begins: 'start', bytes: 10_000, error: busy }]);
    await rejectsCode('SERVER_BUSY', run(it, liar));
    assert.deepEqual(fs.readFileSync(join(it.partials, hex)), archive.subarray(0, 60_000));
    assert.deepEqual(fs.readdirSync(it.partials), [hex], 'the version of before is no longer noted');
  });

  it('loses only the bytes of a mirror that sends more than the signed length', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000);
    const long = Buffer.concat([archive.subarray(0, 60_000), Buffer.alloc(50_000, 1)]);
    await rejectsCode('DOWNLOAD_TOO_LARGE', run(it, memorySource(long)));
    assert.deepEqual(fs.readFileSync(join(it.partials, hex)), archive.subarray(0, 60_000));
    const honest = memorySource(archive);
    await run(it, honest);
    assert.deepEqual(honest.offsets, [60_000]);
  });

  it('is not retained if its only mirror sends more than the signed length', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    const long = memorySource(Buffer.alloc(archive.length + 1, 1));
    await rejectsCode('DOWNLOAD_TOO_LARGE', run(it, long));
    assert.deepEqual(fs.readdirSync(it.partials), []);
  });

  it('is named with its retained bytes after an interruption', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    const abort = new AbortController();
    const onProgress = (doneBytes: number): void => {
      if (doneBytes === 30_000) abort.abort();
    };
    const error = await rejectsCode(
      'INTERRUPTED',
      fetchArchive({ ...it.options, signal: abort.signal, onProgress }),
    );
    assert.match(error.message, /: 30\.0 kB of 100\.0 kB kept; the next pull continues from there$/);
    assert.deepEqual([error.facts['keptBytes'], error.facts['totalBytes']], [30_000, archive.length]);
  });

  const nothingComes = { bytes: 0, error: down() };
  it('leaves no file without bytes', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await rejectsCode('SERVER_UNREACHABLE', run(it, memorySource(archive, Array(4).fill(nothingComes))));
    assert.deepEqual(fs.readdirSync(it.partials), []);
  });
});

describe('a partial download with wrong bytes', () => {
  /** Mirrors in the order of their requests, and those that failed. */
  function mirrors(...sources: readonly MemorySource[]) {
    const failed: string[] = [];
    const client: ArchiveFetchOptions['client'] = {
      download: async (_target, receive, signal = new AbortController().signal) => {
        for (const [index, source] of sources.entries()) {
          const others = index < sources.length - 1 ? 'yes' : 'no';
          try {
            await receive(source.open, signal, others);
            return [];
          } catch (error) {
            failed.push(`${index} ${(error as WritError).code}`);
            if (others === 'no') throw error;
          }
        }
        return [];
      },
    };
    return { client, failed };
  }

  it('is discarded, and the next mirror is asked for the complete file', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000, other);
    const [first, next] = [memorySource(archive), memorySource(archive)];
    const { client, failed } = mirrors(first, next);
    await run(it, client);
    assert.deepEqual([first.offsets, next.offsets, failed], [[60_000], [0], ['0 DOWNLOAD_DIGEST']]);
  });

  it('is discarded, and a single mirror is asked once for the complete file', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000, other);
    const only = memorySource(archive);
    await run(it, mirrors(only).client);
    assert.deepEqual(only.offsets, [60_000, 0]);
  });

  it('is not retained if the complete file is wrong too', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000, other);
    const liar = memorySource(other);
    await rejectsCode('DOWNLOAD_DIGEST', run(it, mirrors(liar).client));
    assert.deepEqual(liar.offsets, [60_000, 0]);
    assert.deepEqual(fs.readdirSync(it.partials), []);
  });

  it('of the complete length is discarded before the first request, and no mirror is reported', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    fs.writeFileSync(join(it.partials, hex), other, { mode: 0o600 });
    const [first, next] = [memorySource(archive), memorySource(archive)];
    const { client, failed } = mirrors(first, next);
    await run(it, client);
    assert.deepEqual([first.offsets, next.offsets, failed], [[0], [], []]);
  });
});

describe('a failing disk', () => {
  const failing = (label: string) =>
    createDurableFs({
      before: ({ op }) => {
        if (op === label) throw Object.assign(new Error('bad disk'), { code: 'EIO' });
      },
    });

  it('that failed in a write or a flush retains no partial download, because its bytes are unknown', async () => {
    for (const label of ['fetch.archive:write', 'fetch.archive:flush', 'fetch.archive:link']) {
      using dir = tempDir();
      await cutAfter(fetchBench(dir), 60_000);
      const it = fetchBench(dir, failing(label));
      await rejectsCode('DISK_FAILED', fetchArchive(it.options));
      assert.deepEqual(fs.readdirSync(it.partials), [], label);
    }
  });

  it('that is full removes every partial download, its own last', async () => {
    using dir = tempDir();
    const it = fetchBench(dir);
    await cutAfter(it, 60_000);
    fs.writeFileSync(join(it.partials, 'c'.repeat(64)), 'x', { mode: 0o600 });
    const claimedBytes = 2 ** 52;
    const client = memorySource(archive);
    await rejectsCode('DISK_FULL', fetchArchive({ ...it.options, client, claimedBytes }));
    assert.deepEqual([client.offsets, fs.readdirSync(it.partials)], [[], []]);
  });
});
