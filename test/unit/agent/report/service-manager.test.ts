import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { notifyServiceManager } from '../../../../src/agent/report/service-manager.js';
import { longestSilenceMs } from '../../../../src/agent/report/step-bound-rules.js';
import type { AgentConfig } from '../../../../src/core/config/config.js';
import { defaultTransportLimits } from '../../../../src/core/limits.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { fakeNotifier } from '../../../kit/net/fake-notifier.js';

const config = {
  repository: [{ url: 'https://a/', redirects: [] }],
  bundles: [],
  workers: [],
  freshness: {},
  transport: defaultTransportLimits,
} as unknown as AgentConfig;
const { generation: _, ...noneActive } = statusReport({ freshness: { state: 'fresh' } });

function stage(options: { readonly watchdogMs?: number } = {}) {
  const clock = fakeClock();
  const notifier = fakeNotifier(options);
  const stop = new AbortController();
  const manager = notifyServiceManager({ notifier, clock, stop: stop.signal });
  const { onState, onStatus, onWork, onReload } = manager.observer;
  const firstFields = (): string[] => notifier.notified.map(([first = '']) => first);
  return {
    ...{ clock, notifier, stop, manager, firstFields },
    state: (state: 'init' | 'run' | 'shutdown') => onState?.(state),
    status: (report: ReturnType<typeof statusReport>) => onStatus?.(report),
    work: (kind: 'began' | 'ended') => onWork?.({ kind }, config),
    step: (step: 'refresh') => onWork?.({ kind: 'step', step }, config),
    reload: (phase: 'began' | 'reloaded' | 'kept') => onReload?.(phase),
    isReady: () => firstFields().includes('READY=1'),
  };
}

describe('READY=1', () => {
  it('is sent at once after the stored policy is verified, first in its datagram', () => {
    const agent = stage();
    agent.state('init');
    agent.status(statusReport());
    assert.equal(agent.isReady(), false, 'nothing is verified yet');
    agent.state('run');
    assert.deepEqual(
      agent.notifier.notified.filter(([first]) => first === 'READY=1').map((lines) => lines.length),
      [2],
    );
  });

  it('waits for the first activation when nothing is stored', async () => {
    const agent = stage();
    agent.state('init');
    agent.status(noneActive);
    agent.state('run');
    await agent.clock.advance(86_400_000);
    agent.status(noneActive);
    await agent.clock.advance(2000);
    assert.equal(agent.isReady(), false);
    agent.status(statusReport());
    assert.equal(agent.isReady(), true, 'and is not held back by the rate of status lines');
  });

  for (const code of ['STATE_DAMAGED', 'UNTRUSTED_ACTIVE'] as const) {
    it(`waits while the problem of the active generation is ${code}`, () => {
      const agent = stage();
      agent.status(statusReport({ problems: [problem(code, 'bad')] }));
      agent.state('run');
      assert.equal(agent.isReady(), false);
      agent.status(statusReport());
      assert.equal(agent.isReady(), true);
    });
  }

  it('is sent again after a failure without any change, and not after a success', async () => {
    const agent = stage();
    const ready = (): number => agent.firstFields().filter((field) => field === 'READY=1').length;
    agent.notifier.answer('failed');
    agent.status(statusReport());
    agent.state('run');
    await agent.clock.advance(0);
    await agent.clock.advance(5000);
    assert.equal(ready(), 2);
    for (let changes = 0; changes < 3; changes += 1) {
      agent.status(statusReport());
      await agent.clock.advance(0);
    }
    assert.equal(ready(), 5, 'a change sends it at once');
    agent.notifier.answer('sent');
    await agent.clock.advance(5000);
    assert.equal(ready(), 6, 'and there is one wait for all of them');
    await agent.clock.advance(60_000);
    agent.status(statusReport());
    assert.equal(ready(), 6);
  });

  it('is not sent again after STOPPING=1', async () => {
    const agent = stage();
    agent.notifier.answer('failed');
    agent.status(statusReport());
    agent.state('run');
    await agent.clock.advance(0);
    await agent.manager.end();
    await agent.clock.advance(60_000);
    assert.equal(agent.firstFields().filter((field) => field === 'READY=1').length, 1);
  });
});

describe('the status line', () => {
  it('is sent at a change, at most every two seconds, and ends with the newest', async () => {
    const agent = stage();
    agent.status(statusReport());
    agent.state('run');
    await agent.clock.advance(0);
    const before = agent.notifier.notified.length;
    for (let generation = 19; generation < 60; generation += 1) agent.status(statusReport({ generation }));
    await agent.clock.advance(0);
    await agent.clock.advance(1999);
    assert.equal(agent.notifier.notified.length, before + 1);
    await agent.clock.advance(1);
    await agent.clock.advance(2000);
    const notified = agent.notifier.notified.slice(before);
    assert.equal(notified.length, 2);
    assert.match(notified.at(-1)?.[0] ?? '', /^STATUS=generation 59 /);
    agent.status(statusReport({ generation: 59, nextPollAtMs: 1 }));
    await agent.clock.advance(60_000);
    assert.equal(agent.notifier.notified.length, before + 2, 'nothing new, nothing notified');
  });
});

describe('a reload', () => {
  it('sends RELOADING=1 with the monotonic time, then READY=1', () => {
    const agent = stage();
    agent.status(statusReport());
    agent.state('run');
    agent.reload('began');
    const reloading = agent.notifier.notified.at(-1) ?? [];
    assert.equal(reloading[0], 'RELOADING=1');
    assert.match(reloading[1] ?? '', /^MONOTONIC_USEC=[1-9]\d*$/);
    agent.reload('reloaded');
    assert.equal(agent.firstFields().at(-1), 'READY=1');
  });

  it('ends with the last of several, also if the old configuration was kept', () => {
    const agent = stage();
    agent.status(statusReport());
    agent.state('run');
    agent.reload('began');
    agent.reload('began');
    agent.reload('kept');
    assert.equal(agent.firstFields().at(-1), 'RELOADING=1');
    agent.reload('kept');
    assert.equal(agent.firstFields().at(-1), 'READY=1');
  });

  it('sends nothing before the agent is ready', () => {
    const agent = stage();
    agent.status(noneActive);
    agent.state('run');
    agent.reload('began');
    agent.reload('reloaded');
    assert.equal(agent.isReady(), false);
    assert.equal(agent.firstFields().includes('RELOADING=1'), false);
  });
});

describe('STOPPING=1', () => {
  it('is sent at the stop signal, and only the failure may follow', async () => {
    const agent = stage();
    agent.status(statusReport());
    agent.state('run');
    agent.stop.abort();
    const notified = agent.notifier.notified.length;
    assert.deepEqual(agent.notifier.notified.at(-1), ['STOPPING=1', 'STATUS=stopping']);
    agent.status(statusReport({ generation: 99 }));
    agent.state('shutdown');
    await agent.clock.advance(10_000);
    assert.equal(agent.notifier.notified.length, notified);
    await agent.manager.end();
  });

  it('asks for the time that the running job needs', () => {
    const agent = stage();
    agent.work('began');
    agent.stop.abort();
    const bound = longestSilenceMs('none', config) * 1000;
    assert.ok(agent.notifier.notified.at(-1)?.includes(`EXTEND_TIMEOUT_USEC=${bound}`));
  });

  it('is sent by an agent that was stopped before it began', () => {
    const notifier = fakeNotifier();
    notifyServiceManager({ notifier, clock: fakeClock(), stop: AbortSignal.abort() });
    assert.equal(notifier.notified[0]?.[0], 'STOPPING=1');
  });

  it('is followed by the reason why the agent did not start', async () => {
    const agent = stage();
    await agent.manager.end({ code: 'CONFIG_INVALID', message: 'bundles is missing' });
    assert.deepEqual(agent.notifier.notified, [['STATUS=CONFIG_INVALID: bundles is missing']]);
  });
});

describe('the watchdog', () => {
  const pings = (notified: readonly (readonly string[])[]): number =>
    notified.filter(([first]) => first === 'WATCHDOG=1').length;

  it('is pinged without a job, and while a job keeps its deadlines', async () => {
    const agent = stage({ watchdogMs: 60_000 });
    await agent.clock.advance(0);
    await agent.clock.advance(600_000);
    assert.equal(pings(agent.notifier.notified), 21);
    agent.work('began');
    await agent.clock.advance(600_000);
    assert.equal(pings(agent.notifier.notified), 41);
    await agent.manager.end();
  });

  it('is not pinged after a job exceeded all its deadlines without progress', async () => {
    const agent = stage({ watchdogMs: 60_000 });
    await agent.clock.advance(0);
    agent.work('began');
    agent.step('refresh');
    await agent.clock.advance(longestSilenceMs('refresh', config));
    const before = pings(agent.notifier.notified);
    await agent.clock.advance(600_000);
    assert.ok(pings(agent.notifier.notified) <= before + 1);
    agent.work('ended');
    await agent.clock.advance(30_000);
    assert.ok(pings(agent.notifier.notified) > before, 'it was only late');
    await agent.manager.end();
  });

  it('measures the time without progress from the last step', async () => {
    const agent = stage({ watchdogMs: 60_000 });
    await agent.clock.advance(0);
    const bound = longestSilenceMs('refresh', config);
    agent.work('began');
    for (let step = 0; step < 3; step += 1) {
      agent.step('refresh');
      await agent.clock.advance(bound - 60_000);
    }
    assert.equal(pings(agent.notifier.notified), 1 + Math.floor((3 * (bound - 60_000)) / 30_000));
    await agent.manager.end();
  });
});
