// Older metadata than a host has seen: refused in every role, plain and with digests, until the repository rotates
// the key under which too high a version was signed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Loose } from '../../../kit/repository/repository-simulator.js';
import { isoTime } from '../../../kit/repository/simulated-metadata.js';
import { startMs, type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

/** Publishes `count` times, so that there is something to go back from. */
async function benchAt(version: number, pinned: boolean): Promise<TrustBench> {
  const bench = trustBench();
  bench.repository.pinned = pinned;
  while (bench.repository.timestamp.version < version) bench.repository.publish();
  assert.equal(await bench.refresh(), 'trusted');
  bench.asked();
  return bench;
}

const url = 'memory:metadata/timestamp.json';

for (const pinned of [false, true]) {
  describe(`rollback, ${pinned ? 'with digests' : 'by version alone'}`, () => {
    it('of the timestamp is refused at the timestamp', async () => {
      using bench = await benchAt(3, pinned);
      const before = bench.storedBytes('timestamp');
      bench.repository.alter('timestamp', (signed) => (signed.version = 2));
      assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
      assert.deepEqual(bench.refusal?.facts, { role: 'timestamp', expected: 3, actual: 2, url });
      assert.deepEqual(bench.asked(), ['2.root.json', 'timestamp.json?']);
      assert.deepEqual(bench.storedBytes('timestamp'), before);
    });

    it('of the snapshot is refused at the timestamp that names it: the snapshot is never asked for', async () => {
      using bench = await benchAt(3, pinned);
      bench.repository.snapshot.version = 2;
      bench.repository.timestamp.version = 4;
      bench.repository.writeSnapshot();
      assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
      assert.deepEqual(bench.refusal?.facts, { role: 'snapshot', expected: 3, actual: 2, url });
      assert.deepEqual(bench.asked(), ['2.root.json', 'timestamp.json?']);
      assert.deepEqual(bench.stored(), { root: 1, snapshot: 3, targets: 3, timestamp: 3 });
    });

    it('of the targets is refused at the snapshot that names them, also after a restart', async () => {
      using bench = await benchAt(3, pinned);
      bench.repository.targets.version = 2;
      bench.repository.snapshot.version = 4;
      bench.repository.timestamp.version = 4;
      bench.repository.writeTargets();
      for (const last of ['4.snapshot.json', '4.snapshot.json']) {
        assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
        assert.deepEqual(bench.refusal?.facts, {
          ...{ role: 'targets', expected: 3, actual: 2 },
          url: 'memory:metadata/4.snapshot.json',
        });
        assert.equal(bench.asked().at(-1), last);
        assert.deepEqual(bench.stored(), { root: 1, snapshot: 3, targets: 3, timestamp: 4 });
        // The snapshot at hand no longer is the one the timestamp names; it still is what this one is held against.
        bench.restart();
      }
    });

    it('of a delegated role is refused at the snapshot, and so is its removal', async () => {
      const changes: ((meta: Loose) => void)[] = [
        (meta) => (meta['team.json'].version = 4),
        (meta) => delete meta['team.json'],
      ];
      for (const change of changes) {
        using bench = trustBench();
        bench.repository.pinned = pinned;
        bench.repository.delegate('targets', { name: 'team', paths: ['team/*'] }).signed.version = 5;
        bench.repository.publish();
        await bench.refresh();
        change(bench.repository.snapshot.meta);
        bench.repository.bumpSnapshot();
        assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
        assert.equal(bench.refusal?.facts['role'], 'team');
        assert.equal(bench.stored()['snapshot'], 2);
      }
    });
  });
}

describe('fast-forward: a version far ahead, signed with a stolen key', () => {
  it('of the timestamp is forgotten with its key', async () => {
    using bench = await benchAt(2, false);
    const { repository } = bench;
    repository.timestamp.version = 9_007_199_254_740_991;
    repository.writeTimestamp();
    assert.equal(await bench.refresh(), 'trusted');
    repository.timestamp.version = 3;
    repository.writeTimestamp();
    assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
    repository.rotate('timestamp');
    repository.writeTimestamp();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.stored(), { root: 2, snapshot: 2, targets: 2, timestamp: 3 });
  });

  it('of the snapshot is forgotten with the keys of snapshot and timestamp', async () => {
    using bench = await benchAt(2, false);
    const { repository } = bench;
    repository.snapshot.version = 100;
    repository.timestamp.version = 100;
    repository.writeSnapshot();
    assert.equal(await bench.refresh(), 'trusted');
    repository.rotate('snapshot');
    repository.rotate('timestamp');
    repository.snapshot.version = 3;
    repository.timestamp.version = 3;
    repository.writeSnapshot();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.stored(), { root: 3, snapshot: 3, targets: 2, timestamp: 3 });
  });

  it('of the targets, and of an unused role, is forgotten with the key of the snapshot', async () => {
    using bench = await benchAt(2, false);
    const { repository } = bench;
    repository.delegate('targets', { name: 'unwanted', paths: ['unwanted/*'] });
    repository.targets.version = 100;
    repository.snapshot.version = 3;
    repository.timestamp.version = 3;
    repository.writeTargets();
    assert.equal(await bench.refresh(), 'trusted');
    repository.rotate('snapshot');
    repository.targets.version = 3;
    delete repository.targets.delegations;
    repository.delegated.clear();
    delete repository.snapshot.meta['unwanted.json'];
    repository.snapshot.version = 4;
    repository.timestamp.version = 4;
    repository.writeTargets();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.stored(), { root: 2, snapshot: 4, targets: 3, timestamp: 4 });
  });

  it('of the clock, by a timestamp signed in the future, is forgotten with its key', async () => {
    using bench = await benchAt(2, false);
    const { repository } = bench;
    repository.timestamp.writ.signedAt = isoTime(Date.UTC(2035, 1, 1));
    repository.timestamp.expires = isoTime(Date.UTC(2035, 1, 2));
    repository.bumpTimestamp();
    // The stolen key shows itself: by that time everything else has expired.
    assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
    repository.timestamp.writ.signedAt = isoTime(startMs);
    repository.timestamp.expires = isoTime(startMs + 1_000_000);
    repository.rotate('timestamp');
    repository.bumpTimestamp();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual((await bench.client.refresh()).warnings, []);
  });

  it('is not forgotten when another key is rotated, or root alone', async () => {
    for (const role of ['root', 'targets'] as const) {
      using bench = await benchAt(5, false);
      const { repository } = bench;
      repository.rotate(role);
      repository.timestamp.version = 4;
      repository.writeTargets();
      assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
      assert.equal(bench.refusal?.facts['role'], 'timestamp');
    }
  });
});
