// Expired roles: the steps of a refresh that they stop, the steps that they do not stop, and the files that are stored.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dayMs, isoTime } from '../../../kit/repository/simulated-metadata.js';
import { firstVersions, startMs, trustBench } from '../../../kit/trust/trust-bench.js';

const yesterday = isoTime(startMs - dayMs);

describe('an expired file from the server', () => {
  const rows = [
    { role: 'root', last: '2.root.json', stored: { ...firstVersions, root: 2 } },
    { role: 'timestamp', last: 'timestamp.json?', stored: firstVersions },
    { role: 'snapshot', last: '2.snapshot.json', stored: { ...firstVersions, timestamp: 2 } },
    { role: 'targets', last: '2.targets.json', stored: { ...firstVersions, timestamp: 2, snapshot: 2 } },
  ];
  for (const { role, last, stored } of rows) {
    it(`stops the refresh at ${role}, which is ${role === 'root' ? '' : 'not '}kept`, async () => {
      using bench = trustBench();
      await bench.refresh();
      bench.asked();
      bench.repository.timestamp.writ.signedAt = isoTime(startMs - 2 * dayMs);
      bench.repository.signedOf(role).expires = yesterday;
      if (role === 'root') bench.repository.bumpRoot();
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
      const { facts } = bench.refusal ?? {};
      assert.deepEqual(
        { role: facts?.['role'], version: facts?.['version'], expires: facts?.['expires'] },
        { role, version: 2, expires: yesterday },
      );
      assert.equal(facts?.['expiredForMs'], dayMs);
      const asked = bench.asked();
      // The end of the chain of roots has to be asked for before the last one can be judged.
      assert.equal(role === 'root' ? asked[0] : asked.at(-1), last);
      assert.equal(role === 'root' && asked.includes('timestamp.json'), false);
      assert.deepEqual(bench.stored(), stored);
    });
  }

  it('has expired at the very second that it names, and not a second before', async () => {
    for (const [second, code] of [
      [0, 'METADATA_EXPIRED'],
      [1, 'trusted'],
    ] as const) {
      using bench = trustBench();
      bench.repository.timestamp.writ = { signedAt: isoTime(startMs - dayMs) };
      bench.repository.timestamp.expires = isoTime(startMs + second * 1000);
      bench.repository.writeTimestamp();
      assert.equal(await bench.refresh(), code);
    }
  });
});

describe('an expired file of our own', () => {
  it('does not prevent a newer root, whatever the roots in between contain', async () => {
    using bench = trustBench();
    const { repository, clock } = bench;
    repository.root.expires = isoTime(startMs + 7 * dayMs);
    repository.bumpRoot();
    await bench.refresh();
    repository.root.expires = yesterday;
    repository.bumpRoot();
    repository.root.expires = isoTime(startMs + 90 * dayMs);
    repository.bumpRoot();
    repository.moveTime(18 * dayMs);
    repository.publish();
    await clock.advance(18 * dayMs);
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(bench.stored()['root'], 4);
  });

  for (const role of ['timestamp', 'snapshot', 'targets']) {
    it(`does not keep a newer ${role} away`, async () => {
      using bench = trustBench();
      const { repository, clock } = bench;
      repository.signedOf(role).expires = isoTime(startMs + dayMs);
      repository.publish();
      await bench.refresh();
      await clock.advance(3 * dayMs);
      repository.signedOf(role).expires = isoTime(startMs + 9 * dayMs);
      if (role === 'timestamp') repository.bumpTimestamp();
      else repository.publish();
      for (const restarted of [false, true]) {
        if (restarted) bench.restart();
        assert.equal(await bench.refresh(), 'trusted');
      }
      assert.equal(bench.stored()[role], 3);
    });

    it(`stops a refresh that finds nothing newer than the ${role} at hand, and stays for a later one`, async () => {
      using bench = trustBench();
      const { repository, clock } = bench;
      repository.signedOf(role).expires = isoTime(startMs + dayMs);
      repository.publish();
      await bench.refresh();
      const before = bench.stored();
      await clock.advance(2 * dayMs);
      for (const restarted of [false, true]) {
        if (restarted) bench.restart();
        assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
        assert.equal(bench.refusal?.facts['role'], role);
      }
      assert.deepEqual(bench.stored(), before);
      assert.equal(bench.client.status()?.roles.targets?.version, 2);
    });
  }
});

describe('a clock that jumps', () => {
  it('forward: everything has expired, nothing is lost, and the next refresh after its return works', async () => {
    using bench = trustBench();
    await bench.refresh();
    bench.clock.setWallTime(Date.UTC(2036, 1, 1));
    assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
    bench.clock.setWallTime(startMs);
    assert.equal(await bench.refresh(), 'trusted');
    const { warnings } = await bench.client.refresh();
    // A local reading never becomes the floor, or one boot in 2036 would freeze the host for good.
    assert.deepEqual(warnings, []);
    assert.deepEqual(bench.stored(), firstVersions);
  });

  it('back: what has expired by the newest signed time stays expired, and the clock is reported', async () => {
    using bench = trustBench();
    const { repository, clock } = bench;
    await bench.refresh();
    const old = repository.file('timestamp.json');
    repository.moveTime(10 * dayMs);
    repository.publish();
    await clock.advance(10 * dayMs);
    assert.equal(await bench.refresh(), 'trusted');
    clock.setWallTime(startMs);
    const { warnings } = await bench.client.refresh();
    assert.deepEqual(
      warnings.map(({ code, facts }) => [code, facts.behindMs]),
      [['CLOCK_BEHIND', 10 * dayMs]],
    );
    // The floor is in the timestamp of the store, and so outlives the process.
    bench.restart();
    assert.equal((await bench.client.refresh()).warnings.length, 1);
    repository.snapshot.expires = isoTime(startMs + 5 * dayMs);
    repository.bumpSnapshot();
    assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
    assert.equal(bench.refusal?.facts['role'], 'snapshot');
    repository.serve('timestamp.json', old);
    assert.equal(await bench.refresh(), 'METADATA_ROLLBACK');
  });

  it('before 1970 or to the year 9999: is refused or accepted, never a crash', async () => {
    using bench = trustBench();
    bench.clock.setWallTime(-1);
    assert.equal(await bench.refresh(), 'trusted');
    bench.clock.setWallTime(Date.UTC(9999, 11, 31));
    assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
  });
});
