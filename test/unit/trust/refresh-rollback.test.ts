// Older versions are refused, unless a root removed the keys that signed the newer ones.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isoTime } from '../../kit/repository/repository-simulator.js';
import { bench, dayMs, startMs, version } from '../../kit/trust/client-bench.js';

describe('refresh: rollback', () => {
  it('refuses an older timestamp, and keeps the newer one', async () => {
    const { client, repository } = bench();
    const old = repository.file('timestamp.json');
    repository.bumpTimestamp();
    await client.refresh();
    repository.serve('timestamp.json', old);
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    assert.equal(version(client, 'timestamp'), 2);
  });

  it('keeps the stored timestamp when another one has the same version', async () => {
    const { client, repository, store } = bench();
    await client.refresh();
    const kept = repository.file('timestamp.json');
    repository.timestamp.expires = isoTime(startMs + 8 * dayMs);
    repository.writeTimestamp();
    assert.equal((await client.refresh()).changed, false);
    assert.deepEqual(Buffer.from(store.loadFiles().timestamp ?? []), kept);
  });

  it('refuses a newer timestamp that names an older snapshot', async () => {
    const { client, repository } = bench();
    repository.bumpSnapshot();
    await client.refresh();
    repository.timestamp.meta['snapshot.json'].version = 1;
    repository.bumpTimestamp();
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
    assert.equal(version(client, 'timestamp'), 2);
  });

  for (const pinned of [false, true]) {
    it(`refuses a newer snapshot that names older targets, ${pinned ? 'with' : 'without'} digests`, async () => {
      const { client, repository } = bench();
      repository.pinned = pinned;
      repository.publish();
      await client.refresh();
      repository.snapshot.meta['targets.json'] = repository.describe(1, repository.file('1.targets.json'));
      repository.bumpSnapshot();
      await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
      assert.equal(version(client, 'snapshot'), 2);
    });
  }

  it('refuses a snapshot from which a role has vanished', async () => {
    const { client, repository } = bench();
    repository.snapshot.meta['team.json'] = { version: 4 };
    repository.publish();
    await client.refresh();
    repository.snapshot.meta = { 'targets.json': repository.snapshot.meta['targets.json'] };
    repository.bumpSnapshot();
    await assert.rejects(client.refresh(), { code: 'METADATA_ROLLBACK' });
  });

  it('holds after a restart as well', async () => {
    const { client, repository, restart } = bench();
    const old = repository.file('timestamp.json');
    repository.publish();
    await client.refresh();
    repository.serve('timestamp.json', old);
    await assert.rejects(restart().refresh(), { code: 'METADATA_ROLLBACK' });
  });
});

describe('refresh: recovery from fast-forward', () => {
  it('deletes a timestamp of a stolen key, and its clock floor, when that key is rotated', async () => {
    const { client, repository, clock } = bench();
    repository.timestamp.version = 1_000_000;
    repository.timestamp.writ = { signedAt: isoTime(startMs + 5 * dayMs) };
    repository.writeTimestamp();
    await client.refresh();

    repository.rotate('timestamp');
    repository.timestamp.version = 2;
    repository.timestamp.writ = { signedAt: isoTime(startMs) };
    repository.writeTimestamp();
    const result = await client.refresh();
    assert.equal(result.roles.timestamp.version, 2);
    assert.deepEqual(result.warnings, []);
    assert.equal(clock.nowMs(), startMs);
  });

  it('deletes a snapshot of a stolen key, and the timestamp, when only the snapshot key is rotated', async () => {
    const { client, repository } = bench();
    repository.snapshot.version = 1_000_000;
    repository.writeSnapshot();
    await client.refresh();

    repository.rotate('snapshot');
    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeSnapshot();
    assert.equal((await client.refresh()).roles.snapshot.version, 2);
  });

  it('recovers even if it was stopped between the new root and the new timestamp', async () => {
    const { client, repository, restart } = bench();
    repository.snapshot.version = 1_000_000;
    repository.writeSnapshot();
    await client.refresh();
    repository.rotate('snapshot');
    repository.files.delete('metadata/timestamp.json');
    await assert.rejects(client.refresh(), { code: 'METADATA_MISSING' });

    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeSnapshot();
    assert.equal((await restart().refresh()).roles.snapshot.version, 2);
  });

  it('accepts older targets after a fast-forward, when snapshot keys are rotated', async () => {
    const { client, repository } = bench();
    repository.targets.version = 1_000_000;
    repository.writeTargets();
    await client.refresh();
    repository.rotate('snapshot');
    repository.targets.version = 2;
    repository.snapshot.version = 2;
    repository.timestamp.version = 2;
    repository.writeTargets();
    assert.equal((await client.refresh()).roles.targets.version, 2);
  });

  it('requests the timestamp without an ETag after a rotation, because "not modified" would prove nothing', async () => {
    const { client, repository } = bench();
    await client.refresh();
    repository.rotate('timestamp');
    repository.takeRequests();
    // The server still has the timestamp of the old key: the ETag would match.
    await assert.rejects(client.refresh(), { code: 'SIGNATURE_WRONG_KEY' });
    assert.ok(repository.takeRequests().includes('GET metadata/timestamp.json'));
  });
});
