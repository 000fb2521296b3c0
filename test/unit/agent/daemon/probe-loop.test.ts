import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createCycleRunner } from '../../../../src/agent/cycle/cycle-runner.js';
import { createProber, type ProberOptions } from '../../../../src/agent/daemon/probe-loop.js';
import { type Exclusive, exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { noteWorkers } from '../../../../src/agent/notify/worker-ledger.js';
import { pause } from '../../../../src/agent/select/pause.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { until } from '../../../kit/assert/until.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, type TestHostOptions, testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const second = 1000;

interface Scene extends Disposable {
  readonly test: TestHost;
  /** Sets the exit code of every probe from now on. */
  readonly setExitCode: (exitCode: number) => void;
  /** The names of the probed groups, in order. */
  readonly asked: () => string[];
  /** Runs the loop for a number of probes. @returns their times in seconds since the start of the loop */
  readonly run: (times: number, more?: Partial<ProberOptions>) => Promise<number[]>;
  /** The times of the last right answers after `run`, in epoch milliseconds. */
  proven: ReadonlyMap<string, number>;
}

/** Uses a clock that each sleep advances. */
async function scene(
  everyMs: Readonly<Record<string, number>>,
  bakeForMs = 0,
  observer?: TestHostOptions['observer'],
): Promise<Scene> {
  const dir = tempDir();
  const setExitCode = (exitCode: number): void => fs.writeFileSync(dir.join('exit-code'), String(exitCode));
  setExitCode(0);
  const probeOf = (name: string) => {
    const script = `echo ${name} >> '${dir.join('asked')}'; exit $(cat '${dir.join('exit-code')}')`;
    return { run: ['sh', '-c', script] as const, timeoutMs: 60_000 };
  };
  const groups = Object.entries(everyMs).map(([name, every]) => {
    const probe = { ...probeOf(name), ...(every === 0 ? {} : { everyMs: every }) };
    return [
      name,
      {
        driver: scriptedDriver({ a: confirms }),
        config: { probe: { ...probe, run: [...probe.run] as [string, ...string[]] } },
      },
    ] as const;
  });
  const bundles = [{ name: 'access', bake: { forMs: bakeForMs, restarts: 2 } }];
  const test = testHost({ bundles, groups: Object.fromEntries(groups), ...(observer && { observer }) });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  fs.writeFileSync(dir.join('asked'), '');
  const made: Scene = {
    ...{ test, setExitCode, proven: new Map() },
    asked: () => fs.readFileSync(dir.join('asked'), 'utf8').split('\n').filter(Boolean),
    run: async (times, more = {}) => {
      const stop = new AbortController();
      const startMs = test.clock.nowMs();
      const at: number[] = [];
      const prober = createProber({
        host: () => test.host,
        installId: 'test',
        exclusive: exclusiveAlone,
        stop: stop.signal,
        onAsked: () => {
          at.push(Math.round((test.clock.nowMs() - startMs) / second));
          if (at.length === times) stop.abort();
        },
        ...more,
      });
      made.proven = prober.provenAtMs();
      await prober.run();
      return at;
    },
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
  return made;
}

interface HangingScene extends Disposable {
  readonly test: TestHost;
  readonly path: (name: string) => string;
  /** The state of the worker and the number of wrong answers. */
  readonly state: () => unknown[];
  /** Runs the loop for one probe. */
  readonly loop: (exclusive: Exclusive, host: () => Host) => Promise<void>;
  /** Calls `act` while the first repeated probe hangs, which then fails. */
  readonly whileItHangs: (act: (job: Job) => Promise<unknown>) => Promise<void>;
}

interface Job {
  readonly exclusive: Exclusive;
  readonly replace: (host: Host) => void;
}

async function hanging(): Promise<HangingScene> {
  const dir = tempDir();
  const [asked, hang, go] = ['asked', 'hang', 'go'].map((name) => dir.join(name));
  const wait = `while ! test -e ${go}; do sleep 0.01; done`;
  const script = `touch ${asked}; test -e ${hang} || exit 0; rm ${hang}; ${wait}; exit 1`;
  const probe = { run: ['sh', '-c', script], timeoutMs: 60_000, everyMs: 30 * second } as const;
  const config = { probe: { ...probe, run: [...probe.run] as [string, ...string[]] } };
  const bundles = [{ name: 'access', bake: { forMs: 0, restarts: 2 } }];
  const test = testHost({ bundles, groups: { app: { driver: scriptedDriver({ a: confirms }), config } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  fs.rmSync(dir.join('asked'));
  fs.writeFileSync(dir.join('hang'), '');
  const loop: HangingScene['loop'] = async (exclusive, host) => {
    const stop = new AbortController();
    const onAsked = (): void => stop.abort();
    await createProber({ host, installId: 'test', exclusive, stop: stop.signal, onAsked }).run();
  };
  return {
    test,
    path: dir.join,
    loop,
    state: () => {
      const { state, probed } = test.host.ledger.read().workers['app/a'] ?? {};
      return [state, probed?.wrong];
    },
    whileItHangs: async (act) => {
      const { exclusive } = createCycleRunner(() => assert.fail('no cycle'));
      let host = test.host;
      const running = loop(exclusive, () => host);
      await until(() => fs.existsSync(dir.join('asked')));
      await act({
        exclusive,
        replace: (other) => {
          host = other;
        },
      });
      fs.writeFileSync(dir.join('go'), '');
      await running;
    },
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

const gaps = (at: readonly number[]): number[] => at.slice(1).map((one, index) => one - (at[index] ?? 0));

describe('the loop of repeated probes', () => {
  it('probes each group ten times in the bake time of a release, also without a probe interval', async () => {
    using app = await scene({ app: 3600 * second, never: 0 }, 600 * second);
    const at = await app.run(6);
    assert.deepEqual(app.asked().sort(), ['app', 'app', 'app', 'never', 'never', 'never']);
    assert.deepEqual([at[2]! - at[0]!, at[4]! - at[2]!], [60, 60]);
  });

  for (const [forSeconds, gap] of [
    [30, 3],
    [10, 1],
    [5, 1],
  ] as const)
    it(`probes ten times in a short bake time, and at most every second: ${forSeconds} s`, async () => {
      using app = await scene({ never: 0 }, forSeconds * second);
      const at = await app.run(3);
      assert.deepEqual([at[1]! - at[0]!, at[2]! - at[1]!], [gap, gap]);
    });

  it('probes each group at its own phase, and no group without a probe interval', async () => {
    using app = await scene({ app: 30 * second, other: 30 * second, never: 0 });
    const at = await app.run(6);
    assert.deepEqual(app.asked().sort(), ['app', 'app', 'app', 'other', 'other', 'other']);
    assert.deepEqual([at[2]! - at[0]!, at[4]! - at[2]!, at[3]! - at[1]!], [30, 30, 30]);
    assert.notEqual(at[0], at[1]);
    using again = await scene({ app: 30 * second });
    assert.ok([at[0], at[1]].includes((await again.run(1))[0]), 'the same after a restart');
  });

  it('reports the time of the last right answer of each worker, not that of the last attempt', async () => {
    using app = await scene({ app: 30 * second });
    await app.run(3);
    assert.deepEqual([...app.proven], [['app/a', app.test.clock.nowMs()]]);
    app.setExitCode(1);
    await app.run(1);
    assert.deepEqual([...app.proven], []);
  });

  it('runs no probe while the host is paused', async () => {
    using app = await scene({ app: 30 * second });
    const untilMs = app.test.clock.nowMs() + 95 * second;
    pause(app.test.host, { by: 'anna', reason: 'work on it', untilMs });
    await app.run(3);
    assert.deepEqual(app.asked(), []);
    await app.run(2);
    assert.notDeepEqual(app.asked(), []);
  });

  it('probes during a pause if a release of the group is in its bake time', async () => {
    using app = await scene({ app: 0, other: 0 }, 600 * second);
    pause(app.test.host, { by: 'anna', reason: 'work on it' });
    await app.run(2);
    assert.deepEqual(app.asked().sort(), ['app', 'other']);
  });

  it('waits for a running job, and then probes every group', async () => {
    using app = await scene({ app: 30 * second, other: 30 * second });
    const at = await app.run(6, {
      exclusive: async (job) => {
        await app.test.clock.sleep(40 * second);
        return exclusiveAlone(job);
      },
    });
    assert.equal(app.asked().filter((one) => one === 'app').length, 3);
    assert.ok(gaps(at).every((one) => one >= 40));
  });

  it('probes more often if a test sets the interval', async () => {
    using app = await scene({ app: 3600 * second });
    assert.deepEqual(gaps(await app.run(4, { everyMs: second })), [1, 1, 1]);
  });

  it('records in the history only when a worker becomes suspect or is confirmed again', async () => {
    using app = await scene({ app: 30 * second });
    const entries = () => readHistory(app.test.host.paths, { limit: 10 });
    const before = entries().length;
    await app.run(2);
    assert.equal(entries().length, before);
    app.setExitCode(1);
    await app.run(2);
    assert.deepEqual(
      [entries().length, entries()[0]?.result.problems[0]?.code],
      [before + 1, 'PROBE_CHANGED'],
    );
    app.setExitCode(0);
    await app.run(2);
    assert.deepEqual([entries().length, entries()[0]?.reason], [before + 2, 'proved again: app/a']);
  });

  it('does not block a job while a probe hangs, and records its answer later', async () => {
    using app = await hanging();
    await app.whileItHangs(async ({ exclusive }) => {
      assert.equal(await exclusive(async () => 'done'), 'done');
    });
    assert.deepEqual(app.state(), ['notified', 1]);
  });

  it('dates an answer by the start of its probe, however long it waited for a job', async () => {
    using app = await scene({ app: 30 * second });
    let turns = 0;
    let askedAtMs = 0;
    await app.run(1, {
      exclusive: async (job) => {
        turns += 1;
        if (turns === 1) askedAtMs = app.test.clock.nowMs();
        else await app.test.clock.sleep(300 * second);
        return exclusiveAlone(job);
      },
    });
    assert.deepEqual([...app.proven], [['app/a', askedAtMs]]);
  });

  it('discards an answer if the workers were notified since the probe began', async () => {
    using app = await hanging();
    await app.whileItHangs(async ({ exclusive }) => {
      await app.test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
      const { outcome } = await exclusive(() => app.test.pull());
      assert.equal(outcome, 'activated');
    });
    assert.deepEqual(app.state(), ['confirmed', undefined]);
  });

  it('discards an answer if the worker answered since the probe began', async () => {
    using app = await hanging();
    await app.whileItHangs(async () => {
      const answer = { group: 'app', worker: 'a', state: 'confirmed', generation: 1, text: 'anew' } as const;
      noteWorkers(app.test.host, [{ ...answer, atMs: app.test.clock.nowMs(), notificationId: 'c-1.1' }]);
    });
    assert.deepEqual(app.state(), ['confirmed', undefined]);
  });

  it('discards an answer if the host was paused or reconfigured since the probe began', async () => {
    using app = await hanging();
    await app.whileItHangs(async () => void pause(app.test.host, { by: 'anna', reason: 'work on it' }));
    assert.deepEqual(app.state(), ['confirmed', undefined]);
    using other = await hanging();
    await other.whileItHangs(async ({ replace }) => replace(other.test.reopen()));
    assert.deepEqual(other.state(), ['confirmed', undefined]);
  });

  it('does not start a probe during a job', async () => {
    using app = await hanging();
    fs.rmSync(app.path('hang'));
    const { exclusive } = createCycleRunner(() => assert.fail('no cycle'));
    let end = (): void => undefined;
    const job = exclusive(
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    let turns = 0;
    const counted: Exclusive = (act) => {
      turns += 1;
      return exclusive(act);
    };
    const running = app.loop(counted, () => app.test.host);
    await until(() => turns === 1);
    assert.equal(fs.existsSync(app.path('asked')), false);
    end();
    await Promise.all([job, running]);
    assert.equal(fs.existsSync(app.path('asked')), true);
  });

  it('records a probe without an answer if the disk is too full for its scratch directory', async () => {
    let isFull = false;
    const before = (): void => {
      if (isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    using one = await scene({ app: 30 * second }, 0, { before, after: () => undefined });
    isFull = true;
    await one.run(1);
    const { workers } = one.test.host.ledger.read();
    assert.match(workers['app/a']?.probed?.silence ?? '', /^app: could not be asked: .*full/);
    assert.deepEqual(one.asked(), []);
  });

  it('continues if the missing answer cannot be recorded', async () => {
    let isFull = false;
    const before = (): void => {
      if (isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    using one = await scene({ app: 30 * second }, 0, { before, after: () => undefined });
    isFull = true;
    let calls = 0;
    const exclusive: Exclusive = (job) => {
      calls += 1;
      return calls % 2 === 0 ? Promise.reject(new Error('the ledger is damaged')) : exclusiveAlone(job);
    };
    assert.equal((await one.run(2, { exclusive })).length, 2);
  });

  it('never rejects, whatever prevents a probe', async () => {
    using app = await scene({ app: 30 * second });
    fs.rmSync(app.test.host.paths.staging, { recursive: true, force: true });
    fs.writeFileSync(app.test.host.paths.staging, '');
    assert.equal((await app.run(2)).length, 2);
    assert.deepEqual(app.asked(), []);
  });
});
