import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type ArchiveFetchOptions, fetchArchive } from '../../../../src/agent/staging/fetch-archive.js';
import { WritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import type { OpenTransfer } from '../../../../src/trust/download.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { sha256, signedTarget } from '../../../kit/repository/archive-builder.js';
import { memorySource, type Transfer } from '../../../kit/repository/memory-source.js';

const archive = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
const target = signedTarget(archive, Buffer.from('{}'));

function options(dir: TempDir, changes: Partial<ArchiveFetchOptions> = {}): ArchiveFetchOptions {
  return {
    client: memorySource(archive),
    target,
    directory: dir.path,
    fs: createDurableFs(),
    limits: defaultArchiveLimits,
    ...changes,
  };
}

async function assertFails(dir: TempDir, changes: Partial<ArchiveFetchOptions>, code: string): Promise<void> {
  await assert.rejects(fetchArchive(options(dir, changes)), { code });
  assert.equal(existsSync(dir.join('archive')), false, 'the file is left behind');
}

function cut(bytes: number): Transfer {
  return { bytes, error: new WritError('SERVER_UNREACHABLE', 'cut') };
}

describe('fetchArchive', () => {
  it('fetches the bytes into a private file and flushes it', async () => {
    using dir = tempDir();
    const seen = new Set<string>();
    const fs = createDurableFs({ before: ({ op, path }) => void seen.add(`${op} ${path}`) });
    const got = await fetchArchive(options(dir, { fs }));
    assert.equal(got.target, target);
    assert.deepEqual(readFileSync(got.path), archive);
    assert.equal(statSync(got.path).mode & 0o777, 0o600);
    const steps = ['create', 'write', 'flush'];
    assert.deepEqual(
      [...seen],
      steps.map((step) => `fetch.archive:${step} ${got.path}`),
    );
  });

  it('reports its progress', async () => {
    using dir = tempDir();
    const notified: [number, number][] = [];
    await fetchArchive(options(dir, { onProgress: (done, total) => void notified.push([done, total]) }));
    assert.equal(notified.length, 10);
    assert.deepEqual(notified.at(-1), [100_000, 100_000]);
  });

  it('continues after a cut at the same offset', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [cut(30_000), cut(5), { bytes: 0 }]);
    const got = await fetchArchive(options(dir, { client }));
    assert.deepEqual(client.offsets, [0, 30_000, 30_005, 30_005]);
    assert.deepEqual(readFileSync(got.path), archive);
  });

  it('fails after three resumptions with the last error', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [cut(10), cut(10), cut(10), cut(10)]);
    await assertFails(dir, { client }, 'SERVER_UNREACHABLE');
    assert.equal(client.offsets.length, 4);
  });

  it('fails with DOWNLOAD_TRUNCATED if the stream ends early', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [{ bytes: 10 }, { bytes: 10 }, { bytes: 10 }, { bytes: 10 }]);
    await assertFails(dir, { client }, 'DOWNLOAD_TRUNCATED');
  });

  it('sends no second request if the response would be the same', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [{ bytes: 10, error: new WritError('SERVER_BUSY', 'later') }]);
    await assertFails(dir, { client }, 'SERVER_BUSY');
    assert.equal(client.offsets.length, 1);
  });

  it('refuses bytes without the signed digest', async () => {
    using dir = tempDir();
    const tampered = Buffer.from(archive);
    tampered[50_000] = 0xff;
    await assertFails(dir, { client: memorySource(tampered) }, 'DOWNLOAD_DIGEST');
  });

  it('refuses a resumption that continues another file', async () => {
    using dir = tempDir();
    const other = Buffer.alloc(archive.length, 1);
    let calls = 0;
    const first = memorySource(archive, [cut(30_000)]);
    const open: OpenTransfer = (start, signal) => {
      calls += 1;
      return (calls === 1 ? first : memorySource(other)).open(start, signal);
    };
    const client: ArchiveFetchOptions['client'] = {
      download: async (_target, receive) => {
        await receive(open, new AbortController().signal, 'no');
        return [];
      },
    };
    await assertFails(dir, { client }, 'DOWNLOAD_DIGEST');
  });

  it('keeps no byte of a malicious mirror in the file of an honest mirror, and reports the malicious mirror', async () => {
    using dir = tempDir();
    // The malicious bytes are longer than the first honest response: none of them may remain in the file.
    const liar = memorySource(Buffer.alloc(archive.length, 1), Array(4).fill(cut(20_000)));
    const honest = memorySource(archive);
    const failure = { mirror: 'https://a/', error: new WritError('SERVER_UNREACHABLE', 'cut') };
    const client: ArchiveFetchOptions['client'] = {
      download: async (_target, receive) => {
        const { signal } = new AbortController();
        await assert.rejects(receive(liar.open, signal, 'yes'), { code: 'SERVER_UNREACHABLE' });
        await receive(honest.open, signal, 'no');
        return [failure];
      },
    };
    const failed: unknown[] = [];
    const got = await fetchArchive(options(dir, { client, onMirrorFailed: (one) => failed.push(one) }));
    assert.deepEqual(honest.offsets, [80_000, 0]);
    assert.deepEqual(readFileSync(got.path), archive);
    assert.deepEqual(failed, [failure]);
  });

  it('reports a mirror with wrong bytes of its own, and restarts with the next mirror', async () => {
    using dir = tempDir();
    const liar = memorySource(Buffer.alloc(archive.length, 1));
    const honest = memorySource(archive);
    const client: ArchiveFetchOptions['client'] = {
      download: async (_target, receive) => {
        const { signal } = new AbortController();
        await assert.rejects(receive(liar.open, signal, 'yes'), { code: 'DOWNLOAD_DIGEST' });
        await receive(honest.open, signal, 'no');
        return [];
      },
    };
    const got = await fetchArchive(options(dir, { client }));
    assert.deepEqual([liar.offsets, honest.offsets], [[0], [0]]);
    assert.deepEqual(readFileSync(got.path), archive);
  });

  it('stops an endless body at the signed length', async () => {
    using dir = tempDir();
    const endless = memorySource(Buffer.concat([archive, Buffer.from('x')]));
    await assertFails(dir, { client: endless }, 'DOWNLOAD_TOO_LARGE');
  });

  it('sends no request if the signed length exceeds the limit', async () => {
    using dir = tempDir();
    const client = memorySource(archive);
    const limits = { ...defaultArchiveLimits, maxArchiveBytes: archive.length - 1 };
    await assertFails(dir, { client, limits }, 'ARCHIVE_LIMIT');
    assert.deepEqual(client.offsets, []);
    const enough = { ...defaultArchiveLimits, maxArchiveBytes: archive.length };
    await fetchArchive(options(dir, { client, limits: enough }));
  });

  it('sends no request if the disk lacks space', async () => {
    using dir = tempDir();
    const client = memorySource(archive);
    const limits = { ...defaultArchiveLimits, maxArchiveBytes: 2 ** 53 };
    await assertFails(dir, { client, limits, target: { ...target, length: 2 ** 52 } }, 'DISK_FULL');
    assert.deepEqual(client.offsets, []);
  });

  it('fails with DISK_FULL if the flush fails', async () => {
    using dir = tempDir();
    const fs = createDurableFs({
      before: ({ op }) => {
        if (op === 'fetch.archive:flush') throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      },
    });
    await assertFails(dir, { fs }, 'DISK_FULL');
  });

  it('never overwrites an existing file', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('archive'), 'before');
    await assert.rejects(fetchArchive(options(dir)), { code: 'DISK_FAILED' });
    assert.equal(readFileSync(dir.join('archive'), 'utf8'), 'before');
  });

  it('stops at once after an interruption', async () => {
    using dir = tempDir();
    const abort = new AbortController();
    const onProgress = (): void => abort.abort();
    await assertFails(dir, { signal: abort.signal, onProgress }, 'INTERRUPTED');
  });

  it('throws an unknown error unchanged', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [{ bytes: 10, error: new TypeError('a bug') }]);
    await assert.rejects(fetchArchive(options(dir, { client })), TypeError);
    assert.equal(existsSync(dir.join('archive')), false);
  });

  it('digests the written bytes, also after a cut', async () => {
    using dir = tempDir();
    const client = memorySource(archive, [cut(12_345)]);
    const got = await fetchArchive(options(dir, { client }));
    assert.equal(sha256(readFileSync(got.path)), target.digest);
  });
});

describe('a manifest that is too long for its archive', () => {
  const manifest = (length: number): Partial<ArchiveFetchOptions> => ({
    target: signedTarget(archive, Buffer.from('{}'), {
      release: { manifest: { digest: sha256('{}'), length } },
    }),
    client: {
      download: () => {
        throw new Error('a byte was asked for');
      },
    },
  });
  const lengths = {
    'of all that a number holds': Number.MAX_SAFE_INTEGER,
    'over the limit of manifests': defaultArchiveLimits.maxManifestBytes + 1,
    'over the ratio': archive.length * defaultArchiveLimits.maxRatio + 1,
  };
  for (const [name, length] of Object.entries(lengths)) {
    it(`${name} is a failure of the release, and not a full disk`, async () => {
      using dir = tempDir();
      await assertFails(dir, manifest(length), 'ARCHIVE_LIMIT');
    });
  }
});
