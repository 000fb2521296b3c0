// One process per lock: the error names the holder, the end of the holder releases the lock, the wait is bounded. The holders are
// real processes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { after, describe, it } from 'node:test';
import { type LockOptions, takeLock } from '../../../../src/platform/disk/process-lock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { heldBySleep, killHolder, lockHolders, lockOptions } from '../../../kit/disk/lock-holders.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const holders = lockHolders();

describe('takeLock', () => {
  after(holders.endAll);

  it('creates a private file with a note of the holder', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock')));
    assert.match(
      fs.readFileSync(dir.join('lock'), 'utf8'),
      new RegExp(`^pull \\(pid ${process.pid}, started [0-9]+\\) since 2026-11-01T00:00:00.000Z\n$`),
    );
    assert.equal(fs.statSync(dir.join('lock')).mode & 0o777, 0o600);
    lock.release();
  });

  it('names the holder in the error of a second process', async () => {
    using dir = tempDir();
    const holder = await holders.start(dir.join('lock'));
    const error = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
    await killHolder(holder);
    assert.equal(error.facts['holder'], `agent (pid ${holder.pid})`);
    assert.equal(error.kind, 'busy');
  });

  it('reports the work of the holder, its start, and that it runs', longCase, async () => {
    using dir = tempDir();
    const before = Date.now();
    const holder = await holders.start(dir.join('lock'));
    const { facts } = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
    await killHolder(holder);
    const { what, pid, alive, sinceMs, command } = facts;
    assert.deepEqual([what, pid, alive, command], ['agent', holder.pid, 'yes', 'node']);
    assert.ok(Number(sinceMs) >= before && Number(sinceMs) <= Date.now());
  });

  it('throws the error code of its caller', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock')));
    const code = 'REPOSITORY_LOCKED';
    await rejectsCode(code, takeLock(lockOptions(dir.join('lock'), { code })));
    lock.release();
  });

  it('excludes a second call of the same process until release', async () => {
    using dir = tempDir();
    const first = await takeLock(lockOptions(dir.join('lock')));
    await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
    first.release();
    const second = await takeLock(lockOptions(dir.join('lock'), { holder: 'second' }));
    assert.match(fs.readFileSync(dir.join('lock'), 'utf8'), /^second /);
    second.release();
  });

  it('is freed by the kernel when its holder is killed', async () => {
    using dir = tempDir();
    await killHolder(await holders.start(dir.join('lock')));
    const lock = await takeLock(lockOptions(dir.join('lock')));
    lock.release();
    assert.ok(fs.existsSync(dir.join('lock')), 'the file is never unlinked');
  });

  it('can be released twice without closing another file', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock')));
    lock.release();
    const reused = fs.openSync(dir.join('other'), 'w');
    lock.release();
    fs.writeSync(reused, 'still open');
    fs.closeSync(reused);
  });

  it('tries again until the end of waitMs', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock')));
    const clock = fakeClock({ mode: 'skip' });
    const waited: unknown[] = [];
    const onWait: LockOptions['onWait'] = ({ what, pid }) => waited.push([what, pid]);
    await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'), { waitMs: 1000, clock, onWait })));
    lock.release();
    assert.deepEqual(waited, [[lockOptions('').holder, process.pid]], 'said once');
    assert.deepEqual(clock.sleeps, [200, 200, 200, 200, 200]);
  });

  it('takes a lock that is released during the wait', async () => {
    using dir = tempDir();
    const first = await takeLock(lockOptions(dir.join('lock')));
    const clock = fakeClock({ mode: 'skip' });
    const sleep = clock.sleep.bind(clock);
    clock.sleep = (delayMs, signal) => {
      first.release();
      return sleep(delayMs, signal);
    };
    const second = await takeLock(lockOptions(dir.join('lock'), { waitMs: 10_000, clock }));
    assert.equal(clock.sleeps.length, 1);
    second.release();
  });

  it('takes a lock that is released during the search for its holder', async () => {
    using dir = tempDir();
    const first = await takeLock(lockOptions(dir.join('lock')));
    // Without a note, because a running writer would be reported as the holder.
    fs.truncateSync(dir.join('lock'));
    const clock = fakeClock({ mode: 'skip' });
    let reads = 0;
    clock.monotonicMs = () => {
      reads += 1;
      // The clock is read for the second time right after the attempt that failed.
      if (reads === 2) first.release();
      return 0;
    };
    (await takeLock(lockOptions(dir.join('lock'), { clock }))).release();
  });

  it('does not take a lock of a holder that is not visible', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('lock'), '');
    // The holder opened the same file by another name, so the search does not find it.
    fs.linkSync(dir.join('lock'), dir.join('hidden'));
    await heldBySleep(dir.join('hidden'), async () => {
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
      assert.notEqual(facts['alive'], 'yes');
    });
  });

  it('stops waiting at an abort', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock')));
    const signal = AbortSignal.abort();
    const clock = fakeClock({ mode: 'skip' });
    await rejectsCode(
      'LOCK_HELD',
      takeLock(lockOptions(dir.join('lock'), { waitMs: 60_000, clock, signal })),
    );
    lock.release();
    assert.deepEqual(clock.sleeps, []);
  });

  it('does not follow a link to a file that it would empty', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('lock'));
    await rejectsCode('DISK_FAILED', takeLock(lockOptions(dir.join('lock'))));
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
  });

  it('reports the error of the system for the lock file', async () => {
    using dir = tempDir();
    const error = await rejectsCode('DISK_FAILED', takeLock(lockOptions(dir.join('no', 'lock'))));
    assert.equal(error.facts['errno'], 'ENOENT');
  });
});
