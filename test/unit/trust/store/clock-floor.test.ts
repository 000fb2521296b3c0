// The clock floor: the latest time that the repository has signed. It survives restarts, is used for expiry, and is removed only
// when the key that signed it is removed.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { openRepositoryClient, type RepositoryClient } from '../../../../src/trust/repository-client.js';
import { openTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { isoTime, RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

const startMs = Date.UTC(2026, 10, 1);
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

interface Site extends Disposable {
  readonly repository: RepositorySimulator;
  readonly clock: FakeClock;
  readonly floorFile: string;
  /** A new process on this host. */
  boot(): RepositoryClient;
  /** The server re-signs its timestamp with this time. */
  signAt(atMs: number): void;
}

function site(): Site {
  const dir = tempDir();
  const repository = new RepositorySimulator({ nowMs: startMs });
  const clock = fakeClock({ nowMs: startMs });
  const bootstrapRoot = dir.join('root.json');
  writeFileSync(bootstrapRoot, repository.bootstrapRoot);
  return {
    repository,
    clock,
    floorFile: dir.join('trust/clock-floor'),
    boot: () => {
      const store = openTrustStore({ directory: dir.join('trust'), bootstrapRoot, fs: createDurableFs() });
      return openRepositoryClient({ source: repository.source(), store, clock });
    },
    signAt: (atMs) => {
      repository.timestamp.writ = { signedAt: isoTime(atMs) };
      repository.bumpTimestamp();
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

describe('the clock floor', () => {
  it('remains after a restart, and after a timestamp that was signed earlier than the one before', async () => {
    using it = site();
    it.signAt(startMs + hourMs);
    await it.boot().refresh();
    assert.equal(existsSync(it.floorFile), false);
    it.signAt(startMs);
    const client = it.boot();
    await client.refresh();
    for (const one of [client, it.boot()]) assert.equal(one.status()?.clockFloorMs, startMs + hourMs);
    it.signAt(startMs + 2 * hourMs);
    await it.boot().refresh();
    assert.equal(existsSync(it.floorFile), false);
    assert.equal(it.boot().status()?.clockFloorMs, startMs + 2 * hourMs);
  });

  it('is reported with the lag of the clock until the clock is correct', async () => {
    using it = site();
    it.signAt(startMs + 3 * hourMs);
    const client = it.boot();
    const [warning] = (await client.refresh()).warnings;
    assert.deepEqual([warning?.code, warning?.facts.behindMs], ['CLOCK_BEHIND', 3 * hourMs]);
    it.clock.setWallTime(startMs + 3 * hourMs - 59_000);
    assert.deepEqual((await client.refresh()).warnings, []);
  });

  it('is used for expiry, so that a clock set back does not make metadata fresh again', async () => {
    using it = site();
    it.repository.targets.expires = isoTime(startMs + 5 * dayMs);
    it.repository.publish();
    await it.boot().refresh();
    it.signAt(startMs + 6 * dayMs);
    it.clock.setWallTime(startMs);
    await rejectsCode('METADATA_EXPIRED', it.boot().refresh());
    await rejectsCode('METADATA_EXPIRED', it.boot().refresh());
  });

  it('far in the future is deleted with the key of the timestamp, also after a restart', async () => {
    using it = site();
    it.repository.timestamp.expires = isoTime(startMs + 400 * dayMs);
    it.signAt(startMs + 300 * dayMs);
    await it
      .boot()
      .refresh()
      .catch(() => undefined);
    it.signAt(startMs);
    await it
      .boot()
      .refresh()
      .catch(() => undefined);
    assert.equal(it.boot().status()?.clockFloorMs, startMs + 300 * dayMs);
    it.repository.rotate('timestamp');
    it.signAt(startMs + hourMs);
    await it.boot().refresh();
    assert.equal(it.boot().status()?.clockFloorMs, startMs + hourMs);
    assert.equal(existsSync(it.floorFile), false);
  });

  it('stays when another key is replaced', async () => {
    for (const role of ['snapshot', 'targets', 'root'] as const) {
      using it = site();
      it.signAt(startMs + 2 * hourMs);
      const client = it.boot();
      await client.refresh();
      it.repository.rotate(role);
      it.signAt(startMs);
      it.repository.publish();
      await client.refresh();
      for (const one of [client, it.boot()])
        assert.equal(one.status()?.clockFloorMs, startMs + 2 * hourMs, role);
    }
  });

  it('is replaced by the time of the timestamp when it is damaged', async () => {
    using it = site();
    it.signAt(startMs + hourMs);
    await it.boot().refresh();
    it.signAt(startMs);
    await it.boot().refresh();
    assert.equal(readFileSync(it.floorFile, 'utf8'), `${startMs + hourMs}\n`);
    for (const text of ['', '-1\n', '9e99\n', '99999999999999999999\n', 'soon\n']) {
      writeFileSync(it.floorFile, text);
      assert.equal(it.boot().status()?.clockFloorMs, startMs, JSON.stringify(text));
    }
  });
});
