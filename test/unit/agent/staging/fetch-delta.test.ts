// A delta passes the checks of an archive: signed lengths, free space, length and digest of its bytes.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type ArchiveFetchOptions, fetchDelta } from '../../../../src/agent/staging/fetch-archive.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { sha256, signedTarget } from '../../../kit/repository/archive-builder.js';
import { memorySource } from '../../../kit/repository/memory-source.js';

const bytes = Buffer.from(Array.from({ length: 50_000 }, (_, index) => index % 251));
const delta = { from: sha256(Buffer.from('base')), digest: sha256(bytes), length: bytes.length };
const target = signedTarget(Buffer.alloc(100_000), Buffer.from('{}'));
const withManifest = (length: number) => {
  const { release } = target;
  return { ...target, release: { ...release, manifest: { ...release.manifest, length } } };
};

function options(dir: TempDir, changes: Partial<ArchiveFetchOptions> = {}) {
  const client = memorySource(bytes);
  const limits = defaultArchiveLimits;
  return { ...{ client, target, delta, limits }, directory: dir.path, fs: createDurableFs(), ...changes };
}

async function assertFails(dir: TempDir, changes: Partial<ArchiveFetchOptions>, code: string): Promise<void> {
  await assert.rejects(fetchDelta(options(dir, changes)), { code });
  assert.equal(existsSync(dir.join('delta')), false, 'the file is left behind');
}

describe('fetchDelta', () => {
  it('fetches the bytes into a private file and returns the signed length and digest', async () => {
    using dir = tempDir();
    const got = await fetchDelta(options(dir));
    assert.deepEqual([readFileSync(got.path), statSync(got.path).mode & 0o777], [bytes, 0o600]);
    assert.deepEqual([got.length, got.digest, got.manifest], [50_000, delta.digest, target.release.manifest]);
  });

  it('refuses bytes without the signed digest, fewer bytes, and more', async () => {
    using dir = tempDir();
    const tampered = Buffer.from(bytes);
    tampered[25_000] = 0xff;
    await assertFails(dir, { client: memorySource(tampered) }, 'DOWNLOAD_DIGEST');
    await assertFails(dir, { client: memorySource(bytes.subarray(1)) }, 'DOWNLOAD_TRUNCATED');
    await assertFails(dir, { client: memorySource(Buffer.concat([bytes, bytes])) }, 'DOWNLOAD_TOO_LARGE');
  });

  it('sends no request if archive or manifest of its release exceed a limit, or the disk lacks space', async () => {
    using dir = tempDir();
    const client = memorySource(bytes);
    const limits = { ...defaultArchiveLimits, maxArchiveBytes: target.length - 1 };
    await assertFails(dir, { client, limits }, 'ARCHIVE_LIMIT');
    const { maxManifestBytes } = defaultArchiveLimits;
    await assertFails(dir, { client, target: withManifest(maxManifestBytes + 1) }, 'ARCHIVE_LIMIT');
    const narrow = { ...defaultArchiveLimits, maxRatio: 20 };
    await assertFails(dir, { client, limits: narrow, target: withManifest(2_000_001) }, 'ARCHIVE_LIMIT');
    const wide = { ...defaultArchiveLimits, maxArchiveBytes: 2 ** 53 };
    await assertFails(dir, { client, limits: wide, target: { ...target, length: 2 ** 52 } }, 'DISK_FULL');
    assert.deepEqual(client.offsets, []);
  });

  it('never overwrites an existing file, and stops at once after an interruption', async () => {
    using dir = tempDir();
    const abort = new AbortController();
    const onProgress = (): void => abort.abort();
    await assertFails(dir, { signal: abort.signal, onProgress }, 'INTERRUPTED');
    writeFileSync(dir.join('delta'), 'before');
    await assert.rejects(fetchDelta(options(dir)), { code: 'DISK_FAILED' });
    assert.equal(readFileSync(dir.join('delta'), 'utf8'), 'before');
  });
});
