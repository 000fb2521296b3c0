// Workers that failed before a release: restarted if `onDead` and the record of their supervisor allow it, otherwise reported
// with the limit and the command. A newer release does not make the report less severe.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { Answer, SupervisorFailure } from '../../../src/workers/contract/driver.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { testHost } from '../../kit/host/test-host.js';
import { unreachable } from '../../kit/workers/scripted-driver.js';

const failed: SupervisorFailure = {
  hasGivenUp: 'yes',
  text: 'app.service is failed (Result=start-limit-hit); its start limit was reached',
  command: 'systemctl reset-failed app.service && systemctl start app.service',
};

/** A driver that confirms nothing, such as that of a signal. Its worker fails after its first generation. */
async function failedWorker(
  config: Partial<WorkerGroupConfig>,
  failure: SupervisorFailure | undefined,
  starts: Answer,
) {
  const state = { isDead: false, started: 0 };
  const answer = (): Answer => (state.isDead ? unreachable() : { kind: 'notified', text: 'HUP sent' });
  const driver = {
    verdictClass: 'silent' as const,
    members: async () => ['a'],
    reset: async () => answer(),
    restart: async () => {
      state.started += 1;
      if (starts.kind === 'notified') state.isDead = false;
      return starts;
    },
    liveness: async () => (state.isDead ? ('dead' as const) : ('alive' as const)),
    failure: async () => (state.isDead ? failure : undefined),
  };
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { f: '1' }, { serial: 1 });
  assert.equal((await test.pull()).outcome, 'activated');
  state.isDead = true;
  await test.publish('access', { f: '2' }, { serial: 2 });
  return { test, state };
}

const health = (host: Host): readonly string[] => {
  const report = statusReport(host, { version: '', state: 'run', contact: { contact: {} }, problems: [] });
  return judgeHostHealth(report).findings.map(({ level, code }) => `${level} ${code}`);
};
const ended: Answer = { kind: 'refused', text: 'ended while it started' };
const up: Answer = { kind: 'notified', text: 'restart done' };

describe('a worker that failed before a release', () => {
  it('is restarted during the move with onDead: restart', async () => {
    const { test, state } = await failedWorker({ onDead: 'restart' }, failed, up);
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.outcome, state.started, state.isDead], ['activated', 1, false]);
    assert.match(result.workers[0]?.text ?? '', /start limit.*started again/);
  });

  it('causes no restore if the restart fails, and is critical with the command', async () => {
    const { test, state } = await failedWorker({ onDead: 'restart' }, failed, ended);
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.outcome, state.started], ['degraded', 1]);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.deepEqual(health(test.host), ['critical SUPERVISOR_GAVE_UP']);
  });

  it('is not restarted without onDead: SUPERVISOR_GAVE_UP names the limit and the command', async () => {
    const { test, state } = await failedWorker({}, failed, up);
    using _ = test;
    const { problems } = await test.pull();
    assert.deepEqual([problems[0]?.code, state.started], ['SUPERVISOR_GAVE_UP', 0]);
    assert.match(
      problems[0]?.message ?? '',
      /start limit was reached; start it with: systemctl reset-failed app/,
    );
    await settleNow(test.host);
    assert.deepEqual([state.started, health(test.host)], [0, ['critical SUPERVISOR_GAVE_UP']]);
  });

  it('is not started without a recorded failure, and is still critical after a newer release', async () => {
    const { test, state } = await failedWorker({ onDead: 'restart' }, undefined, up);
    using _ = test;
    await test.pull();
    assert.deepEqual([state.started, health(test.host)], [0, ['critical WORKERS_MISSING']]);
    await test.publish('access', { f: '3' }, { serial: 3 });
    await test.pull();
    assert.deepEqual([state.started, health(test.host)], [0, ['critical WORKERS_MISSING']]);
  });

  it('is not reported as given up while its supervisor still tries to start it', async () => {
    const backoff: SupervisorFailure = {
      hasGivenUp: 'no',
      text: 'web is in BACKOFF',
      command: 'supervisorctl start web',
    };
    const { test } = await failedWorker({}, backoff, up);
    using _ = test;
    const { problems } = await test.pull();
    assert.deepEqual(
      [problems[0]?.code, /BACKOFF/.test(problems[0]?.message ?? '')],
      ['WORKERS_MISSING', true],
    );
  });
});
