import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxHookOutputBytes } from '../../../../src/core/limits.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import type { Driver } from '../../../../src/workers/contract/driver.js';
import { systemd } from '../../../../src/workers/drivers/systemd.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type StubSystemctl, stubSystemctl } from '../../../kit/programs/stub-systemctl.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

/** Everything here runs against a stub of systemctl: process 1 of a test machine is not systemd. */
interface Bench extends Disposable {
  readonly stub: StubSystemctl;
  driver(options?: object): Driver;
}

function bench(): Bench {
  const dir = tempDir();
  const stub = stubSystemctl(dir.path);
  return {
    stub,
    driver: (options = {}) =>
      systemd.create(
        { systemd: 'worker@*.service', ...options },
        driverContext({ programPath: stub.programPath }),
      ),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

const unit = 'worker@1.service';

/** With this clock the check of the unit takes almost all of 600 s: half a second is left for the job. */
function afterLongLook({ stub }: Bench): Driver {
  const seen = [0, 599_500];
  const clock = { ...systemClock, monotonicMs: () => seen.shift() ?? 599_500 };
  return systemd.create({ systemd: unit }, driverContext({ programPath: stub.programPath, clock }));
}

describe('the systemd driver, with a stub of systemctl', () => {
  it('reloads a unit, and reports only what that proves', async () => {
    using test = bench();
    test.stub.unit(unit, { execReload: '/bin/kill -HUP $MAINPID' });
    const answer = await test.driver().reset(unit, reset);
    assert.equal(answer.kind, 'notified');
    assert.match(answer.text, /^worker@1\.service: reload done; its reload only sends a signal: \/bin\/kill/);
    assert.deepEqual(test.stub.jobs(), [`reload ${unit}`]);
    assert.equal(test.driver().verdictClass, 'early');
  });

  it('records a failure of a unit that is failed, with its limit and the command, and of no other', async () => {
    using test = bench();
    test.stub.unit(unit, {
      active: 'failed',
      more: ['Result=start-limit-hit', 'StartLimitBurst=3', 'StartLimitIntervalUSec=10s'],
    });
    const failure = await test.driver().failure?.(unit);
    assert.match(failure?.text ?? '', /StartLimitBurst=3 in StartLimitIntervalSec=10s/);
    assert.equal(failure?.command, `systemctl reset-failed ${unit} && systemctl start ${unit}`);
    test.stub.unit(unit, { active: 'failed', more: ['Job=71'] });
    assert.equal(await test.driver().failure?.(unit), undefined);
    for (const active of ['inactive', 'active', 'activating']) {
      test.stub.unit(unit, { active });
      assert.equal(await test.driver().failure?.(unit), undefined, active);
    }
  });

  it('names the limit of a crash loop, where systemd keeps the result of the last process', async () => {
    using test = bench();
    const limit = ['StartLimitBurst=3', 'StartLimitIntervalUSec=1h'];
    const textOf = async (...more: string[]): Promise<string> => {
      test.stub.unit(unit, { active: 'failed', more: [...more, ...limit] });
      return (await test.driver().failure?.(unit))?.text ?? '';
    };
    const named =
      /Result=exit-code\) after 3 automatic restarts; its start limit: StartLimitBurst=3 in .*=1h$/;
    assert.match(await textOf('Result=exit-code', 'NRestarts=3'), named);
    assert.match(await textOf('Result=exit-code', 'NRestarts=0'), /\(Result=exit-code\)$/);
    assert.match(await textOf('Result=core-dump', 'NRestarts=[not set]'), /\(Result=core-dump\)$/);
  });

  it('resets the start limit of a unit that has failed before it starts it, and of no other', async () => {
    using test = bench();
    test.stub.unit(unit, { active: 'failed' });
    assert.equal((await test.driver().restart?.(unit, reset))?.kind, 'notified');
    assert.deepEqual(test.stub.jobs(), [`reset-failed ${unit}`, `restart ${unit}`]);
    using other = bench();
    other.stub.unit(unit);
    await other.driver().restart?.(unit, reset);
    assert.deepEqual(other.stub.jobs(), [`restart ${unit}`]);
  });

  it('confirms a reload if the user configures it, and never a requested restart', async () => {
    using test = bench();
    test.stub.unit(unit);
    const driver = test.driver({ confirms: true });
    assert.equal(driver.verdictClass, 'true');
    assert.equal((await driver.reset(unit, reset)).kind, 'confirmed');
    assert.equal((await driver.restart?.(unit, reset))?.kind, 'notified');
    assert.deepEqual(test.stub.jobs(), [`reload ${unit}`, `restart ${unit}`]);
  });

  for (const action of ['restart', 'try-restart', 'try-reload-or-restart'] as const) {
    it(`does ${action} where that is configured`, async () => {
      using test = bench();
      test.stub.unit(unit, { canReload: 'no' });
      const answer = await test.driver({ action }).reset(unit, reset);
      assert.equal(answer.kind, 'notified');
      assert.match(answer.text, /what it has read is unknown/);
      assert.deepEqual(test.stub.jobs(), [`${action} ${unit}`]);
    });
  }

  const noWord: readonly (readonly [string, string])[] = [
    ['a missing right', 'Failed to reload $unit: Interactive authentication required.'],
    ['a bus that is away', 'Failed to connect to bus: No such file or directory'],
    ['a job that somebody took back', 'Job for $unit canceled.'],
    ['a unit that ended before its turn', '$unit is not active, cannot reload.'],
    ['a unit that this one needs', "A dependency job for $unit failed. See 'journalctl -xe' for details."],
  ];
  for (const [what, text] of noWord) {
    it(`takes ${what} for no verdict of the unit, with the same exit code`, async () => {
      using test = bench();
      test.stub.unit(unit);
      test.stub.job(`echo "${text}" >&2; exit 1`);
      const answer = await test.driver({ confirms: true }).reset(unit, reset);
      assert.equal(answer.kind, 'unreachable');
      assert.match(answer.text, /reload failed: exit 1: /);
    });
  }

  it('takes a failed job for a refusal, with the message of systemctl', async () => {
    using test = bench();
    test.stub.unit(unit);
    test.stub.job('echo "Job for $unit failed." >&2; exit 1');
    const answer = await test.driver().reset(unit, reset);
    assert.equal(answer.kind, 'refused');
    assert.match(answer.text, /exit 1: Job for worker@1\.service failed/);
  });

  it('does not notify a unit that is not up, because a job for it succeeds without effect', async () => {
    using test = bench();
    for (const active of ['inactive', 'failed', 'activating', 'deactivating']) {
      test.stub.unit(unit, { active });
      for (const action of ['reload', 'restart', 'try-restart', 'try-reload-or-restart']) {
        const answer = await test.driver({ action }).reset(unit, reset);
        assert.deepEqual(answer, { kind: 'unreachable', text: `${unit}: it is ${active}` });
      }
    }
    assert.deepEqual(test.stub.jobs(), []);
  });

  it('does not notify a unit with a masked, missing or invalid unit file, whatever still runs', async () => {
    using test = bench();
    for (const load of ['masked', 'not-found', 'bad-setting', 'error']) {
      test.stub.unit(unit, { load });
      const driver = test.driver({ action: 'try-restart', confirms: true });
      for (const answer of [await driver.reset(unit, reset), await driver.restart?.(unit, reset)])
        assert.deepEqual(answer, { kind: 'unreachable', text: `${unit}: its unit file is ${load}` });
    }
    assert.deepEqual(test.stub.jobs(), []);
  });

  it('starts a dead unit when it must restart it', async () => {
    using test = bench();
    for (const active of ['inactive', 'failed']) {
      test.stub.unit(unit, { active });
      assert.equal((await test.driver().restart?.(unit, reset))?.kind, 'notified');
    }
    test.stub.unit(unit, { active: 'activating' });
    assert.equal((await test.driver().restart?.(unit, reset))?.kind, 'unreachable');
    assert.deepEqual(test.stub.jobs(), [`restart ${unit}`, `reset-failed ${unit}`, `restart ${unit}`]);
  });

  it('cannot reload a unit without ExecReload, and reports the fix', async () => {
    using test = bench();
    test.stub.unit(unit, { canReload: 'no', execReload: '' });
    const answer = await test.driver().reset(unit, reset);
    assert.equal(answer.kind, 'unreachable');
    assert.match(answer.text, /action: restart/);
  });

  it('has no verdict when a job hangs or is interrupted, or there is no systemctl', async () => {
    using test = bench();
    test.stub.unit(unit);
    test.stub.job('sleep 600');
    const late = await afterLongLook(test).reset(unit, { ...reset, timeoutMs: 600_000 });
    assert.equal(late.kind, 'unreachable');
    assert.match(late.text, /timed-out/);
    const stop = new AbortController();
    const asked = test.driver().reset(unit, { ...reset, signal: stop.signal });
    stop.abort();
    assert.equal((await asked).kind, 'unreachable');
    const context = driverContext({ programPath: '/nonexistent' });
    const none = await systemd.create({ systemd: unit }, context).reset(unit, reset);
    assert.deepEqual(none, { kind: 'unreachable', text: `${unit}: systemctl cannot show it` });
  });

  it('has one deadline for the check of the unit and the job', async (t) => {
    using test = bench();
    test.stub.unit(unit);
    test.stub.job('sleep 600');
    const timers = t.mock.method(globalThis, 'setTimeout').mock;
    const late = await afterLongLook(test).reset(unit, { ...reset, timeoutMs: 600_000 });
    assert.equal(late.kind, 'unreachable');
    const delays = timers.calls.map(({ arguments: [, delayMs] }) => delayMs);
    assert.ok(delays.includes(600_000) && delays.includes(500), `${delays}`);
  });

  it('does not begin after an abort', async () => {
    using test = bench();
    test.stub.unit(unit);
    const answer = await test.driver().reset(unit, { ...reset, signal: AbortSignal.abort() });
    assert.deepEqual(answer, { kind: 'unreachable', text: `${unit}: systemctl cannot show it` });
    assert.deepEqual(test.stub.jobs(), []);
  });

  it('gives the unit where systemctl takes no option', async () => {
    using test = bench();
    test.stub.unit(unit);
    test.stub.job('echo "$*" >&2; exit 1');
    assert.match((await test.driver().reset(unit, reset)).text, / reload -- worker@1\.service$/);
  });

  it('takes no option of systemctl for a unit', async () => {
    using test = bench();
    assert.equal((await test.driver().reset('--force x', reset)).kind, 'unreachable');
    assert.deepEqual(test.stub.jobs(), []);
  });
});

describe('the members of a systemd group, with a stub of systemctl', () => {
  it('are the units of the pattern that are up or failed', async () => {
    using test = bench();
    test.stub.unit('worker@2.service');
    test.stub.unit('worker@1.service', { active: 'failed' });
    test.stub.unit('worker@3.service', { active: 'inactive' });
    assert.deepEqual(await test.driver().members(), ['worker@1.service', 'worker@2.service']);
  });

  it('are none before a unit is started', async () => {
    using test = bench();
    assert.deepEqual(await test.driver().members(), []);
  });

  it('are an error, not none, when systemctl fails', async () => {
    using test = bench();
    for (const script of [
      'echo "Failed to connect to bus" >&2; exit 1',
      'echo "System has not been booted with systemd as init system (PID 1)."',
      'head -c 100000 /dev/zero | tr "\\0" x',
      'for i in $(seq 1100); do echo "w@$i.service loaded active running w"; done; exit 0',
    ]) {
      test.stub.list(script);
      await rejectsCode('WORKER_UNREACHABLE', test.driver().members());
    }
  });

  it('are an error when the list is longer than the bound of its bytes, though each line that came is a unit', async () => {
    using test = bench();
    const line = 'w@100.service loaded active running '.padEnd(127, 'w');
    assert.equal(maxHookOutputBytes % (line.length + 1), 0);
    const count = maxHookOutputBytes / (line.length + 1);
    const list = (more: number): string =>
      `for i in $(seq 100 ${99 + count + more}); do echo "${line.replace('100', '$i')}"; done; exit 0`;
    test.stub.list(list(0));
    assert.equal((await test.driver().members()).length, count);
    test.stub.list(list(1));
    await rejectsCode('WORKER_UNREACHABLE', test.driver().members());
  });
});

describe('the liveness and the process run of a unit, with a stub of systemctl', () => {
  const states: readonly (readonly [string, string])[] = [
    ['active', 'alive'],
    ['reloading', 'alive'],
    ['failed', 'dead'],
    ['inactive', 'dead'],
    ['activating', 'unknown'],
    ['deactivating', 'unknown'],
  ];
  for (const [active, expected] of states) {
    it(`is ${expected} when it is ${active}`, async () => {
      using test = bench();
      test.stub.unit(unit, { active });
      assert.equal(await test.driver().liveness?.(unit), expected);
    });
  }

  it('is known by its invocation, where a reset does not make a new one', async () => {
    using test = bench();
    test.stub.unit(unit, { invocation: 'bb22' });
    assert.equal(await test.driver().identity?.(unit), 'bb22');
    test.stub.unit(unit, { invocation: '' });
    assert.equal(await test.driver().identity?.(unit), undefined);
    assert.equal(test.driver({ action: 'try-reload-or-restart' }).identity, undefined);
  });

  it('has the main process that systemd knows of, and none while it is down', async () => {
    using test = bench();
    test.stub.unit(unit, { mainPid: 4711 });
    assert.equal(await test.driver().pid?.(unit), 4711);
    test.stub.unit(unit, { active: 'inactive', mainPid: 0 });
    assert.equal(await test.driver().pid?.(unit), undefined);
  });

  it('is unknown without systemctl', async () => {
    const driver = systemd.create({ systemd: unit }, driverContext({ programPath: '/nonexistent' }));
    assert.equal(await driver.liveness?.(unit), 'unknown');
  });
});

describe('the options of the systemd driver', () => {
  const validate = compileOptions(systemd);

  for (const good of ['nginx.service', 'worker@*.service', 'a\\x2db@[12].service', 'php?.service']) {
    it(`take ${good}`, () => assert.ok(validate({ systemd: good, action: 'restart', confirms: true })));
  }
  for (const bad of ['nginx', '--all.service', '*', 'a b.service', '/etc/a.service', 'a.service;b', '']) {
    it(`refuse ${JSON.stringify(bad)}`, () => assert.equal(validate({ systemd: bad }), false));
  }
  for (const action of ['stop', 'kill', 'reload-or-restart']) {
    it(`refuse the action ${action}`, () => assert.equal(validate({ systemd: 'a.service', action }), false));
  }
});
