import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { maxRequires } from '../../../../src/core/release/requires.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../../src/platform/disk/process-lock.js';
import type { PublishResult } from '../../../../src/publisher/release/publish.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { seenByHost, v1, v2 } from '../../../kit/repository/published-tree.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

function serialOf(result: PublishResult): number {
  return result.release.serial;
}

describe('publishBundle', () => {
  it('gives the next serial, and a host verifies it from the first root', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = await repository.publish(v1, { revision: '4f1c2e9' });
    assert.equal(first.kind, 'live');
    const second = await repository.publish(v2);
    assert.deepEqual([serialOf(first), serialOf(second)], [1, 2]);
    const seen = await seenByHost(repository);
    assert.equal(seen.release?.serial, 2);
    assert.equal(seen.release.manifest.digest, second.tree.manifestDigest);
    assert.equal(seen.release.createdAtMs, repository.clock.nowMs());
    assert.deepEqual(
      Object.values(seen.roles)
        .map((role) => role.version)
        .sort(),
      [1, 3, 3, 3],
    );
    assert.ok(brotliDecompressSync(seen.archive ?? '').includes('us: 1\n'));
  });

  it('reports the changes since the release before', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = await repository.publish(v1);
    const second = await repository.publish(v2);
    assert.equal(first.kind === 'live' && first.difference, undefined);
    assert.deepEqual(second.kind === 'live' && second.difference, {
      added: ['views/us.yaml'],
      changed: ['block.rpz'],
      removed: [],
    });
    assert.equal(second.kind === 'live' && second.previous?.serial, 1);
  });

  it('reports "nothing new" for the same tree, and changes no byte, time or mode', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const before = directoryState(repository.directory);
    const again = await repository.publish(v1, { revision: 'other' });
    assert.equal(again.kind, 'nothing-new');
    assert.equal(serialOf(again), 1);
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('needs no key to report "nothing new"', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const again = await repository.publish(v1, { keys: dir.join('no-keys') });
    assert.equal(again.kind, 'nothing-new');
  });

  it('gives a tree that returns a serial of its own', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    await repository.publish(v2);
    assert.equal(serialOf(await repository.publish(v1)), 3);
  });

  it('counts serials across channels and withdrawn releases, for each bundle alone', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const canary = { channel: 'canary' };
    assert.equal(serialOf(await repository.publish(v1, canary)), 1);
    assert.equal(serialOf(await repository.publish(v1)), 2);
    assert.equal(serialOf(await repository.publish(v2, canary)), 3);
    assert.equal(serialOf(await repository.publish({ other: '' }, { bundle: 'access' })), 1);
    const withdrawing = await repository.publish(v2, { withdraw: [9] });
    assert.equal(serialOf(withdrawing), 4);
    assert.equal(serialOf(await repository.publish(v1)), 10);
  });

  it('continues above the serials of a repository that it replaces', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    assert.equal(serialOf(await repository.publish(v1, { afterSerial: 41 })), 42);
    assert.equal(serialOf(await repository.publish(v2, { afterSerial: 7 })), 43);
    assert.equal((await seenByHost(repository)).release?.serial, 43);
  });

  it('carries withdrawn serials on with every later release of the channel', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    await repository.publish(v2);
    const back = await repository.publish(v1, { withdraw: [2] });
    const later = await repository.publish(v2, { withdraw: [1] });
    assert.deepEqual(back.release.withdrawn, [2]);
    assert.deepEqual(later.release.withdrawn, [1, 2]);
    assert.deepEqual((await seenByHost(repository)).release?.withdrawn, [1, 2]);
  });

  it('publishes the same tree again when it takes a serial back', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const back = await repository.publish(v1, { withdraw: [1] });
    assert.equal(back.kind, 'live');
    assert.equal((await repository.publish(v1, { withdraw: [1] })).kind, 'nothing-new');
  });

  it('returns the signing time and the expiry of each role', async () => {
    using dir = tempDir();
    const clock = fakeClock({ nowMs: Date.UTC(2026, 10, 21, 12, 0, 0, 345) });
    const repository = sampleRepository(dir, {
      clock,
      validity: { timestamp: 3_600_000, snapshot: 7_200_000 },
    });
    await repository.publish(v1);
    const { roles, signedAtMs } = await seenByHost(repository);
    const secondMs = Date.UTC(2026, 10, 21, 12);
    assert.equal(signedAtMs, secondMs);
    assert.equal(roles.timestamp.expiresAtMs, secondMs + 3_600_000);
    assert.equal(roles.snapshot.expiresAtMs, secondMs + 7_200_000);
    assert.equal(roles.targets.expiresAtMs, secondMs + 365 * 86_400_000);
  });

  it('signs a repository with expired online roles again', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish(v1);
    await clock.advance(60 * 86_400_000);
    await assert.rejects(seenByHost(repository), { code: 'METADATA_EXPIRED' });
    await repository.publish(v2);
    assert.equal((await seenByHost(repository)).release?.serial, 2);
  });

  it('writes files that all users can read, under any umask', async () => {
    using dir = tempDir();
    const before = process.umask(0o077);
    try {
      const repository = sampleRepository(dir);
      await repository.publish(v1);
      for (const name of fs.readdirSync(repository.directory, { recursive: true, encoding: 'utf8' })) {
        if (name === '.lock') continue;
        const status = fs.statSync(`${repository.directory}/${name}`);
        assert.equal(status.mode & 0o777, status.isDirectory() ? 0o755 : 0o644, name);
      }
    } finally {
      process.umask(before);
    }
  });

  it('gives timestamp.json a later second each time, even within one second', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const seconds = [];
    for (const content of ['1', '2', '3']) {
      await repository.publish({ a: content });
      seconds.push(Math.floor(fs.statSync(metadataPath(repository, 'timestamp.json')).mtimeMs / 1000));
    }
    assert.ok(seconds[0]! < seconds[1]! && seconds[1]! < seconds[2]!, String(seconds));
  });

  it('refuses a revision that hosts would refuse', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await assert.rejects(repository.publish(v1, { revision: 'x'.repeat(201) }), { code: 'USAGE' });
  });

  it('refuses more features than hosts read, and counts each of them once', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const features = Array.from({ length: maxRequires + 1 }, (_, at) => `feature-${at}`);
    await rejectsCode('USAGE', repository.publish(v1, { requires: features }));
    const { release } = await repository.publish(v1, { requires: [...features.slice(1), 'feature-1'] });
    assert.equal(release.requires?.length, maxRequires);
  });

  it('does not wait for another holder of the lock', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const path = `${repository.directory}/.lock`;
    const request = { path, holder: 'test', waitMs: 0, clock: repository.clock, durable: createDurableFs() };
    const lock = await takeLock({ ...request, code: 'REPOSITORY_LOCKED' });
    try {
      await assert.rejects(repository.publish(v1), { code: 'REPOSITORY_LOCKED' });
    } finally {
      lock.release();
    }
    assert.equal((await repository.publish(v1)).kind, 'live');
  });

  it('refuses a directory that is not a repository', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    fs.rmSync(repository.directory, { recursive: true });
    await assert.rejects(repository.publish(v1), { code: 'REPOSITORY_INVALID' });
  });
});

describe('publishBundle without the online keys', () => {
  function withoutKeys(repository: SampleRepository, path: string, ...missing: readonly string[]): string {
    fs.cpSync(repository.keys, path, { recursive: true });
    for (const name of missing) fs.rmSync(`${path}/${name}`);
    return path;
  }

  it('signs the targets and names the missing keys; hosts see it after a refresh', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const keys = withoutKeys(repository, dir.join('offline'), 'snapshot.key', 'timestamp.key');
    const result = await repository.publish(v2, { keys });
    assert.equal(result.kind, 'waiting');
    assert.deepEqual(result.kind === 'waiting' && result.missing, ['snapshot', 'timestamp']);
    assert.equal((await seenByHost(repository)).release?.serial, 1);
    const refreshed = await repository.refresh(['timestamp']);
    assert.equal(refreshed.targetsBefore, 2);
    assert.deepEqual(refreshed.versions, { targets: 3, snapshot: 3, timestamp: 3 });
    assert.equal((await seenByHost(repository)).release?.serial, 2);
  });

  it('builds the next release on the one that waits', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = withoutKeys(repository, dir.join('offline'), 'timestamp.key');
    await repository.publish(v1, { keys });
    const other = await repository.publish({ a: 'a' }, { keys, bundle: 'access' });
    assert.equal(other.kind, 'waiting');
    await repository.refresh();
    assert.equal((await seenByHost(repository)).release?.serial, 1);
    assert.equal((await seenByHost(repository, 'access')).release?.serial, 1);
  });

  it('publishes the waiting release when it is published again with all keys', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = withoutKeys(repository, dir.join('offline'), 'timestamp.key');
    await repository.publish(v1, { keys });
    const again = await repository.publish(v1);
    assert.equal(again.kind, 'live');
    assert.equal(serialOf(again), 1);
    assert.equal((await seenByHost(repository)).release?.serial, 1);
  });

  it('refuses to begin without the targets key, naming the role', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = withoutKeys(repository, dir.join('offline'), 'targets.key');
    const before = directoryState(repository.directory);
    await assert.rejects(repository.publish(v1, { keys }), { code: 'KEYS_MISSING' });
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('does not take a key for one of the role by its file name', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = withoutKeys(repository, dir.join('offline'));
    fs.copyFileSync(`${keys}/snapshot.key`, `${keys}/targets.key`);
    await assert.rejects(repository.publish(v1, { keys }), { code: 'KEYS_MISSING' });
  });
});
