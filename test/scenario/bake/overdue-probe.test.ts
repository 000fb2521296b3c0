// A release has passed its probe, and the probe times out later within its bake time: the worker uses a complete processor, is
// stopped by a person, or is dead.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { keepActive } from '../../../src/agent/bake/keep-release.js';
import { readActive } from '../../../src/agent/generations/generations.js';
import { openStagingArea } from '../../../src/agent/job/staging-area.js';
import {
  noteProbeAnswers,
  type ProbeAnswer,
  runRepeatedProbe,
} from '../../../src/agent/notify/repeat-probe.js';
import type { HookVerdict } from '../../../src/core/cycle/hook-verdict.js';
import { settleInTurn } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import type { TestHostOptions } from '../../kit/host/test-host.js';

const second = 1000;
const right: HookVerdict = { kind: 'ok', reason: 'exit 0' };
const timedOut: HookVerdict = { kind: 'broken', reason: 'timed out', isTimedOut: true };

interface Scene extends Disposable {
  readonly host: BakingHost;
  readonly worker: ChildProcess;
  /** Sets the shell command of the probe. */
  readonly setProbe: (command: string) => void;
  /** Runs the probe once. @returns its answer, which had no effect */
  readonly ask: () => Promise<ProbeAnswer | undefined>;
  /** Records such answers, 60 s apart, and observes the bake times after each. */
  readonly answerProbe: (times: number, verdict: HookVerdict, isOverdue: boolean) => Promise<void>;
}

/** Release 1 has settled, and release 2 has passed its probe. */
async function onTwo(timeoutMs = second, more: Pick<TestHostOptions, 'observer'> = {}): Promise<Scene> {
  const dir = tempDir();
  const setProbe = (command: string): void => fs.writeFileSync(dir.join('probe.sh'), command);
  setProbe('exit 0');
  const worker = spawn('sleep', ['600'], { stdio: 'ignore' });
  const driver = Object.assign(supervisedDriver(['a']), { pid: async () => worker.pid });
  const probe = { run: ['sh', dir.join('probe.sh')] as const, timeoutMs, sandbox: 'off' } as const;
  const host = bakingHost(driver, { groups: { app: { config: { probe } } }, ...more });
  const { test } = host;
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  assert.equal((await host.take(2)).outcome, 'activated');
  const [group] = test.host.groups;
  assert.ok(group);
  const ask = async (): Promise<ProbeAnswer | undefined> => {
    const active = readActive(test.host.paths);
    assert.ok(active);
    const area = openStagingArea(test.host.paths, test.host.durable, 'c-probe');
    const target = { generation: active.number, path: active.path };
    const { signal } = new AbortController();
    const [answer] = await runRepeatedProbe(test.host, group, { target, staging: area.path(), signal });
    area.remove(test.host.log);
    return answer;
  };
  const answerProbe = async (times: number, verdict: HookVerdict, isOverdue: boolean): Promise<void> => {
    for (let at = 0; at < times; at += 1) {
      await test.clock.advance(58 * second);
      const about = new Map(Object.entries(test.host.ledger.read().workers));
      noteProbeAnswers(test.host, group, [
        { about, report: { verdict, text: '', durationMs: 0 }, isOverdue },
      ]);
      await host.pass(2 * second);
    }
  };
  const end = (): void => {
    worker.kill('SIGKILL');
    host[Symbol.dispose]();
    dir[Symbol.dispose]();
  };
  return { host, worker, setProbe, ask, answerProbe, [Symbol.dispose]: end };
}

describe('a probe that times out', () => {
  it('is overdue within a bake time when its process runs', async () => {
    using scene = await onTwo();
    scene.setProbe('sleep 30');
    assert.equal((await scene.ask())?.isOverdue, true);
    scene.worker.kill('SIGSTOP');
    assert.equal((await scene.ask())?.isOverdue, false, 'a person has stopped it');
    scene.worker.kill('SIGKILL');
    await once(scene.worker, 'exit');
    assert.equal((await scene.ask())?.isOverdue, false, 'it is dead');
  });

  it('is not overdue when it answers "not now"', longCase, async () => {
    using scene = await onTwo(60 * second);
    scene.setProbe('exit 75');
    assert.equal((await scene.ask())?.isOverdue, false);
  });

  it('is only a finding after the bake time', longCase, async () => {
    using scene = await onTwo();
    await scene.host.pass(bakeMs + 4 * second);
    scene.setProbe('sleep 30');
    assert.equal((await scene.ask())?.isOverdue, false);
  });
});

describe('a release with a silent probe', longCase, () => {
  it('settles unobserved, because silence is neither a failure nor a confirmation', async () => {
    using scene = await onTwo();
    const settled = () => scene.host.test.host.ledger.read().settledReleases?.['access']?.[0];
    await scene.answerProbe(bakeMs / (60 * second) + 2, timedOut, false);
    assert.equal(settled()?.serial, 1, 'its bake time is over');
    await scene.answerProbe(2 * (bakeMs / (60 * second)), timedOut, false);
    assert.deepEqual([settled()?.serial, settled()?.isObserved, scene.host.active()], [2, false, '2']);
  });

  it('settles observed when the probe passes for the bake time', async () => {
    using scene = await onTwo();
    await scene.answerProbe(3, timedOut, false);
    await scene.answerProbe(bakeMs / (60 * second) + 1, right, false);
    const settled = scene.host.test.host.ledger.read().settledReleases?.['access']?.[0];
    assert.deepEqual([settled?.serial, settled?.isObserved], [2, true]);
  });
});

describe('a probe on a full disk', () => {
  it('causes a rollback, although the disk could not store its wrong answers', async () => {
    let isFull = false;
    const before = (): void => {
      if (isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    using scene = await onTwo(second, { observer: { before, after: () => undefined } });
    isFull = true;
    const { ledger } = scene.host.test.host;
    await scene.answerProbe(6, { kind: 'refused', reason: 'exit 1' }, false);
    assert.equal(ledger.read().bakes?.['access']?.failure?.cause, 'PROBE_FAILED');
    isFull = false;
    await scene.host.pass(70 * second);
    assert.equal(scene.host.active(), '1');
  });
});

describe('a release with an overdue probe', () => {
  it('is rolled back after six times in a row', async () => {
    using scene = await onTwo();
    await scene.answerProbe(5, timedOut, true);
    assert.equal(scene.host.active(), '2');
    await scene.answerProbe(1, timedOut, true);
    assert.equal(scene.host.active(), '1');
    assert.equal(scene.host.restores[0]?.result.problems[0]?.facts['cause'], 'PROBE_FAILED');
  });

  it('stays when the probe passes in between, or when no process can answer it', longCase, async () => {
    using scene = await onTwo();
    await scene.answerProbe(5, timedOut, true);
    await scene.answerProbe(1, right, false);
    await scene.answerProbe(5, timedOut, true);
    await scene.answerProbe(1, right, false);
    await scene.answerProbe(12, timedOut, false);
    assert.deepEqual([scene.host.active(), scene.host.restores.length], ['2', 0]);
  });
});

describe('a worker with a failing probe, in a release that an operator keeps', longCase, () => {
  it('is notified again a minute after its last notification', async () => {
    using scene = await onTwo();
    scene.setProbe('exit 1');
    const { test, driver } = scene.host;
    await scene.answerProbe(3, { kind: 'refused', reason: 'exit 1' }, false);
    await settleInTurn(test.host);
    keepActive(test.host, { outcome: 'unchanged' }, 'test');
    assert.equal(test.host.ledger.read().bakes, undefined);
    const before = driver.notified.length;
    await test.clock.advance(60 * second);
    await test.pull();
    assert.deepEqual(driver.notified.slice(before), ['a 2']);
  });
});

describe('an operator with several pulls within seconds', () => {
  it('keeps a release with a failing probe, because wrong answers count at the times of the probe', async () => {
    using scene = await onTwo();
    scene.setProbe('exit 1');
    const { test } = scene.host;
    const wrong = () => test.host.ledger.read().workers['app/a']?.probed?.wrong;
    await scene.answerProbe(1, { kind: 'refused', reason: 'exit 1' }, false);
    for (let pulls = 0; pulls < 8; pulls += 1) {
      await test.pull();
      await scene.host.pass(2 * second);
    }
    assert.deepEqual([wrong(), scene.host.active()], [1, '2']);
    await test.clock.advance(44 * second);
    await test.pull();
    assert.equal(wrong(), 2, 'a tenth of the bake time has passed');
    scene.setProbe('exit 0');
    await test.pull();
    assert.equal(wrong(), undefined);
  });
});
