// A lock under faults: a wrong note, a child that inherits the lock, a failing disk, and a machine without free processes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { after, describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type LockOptions, takeLock } from '../../../../src/platform/disk/process-lock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runNodeScript, startScript } from '../../../kit/cli/child-script.js';
import { heldBySleep, killHolder, lockHolders, lockOptions } from '../../../kit/disk/lock-holders.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const holders = lockHolders();

describe('a note that misleads', () => {
  after(holders.endAll);

  it('of a dead process is ignored, and the process that inherited the lock is named', longCase, async () => {
    using dir = tempDir();
    await killHolder(await holders.start(dir.join('lock')));
    assert.match(fs.readFileSync(dir.join('lock'), 'utf8'), /^agent /);
    await heldBySleep(dir.join('lock'), async (pid) => {
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
      assert.equal(facts['holder'], `sleep (pid ${pid})`);
      assert.deepEqual([facts['what'], facts['sinceMs'], facts['alive']], [undefined, undefined, 'yes']);
    });
  });

  it('that is incomplete, empty or too long is ignored, and the holder is named', longCase, async () => {
    using dir = tempDir();
    const holder = await holders.start(dir.join('lock'));
    const whole = fs.readFileSync(dir.join('lock'), 'utf8');
    for (const text of [
      '',
      whole.slice(0, 20),
      whole.replace(/started [0-9]+/, 'started 1'),
      'x'.repeat(100_000),
    ]) {
      fs.writeFileSync(dir.join('lock'), text);
      const { facts } = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
      assert.deepEqual(
        [facts['holder'], facts['what']],
        [`node (pid ${holder.pid})`, undefined],
        text.slice(0, 30),
      );
    }
    await killHolder(holder);
  });

  it('does not block a free lock', async () => {
    using dir = tempDir();
    fs.writeFileSync(
      dir.join('lock'),
      `agent (pid ${process.pid}, started 1) since 2026-11-01T00:00:00.000Z\n`,
    );
    (await takeLock(lockOptions(dir.join('lock')))).release();
  });
});

describe('a child of a holder', longCase, () => {
  it('that becomes a daemon does not keep the lock when the holder dies', async () => {
    using dir = tempDir();
    const holder = startScript(`
      const { takeLock } = await import(at('src/platform/disk/process-lock.js'));
      const { systemClock } = await import(at('src/platform/time/clock.js'));
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      const { runCommand } = await import(at('src/platform/process/run-command.js'));
      await takeLock({ durable: createDurableFs(), path: ${JSON.stringify(dir.join('lock'))}, holder: 'agent', waitMs: 0,
        clock: systemClock, code: 'LOCK_HELD' });
      const script = 'setsid sleep 60 </dev/null >/dev/null 2>&1 & sleep 0.3; echo $!';
      const { stdout } = await runCommand({ argv: ['sh', '-c', script], timeoutMs: 60_000, maxOutputBytes: 1000 });
      console.log(stdout);
      setInterval(() => undefined, 1000);`);
    const daemon = Number(await holder.firstLine);
    assert.ok(daemon > 1);
    await killHolder(holder);
    try {
      assert.match(fs.readFileSync(`/proc/${daemon}/comm`, 'utf8'), /^sleep/);
      (await takeLock(lockOptions(dir.join('lock')))).release();
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

  it('that is too full for the note does not prevent the lock, and the holder is named', async () => {
    using dir = tempDir();
    const lock = await takeLock(lockOptions(dir.join('lock'), failing('lock.holder', 'ENOSPC')));
    const { facts } = await rejectsCode('LOCK_HELD', takeLock(lockOptions(dir.join('lock'))));
    assert.equal(facts['holder'], `node (pid ${process.pid})`);
    lock.release();
  });

  it('that is read-only or full makes takeLock throw a DISK_* error', async () => {
    using dir = tempDir();
    const readOnly = lockOptions(dir.join('lock'), failing('lock.open', 'EROFS'));
    await rejectsCode('DISK_READ_ONLY', takeLock(readOnly));
    await rejectsCode('DISK_FULL', takeLock(lockOptions(dir.join('lock'), failing('lock.open', 'ENOSPC'))));
  });
});

describe('a machine without a process left', () => {
  const asRoot =
    process.getuid?.() === 0 ? {} : { skip: 'only root can change to a user without free processes' };

  it('makes takeLock throw LOCK_UNTRIED, and not an error of a missing program', asRoot, async () => {
    using dir = tempDir();
    fs.chmodSync(dir.path, 0o777);
    // The threads of Node count too: start them before the limit is set.
    const script = `
      const { execFileSync } = await import('node:child_process');
      const { stat } = await import('node:fs/promises');
      const { takeLock } = await import(at('src/platform/disk/process-lock.js'));
      const { systemClock } = await import(at('src/platform/time/clock.js'));
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      await Promise.all(Array.from({ length: 8 }, () => stat('/')));
      execFileSync('prlimit', ['--pid', String(process.pid), '--nproc=1:1']);
      process.setgid(54321);
      process.setuid(54321);
      await takeLock({ durable: createDurableFs(), path: ${JSON.stringify(dir.join('lock'))}, holder: 'pull', waitMs: 0,
        clock: systemClock, code: 'LOCK_HELD' }).catch(({ code, kind, message }) => console.log(JSON.stringify([code, kind, message])));`;
    const run = await runNodeScript(script);
    assert.equal(run.kind, 'exited', JSON.stringify(run));
    const [code, kind, message] = JSON.parse(run.kind === 'exited' ? run.stdout : '[]') as string[];
    assert.deepEqual([code, kind], ['LOCK_UNTRIED', 'busy']);
    assert.match(message ?? '', /EAGAIN/);
  });
});
