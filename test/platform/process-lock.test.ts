// One process a lock: who holds it is said, a death frees it, waiting is bounded. Holders are real processes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { after, describe, it } from 'node:test';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { type LockOptions, takeLock } from '../../src/platform/process-lock.js';
import { rejectsCode } from '../support/assert-code.js';
import { type RunningScript, startScript } from '../support/child-script.js';
import { fakeClock } from '../support/fake-clock.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

function options(path: string, overrides: Partial<LockOptions> = {}): LockOptions {
  return {
    path,
    holder: 'pull',
    waitMs: 0,
    clock: fakeClock({ mode: 'skip' }),
    durable: createDurableFs(),
    code: 'LOCK_HELD',
    ...overrides,
  };
}

/** Also after a test that failed: a child left behind would keep this file from its end. */
const started: RunningScript[] = [];
after(() => {
  for (const { child } of started) child.kill('SIGKILL');
});

/** Another process that takes the lock as `agent`, prints a line, and stays. */
async function startHolder(path: string): Promise<RunningScript> {
  const holder = startScript(`
    const { takeLock } = await import(at('src/platform/process-lock.js'));
    const { systemClock } = await import(at('src/platform/clock.js'));
    const { createDurableFs } = await import(at('src/platform/durable-fs.js'));
    const durable = createDurableFs();
    await takeLock({ durable, path: ${JSON.stringify(path)}, holder: 'agent', waitMs: 0, clock: systemClock, code: 'LOCK_HELD' });
    console.log('held');
    setInterval(() => undefined, 1000);`);
  started.push(holder);
  assert.equal(await holder.firstLine, 'held');
  return holder;
}

async function kill(holder: RunningScript): Promise<void> {
  const closed = new Promise((resolve) => holder.child.once('close', resolve));
  holder.child.kill('SIGKILL');
  await closed;
}

describe('takeLock', () => {
  it('makes a private file that says who holds it', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock')));
    assert.match(
      fs.readFileSync(dir.join('lock'), 'utf8'),
      new RegExp(`^pull \\(pid ${process.pid}, started [0-9]+\\) since 2026-11-01T00:00:00.000Z\n$`),
    );
    assert.equal(fs.statSync(dir.join('lock')).mode & 0o777, 0o600);
    lock.release();
  });

  it('tells the second who is first', async () => {
    using dir = tempDir();
    const holder = await startHolder(dir.join('lock'));
    const error = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
    await kill(holder);
    assert.equal(error.facts['holder'], `agent (pid ${holder.pid})`);
    assert.equal(error.kind, 'blocked');
  });

  it('says what it does, since when, and that it lives', async () => {
    using dir = tempDir();
    const before = Date.now();
    const holder = await startHolder(dir.join('lock'));
    const { facts } = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
    await kill(holder);
    const { what, pid, alive, sinceMs, command } = facts;
    assert.deepEqual([what, pid, alive, command], ['agent', holder.pid, 'yes', 'node']);
    assert.ok(Number(sinceMs) >= before && Number(sinceMs) <= Date.now());
  });

  it('says so with the code of its caller', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock')));
    const code = 'REPOSITORY_LOCKED';
    await rejectsCode(code, takeLock(options(dir.join('lock'), { code })));
    lock.release();
  });

  it('holds within one process too, and is free after release', async () => {
    using dir = tempDir();
    const first = await takeLock(options(dir.join('lock')));
    await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
    first.release();
    const second = await takeLock(options(dir.join('lock'), { holder: 'second' }));
    assert.match(fs.readFileSync(dir.join('lock'), 'utf8'), /^second /);
    second.release();
  });

  it('is freed by the kernel when its holder is killed', async () => {
    using dir = tempDir();
    await kill(await startHolder(dir.join('lock')));
    const lock = await takeLock(options(dir.join('lock')));
    lock.release();
    assert.ok(fs.existsSync(dir.join('lock')), 'the file is never unlinked');
  });

  it('can be released twice without closing the file of somebody else', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock')));
    lock.release();
    const reused = fs.openSync(dir.join('other'), 'w');
    lock.release();
    fs.writeSync(reused, 'still open');
    fs.closeSync(reused);
  });

  it('tries again until its time is over', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock')));
    const clock = fakeClock({ mode: 'skip' });
    await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'), { waitMs: 1000, clock })));
    lock.release();
    assert.deepEqual(clock.sleeps, [200, 200, 200, 200, 200]);
  });

  it('gets the lock that is freed while it waits', async () => {
    using dir = tempDir();
    const first = await takeLock(options(dir.join('lock')));
    const clock = fakeClock({ mode: 'skip' });
    const sleep = clock.sleep.bind(clock);
    clock.sleep = (delayMs, signal) => {
      first.release();
      return sleep(delayMs, signal);
    };
    const second = await takeLock(options(dir.join('lock'), { waitMs: 10_000, clock }));
    assert.equal(clock.sleeps.length, 1);
    second.release();
  });

  it('gets the lock that is freed while it looks for who has it', async () => {
    using dir = tempDir();
    const first = await takeLock(options(dir.join('lock')));
    // A living process that wrote the note would be named for it.
    fs.truncateSync(dir.join('lock'));
    const clock = fakeClock({ mode: 'skip' });
    let looks = 0;
    clock.monotonicMs = () => {
      looks += 1;
      // The second look at the clock comes right behind the try that failed.
      if (looks === 2) first.release();
      return 0;
    };
    (await takeLock(options(dir.join('lock'), { clock }))).release();
  });

  it('takes no lock that is held by whom it cannot see', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('lock'), '');
    // By its other name the holder is not found; the lock is the same.
    fs.linkSync(dir.join('lock'), dir.join('hidden'));
    await heldBySleep(dir.join('hidden'), async () => {
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
      assert.notEqual(facts['alive'], 'yes');
    });
  });

  it('stops waiting at an abort', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock')));
    const signal = AbortSignal.abort();
    const clock = fakeClock({ mode: 'skip' });
    await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'), { waitMs: 60_000, clock, signal })));
    lock.release();
    assert.deepEqual(clock.sleeps, []);
  });

  it('does not follow a link to a file that it would empty', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('lock'));
    await rejectsCode('DISK_FAILED', takeLock(options(dir.join('lock'))));
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
  });

  it('says what the system says about the file', async () => {
    using dir = tempDir();
    const error = await rejectsCode('DISK_FAILED', takeLock(options(dir.join('no', 'lock'))));
    assert.equal(error.facts['errno'], 'ENOENT');
  });
});

/** Runs act while a `sleep` holds the lock that it inherited from the shell that took it, and left no note. */
async function heldBySleep(path: string, act: (pid: number) => Promise<void>): Promise<void> {
  const descriptor = fs.openSync(path, 'r+');
  const child = spawn('sh', ['-c', 'flock -n 3 && exec sleep 60'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  });
  fs.closeSync(descriptor);
  const closed = new Promise((resolve) => child.once('close', resolve));
  try {
    await until(() => fs.readFileSync(`/proc/${child.pid}/comm`, 'utf8') === 'sleep\n');
    await act(child.pid ?? 0);
  } finally {
    child.kill('SIGKILL');
    await closed;
  }
}

describe('a note that misleads', () => {
  it('of a dead process is not repeated: who inherited the lock is named', async () => {
    using dir = tempDir();
    await kill(await startHolder(dir.join('lock')));
    assert.match(fs.readFileSync(dir.join('lock'), 'utf8'), /^agent /);
    await heldBySleep(dir.join('lock'), async (pid) => {
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
      assert.equal(facts['holder'], `sleep (pid ${pid})`);
      assert.deepEqual([facts['what'], facts['sinceMs'], facts['alive']], [undefined, undefined, 'yes']);
    });
  });

  it('that was half written, emptied or made huge names who is really there', async () => {
    using dir = tempDir();
    const holder = await startHolder(dir.join('lock'));
    const whole = fs.readFileSync(dir.join('lock'), 'utf8');
    for (const text of [
      '',
      whole.slice(0, 20),
      whole.replace(/started [0-9]+/, 'started 1'),
      'x'.repeat(100_000),
    ]) {
      fs.writeFileSync(dir.join('lock'), text);
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
      assert.deepEqual(
        [facts['holder'], facts['what']],
        [`node (pid ${holder.pid})`, undefined],
        text.slice(0, 30),
      );
    }
    await kill(holder);
  });

  it('keeps nobody from a lock that is free', async () => {
    using dir = tempDir();
    fs.writeFileSync(
      dir.join('lock'),
      `agent (pid ${process.pid}, started 1) since 2026-11-01T00:00:00.000Z\n`,
    );
    (await takeLock(options(dir.join('lock')))).release();
  });
});

describe('a child of a holder', () => {
  it('that makes itself a daemon does not keep the lock when the holder dies', async () => {
    using dir = tempDir();
    const holder = startScript(`
      const { takeLock } = await import(at('src/platform/process-lock.js'));
      const { systemClock } = await import(at('src/platform/clock.js'));
      const { createDurableFs } = await import(at('src/platform/durable-fs.js'));
      const { runCommand } = await import(at('src/platform/run-command.js'));
      await takeLock({ durable: createDurableFs(), path: ${JSON.stringify(dir.join('lock'))}, holder: 'agent', waitMs: 0,
        clock: systemClock, code: 'LOCK_HELD' });
      const script = 'setsid sleep 60 </dev/null >/dev/null 2>&1 & sleep 0.3; echo $!';
      const { stdout } = await runCommand({ argv: ['sh', '-c', script], timeoutMs: 10000, maxOutputBytes: 1000 });
      console.log(stdout);
      setInterval(() => undefined, 1000);`);
    const daemon = Number(await holder.firstLine);
    assert.ok(daemon > 1);
    await kill(holder);
    try {
      assert.match(fs.readFileSync(`/proc/${daemon}/comm`, 'utf8'), /^sleep/);
      (await takeLock(options(dir.join('lock')))).release();
    } finally {
      process.kill(daemon, 'SIGKILL');
    }
  });
});

describe('a disk that fails', () => {
  const failing = (op: string, code: string): Partial<LockOptions> => ({
    durable: createDurableFs({
      before: (operation) => {
        if (operation.op === op) throw Object.assign(new Error('no'), { code });
      },
    }),
  });

  it('without room for the note takes the lock all the same, and its holder is named', async () => {
    using dir = tempDir();
    const lock = await takeLock(options(dir.join('lock'), failing('lock.holder', 'ENOSPC')));
    const { facts } = await rejectsCode('LOCK_HELD', takeLock(options(dir.join('lock'))));
    assert.equal(facts['holder'], `node (pid ${process.pid})`);
    lock.release();
  });

  it('that cannot be written, or has no room for the file, is said', async () => {
    using dir = tempDir();
    const readOnly = options(dir.join('lock'), failing('lock.open', 'EROFS'));
    await rejectsCode('DISK_READ_ONLY', takeLock(readOnly));
    await rejectsCode('DISK_FULL', takeLock(options(dir.join('lock'), failing('lock.open', 'ENOSPC'))));
  });
});
