// The ends of a unit as systemctl and journalctl report them one after the other. Both are stubs: scripts on a PATH of their own.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { unitEndsSince } from '../../../../src/workers/protocols/unit-ends.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { stubSystemctl } from '../../../kit/programs/stub-systemctl.js';

const failed = 'd9b373ed55a64feb8242e02dbe79a49c';
const succeeded = '7ad2d189f7e94e70a38c781354912448';

function startUnit(dir: ReturnType<typeof tempDir>) {
  const { programPath, unit } = stubSystemctl(dir.path);
  const clock = fakeClock({ mode: 'skip' });
  const journal = (entries: string): void =>
    writeFileSync(dir.join('journalctl'), `#!/bin/sh\n${entries}\n`, { mode: 0o755 });
  return {
    journal,
    clock,
    entry: (id: string, atMs: number): string =>
      `echo '${JSON.stringify({ __REALTIME_TIMESTAMP: `${atMs * 1000}`, MESSAGE_ID: id, INVOCATION_ID: 'aa11' })}'`,
    /** Another run of the unit, of a number of restarts by systemd. */
    runs: (invocation: string, restarts: number, restart = 'always'): void =>
      unit('app.service', { invocation, more: [`NRestarts=${restarts}`, `Restart=${restart}`] }),
    ends: async (mark?: string) => {
      const ends = await unitEndsSince('app.service', mark, { programPath, clock });
      assert.ok(ends);
      return ends;
    },
  };
}

describe('the ends of a unit', () => {
  it('include a failure that journald writes a moment after systemd answered', async () => {
    using dir = tempDir();
    const { journal, entry, runs, ends, clock } = startUnit(dir);
    runs('aa11', 0);
    const { mark } = await ends();
    runs('bb22', 1);
    const late = entry(failed, clock.nowMs() + 1);
    journal(`[ -e ${dir.join('asked')} ] && ${late}; touch ${dir.join('asked')}`);
    const { abnormal, clean, unrecorded } = await ends(mark);
    assert.deepEqual({ abnormal, clean, unrecorded }, { abnormal: 1, clean: 0, unrecorded: 0 });
    assert.deepEqual(clock.sleeps, [1000]);
  });

  it('are counted once when the entry of an end that the counters showed comes much later', async () => {
    using dir = tempDir();
    const { journal, entry, runs, ends, clock } = startUnit(dir);
    runs('aa11', 0, 'on-failure');
    const { mark } = await ends();
    const crash = entry(failed, clock.nowMs() + 1);
    runs('bb22', 1, 'on-failure');
    journal('exit 0');
    const byCounters = await ends(mark);
    assert.equal(byCounters.abnormal, 1);
    // A person restarts it.
    runs('cc33', 0, 'on-failure');
    journal(`${crash}; ${entry(succeeded, clock.nowMs() + 60_000)}`);
    const { abnormal, clean } = await ends(byCounters.mark);
    assert.deepEqual({ abnormal, clean }, { abnormal: 0, clean: 1 });
  });

  it('are those of the counters at once where no journal can be read', async () => {
    using dir = tempDir();
    const { journal, runs, ends, clock } = startUnit(dir);
    runs('aa11', 0, 'on-failure');
    const { mark } = await ends();
    runs('bb22', 2, 'on-failure');
    journal('exit 1');
    assert.equal((await ends(mark)).abnormal, 2);
    assert.deepEqual(clock.sleeps, []);
  });
});
