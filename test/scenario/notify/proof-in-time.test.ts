// When an answer counts: only after the end of the move that requested it, and never against a failed probe.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { resume } from '../../../src/agent/select/pause.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import type { StatusReport } from '../../../src/core/protocol/control-protocol.js';
import { entryOf, settle } from '../../kit/agent/settled-world.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const statusOf = ({ host }: TestHost): StatusReport =>
  statusReport(host, { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] });
const publish = (test: TestHost, serial: number): Promise<Buffer> =>
  test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
const codes = ({ problems }: Pick<StatusReport, 'problems'>): string[] => problems.map((one) => one.code);

/** A probe that passes while the file `up` exists. */
function probeOf(dir: TempDir): { config: Partial<WorkerGroupConfig>; up: string } {
  const up = dir.join('up');
  fs.writeFileSync(up, '');
  const run = ['sh', '-c', `test -e ${up}`] as const;
  return { up, config: { probe: { run: [...run], timeoutMs: 60_000, retry: 0 } } };
}

describe('a status that is read while workers are notified', () => {
  it('is not confirmed, also at a first notification', async () => {
    const seen: boolean[] = [];
    const driver = scriptedDriver({
      a: (generation) => {
        seen.push(statusOf(test).confirmed);
        return confirms(generation);
      },
    });
    using test = testHost({ groups: { app: { driver } } });
    await publish(test, 1);
    assert.equal((await test.pull()).confirmed, true);
    await publish(test, 2);
    await test.pull();
    assert.deepEqual([seen, statusOf(test).confirmed], [[false, false], true]);
  });

  it('is not confirmed while the liveness of workers is checked after their answers', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    const seen: boolean[] = [];
    driver.liveness = async () => {
      seen.push(statusOf(test).confirmed);
      return 'alive';
    };
    for (const version of [1, 2]) {
      await publish(test, version);
      await test.pull();
      assert.deepEqual([seen.at(-1), statusOf(test).confirmed], [false, true]);
    }
  });
});

describe('a restore during which the probe fails too', () => {
  it('leaves its workers unconfirmed, also after the block, until the probe passes', async () => {
    using dir = tempDir();
    const { config, up } = probeOf(dir);
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver, config } } });
    await publish(test, 1);
    await test.pull();
    fs.rmSync(up);
    await publish(test, 2);
    assert.equal((await test.pull()).outcome, 'blocked');
    assert.deepEqual([statusOf(test).confirmed, entryOf(test, 'app/a')?.state], [false, 'unreachable']);
    resume(test.host);
    const result = await test.pull();
    assert.deepEqual([result.confirmed, statusOf(test).confirmed], [false, false]);
    assert.ok(codes(statusOf(test)).includes('WORKER_UNREACHABLE'));
    fs.writeFileSync(up, '');
    await settle(test.host);
    assert.equal(entryOf(test, 'app/a')?.state, 'confirmed');
  });
});

describe('a pending worker that confirms while its probe fails', () => {
  it('stays pending until the probe passes', async () => {
    using dir = tempDir();
    const { config, up } = probeOf(dir);
    const driver = scriptedDriver({ a: confirms });
    driver.processes.set('a', 'first');
    using test = testHost({ groups: { app: { driver, config } } });
    await publish(test, 1);
    await test.pull();
    await test.clock.advance(20_000);
    driver.processes.set('a', 'second');
    fs.rmSync(up);
    for (let pull = 0; pull < 2; pull++) {
      const { outcome, confirmed } = await test.pull();
      assert.deepEqual([outcome, confirmed, statusOf(test).confirmed], ['degraded', false, false]);
    }
    fs.writeFileSync(up, '');
    assert.deepEqual([(await test.pull()).exitCode, statusOf(test).confirmed], [0, true]);
  });
});

describe('a worker with a new process after its answer and before the end of the move', () => {
  const world = async (keepsProcess: boolean): Promise<TestHost> => {
    const driver = Object.assign(
      scriptedDriver({ a: confirms }),
      keepsProcess ? { keepsProcess: 'yes' as const } : {},
    );
    driver.processes.set('a', 'first');
    const test = testHost({ groups: { app: { driver } } });
    await publish(test, 1);
    await test.pull();
    await test.clock.advance(20_000);
    driver.workers.set('a', (generation) => {
      driver.processes.set('a', 'second');
      driver.workers.set('a', refuses('has read the old one'));
      return confirms(generation);
    });
    await publish(test, 2);
    return test;
  };

  it('is pending, and is notified again', async () => {
    using test = await world(true);
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.confirmed, codes(result)], [4, false, ['WORKER_UNREACHABLE']]);
    assert.equal(statusOf(test).confirmed, false);
    const next = await test.pull();
    assert.deepEqual([next.outcome, codes(next)], ['degraded', ['WORKER_REFUSED']]);
  });

  it('counts as notified if a notification may replace its process', async () => {
    using test = await world(false);
    assert.deepEqual([(await test.pull()).exitCode, statusOf(test).confirmed], [0, true]);
  });
});

describe('a group that cannot be listed while its workers must be notified', () => {
  it('is not confirmed in the status, during a move and a restore, until it can be listed', async () => {
    const [dark, other] = [scriptedDriver({ a: confirms }), scriptedDriver({ b: confirms })];
    using test = testHost({ groups: { dark: { driver: dark }, other: { driver: other } } });
    dark.unread = 'EACCES';
    await publish(test, 1);
    assert.equal((await test.pull()).exitCode, 4);
    assert.deepEqual([statusOf(test).confirmed, codes(statusOf(test))], [false, ['WORKER_UNREACHABLE']]);
    dark.unread = undefined;
    assert.deepEqual([(await test.pull()).exitCode, statusOf(test).confirmed], [0, true]);
    const { host } = test;
    other.workers.set('b', (generation) => {
      setLedger(host.ledger, { workers: {} });
      dark.unread = 'EACCES';
      return generation === 1 ? confirms(1) : refuses('no')();
    });
    await publish(test, 2);
    assert.equal((await test.pull()).outcome, 'rolled-back');
    assert.deepEqual([statusOf(test).confirmed, codes(statusOf(test))], [false, ['WORKER_UNREACHABLE']]);
  });
});

describe('a probe that only warns', () => {
  it('neither confirms nor refuses: only exit 0 confirms', async () => {
    for (const asked of [[], ['{worker}']]) {
      const run = ['sh', '-c', 'exit 40', 'probe', ...asked] as const;
      const config = { probe: { run: [...run] as [string, ...string[]], timeoutMs: 60_000, retry: 0 } };
      const driver = scriptedDriver({ a: () => ({ kind: 'notified', text: 'accepted' }) }, 'early');
      using test = testHost({ groups: { app: { driver, config } } });
      await publish(test, 1);
      const { outcome, confirmed } = await test.pull();
      assert.deepEqual([outcome, confirmed, statusOf(test).confirmed], ['activated', false, false]);
    }
  });
});
