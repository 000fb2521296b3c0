// The worker of a probe is stopped by a person (SIGSTOP, a debugger), and the probe has a timeout of its own: it exits as for a
// wrong answer, in an activation, in a restore and in a bake time. The process is a real one.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readActive } from '../../../src/agent/generations/generations.js';
import { repeatAndNoteProbe } from '../../../src/agent/notify/repeat-probe.js';
import { notified } from '../../../src/workers/contract/answer.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';

const second = 1000;
type Signal = 'SIGSTOP' | 'SIGCONT';

interface Scene extends Disposable {
  readonly host: BakingHost;
  readonly send: (signal: Signal) => void;
  /** Sets the shell command of the probe, which gets the process in $pid and the policy in $policy. */
  readonly setProbe: (command: string) => void;
}

/** Succeeds while the process runs, like a client with a timeout. */
const isRunningCommand = 'test "$(cut -d" " -f3 /proc/$pid/stat)" = S';

/** Release 1 has settled. */
async function onOne(retry?: number): Promise<Scene> {
  const dir = tempDir();
  const worker: ChildProcess = spawn('sleep', ['600'], { stdio: 'ignore' });
  const setProbe = (command: string): void =>
    writeFileSync(dir.join('probe.sh'), `pid=${worker.pid} policy=$1\n${command}\n`);
  setProbe('exit 0');
  const driver = Object.assign(supervisedDriver(['a']), {
    pid: async () => worker.pid,
    liveness: async () => 'alive' as const,
  });
  driver.workers.set('a', () => notified('has the signal'));
  const run = ['sh', dir.join('probe.sh'), '{current}'] as const;
  const probe = {
    run,
    timeoutMs: 10 * second,
    sandbox: 'off' as const,
    ...(retry === undefined ? {} : { retry }),
  };
  const host = bakingHost(driver, { groups: { app: { config: { probe } } } });
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  const end = (): void => {
    worker.kill('SIGKILL');
    host[Symbol.dispose]();
    dir[Symbol.dispose]();
  };
  return { host, send: (signal) => worker.kill(signal), setProbe, [Symbol.dispose]: end };
}

async function askForEightMinutes(host: BakingHost): Promise<void> {
  const { test } = host;
  const [group] = test.host.groups;
  const { signal } = new AbortController();
  for (let asked = 0; asked < 8; asked += 1) {
    const active = readActive(test.host.paths);
    assert.ok(group !== undefined && active !== undefined);
    const target = { generation: active.number, path: active.path };
    await repeatAndNoteProbe(test.host, group, { target, staging: test.directory, signal });
    await host.pass(60 * second);
  }
}

describe('a release that is activated while its worker is stopped', () => {
  for (const retry of [undefined, 0]) {
    it(`stays active and unconfirmed, with retry: ${retry}, and is confirmed after the worker continues`, async () => {
      using scene = await onOne(retry);
      const { host, send, setProbe } = scene;
      setProbe(isRunningCommand);
      send('SIGSTOP');
      const beganMs = host.test.clock.nowMs();
      const { outcome, confirmed, problems } = await host.take(2);
      assert.deepEqual([outcome, confirmed, host.active()], ['degraded', false, '2']);
      assert.deepEqual(
        problems.map((one) => one.code),
        ['WORKER_UNREACHABLE'],
      );
      assert.match(problems[0]?.message ?? '', /stopped/);
      assert.ok(
        host.test.clock.nowMs() - beganMs < 10 * second,
        'the move does not wait for the deadline of the probe',
      );
      send('SIGCONT');
      await host.test.pull();
      assert.equal(host.test.host.ledger.read().workers['app/a']?.state, 'confirmed');
    });
  }

  it('is refused when the worker runs and the answer is wrong', longCase, async () => {
    using scene = await onOne(0);
    scene.setProbe('test "$(cat "$policy/access/f")" = 1');
    const { outcome, problems } = await scene.host.take(2);
    assert.deepEqual([outcome, problems[0]?.code], ['rolled-back', 'PROBE_FAILED']);
  });
});

describe('a restore while a worker is stopped', () => {
  it('activates the release before, and does not block the host', async () => {
    using scene = await onOne(0);
    // The worker runs while release 2 is refused; a person stops it before the probe of the restore.
    // The kernel stops a process a moment after `kill` has ended.
    const stop = 'kill -STOP $pid; until grep -q "^State:.T" "/proc/$pid/status"; do :; done';
    scene.setProbe(`test "$(cat "$policy/access/f")" = 1 && { ${stop}; }\nexit 1`);
    const { outcome, problems } = await scene.host.take(2);
    assert.deepEqual([outcome, problems[0]?.code, scene.host.active()], ['rolled-back', 'PROBE_FAILED', '1']);
    assert.equal(scene.host.test.host.ledger.read().blocked, undefined);
  });
});

describe('a release in its bake time with a stopped worker', () => {
  it('is rolled back by the same answers when the worker runs', longCase, async () => {
    using scene = await onOne();
    const { host, setProbe } = scene;
    await host.take(2);
    setProbe('exit 1');
    await askForEightMinutes(host);
    assert.equal(host.active(), '1');
  });

  it('is not rolled back by wrong answers of its probe', async () => {
    using scene = await onOne();
    const { host, send, setProbe } = scene;
    setProbe(isRunningCommand);
    await host.take(2);
    send('SIGSTOP');
    await askForEightMinutes(host);
    assert.deepEqual([host.active(), host.restores.length], ['2', 0]);
  });
});
