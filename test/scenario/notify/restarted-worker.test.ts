// A worker with its policy in memory is killed and started again within a second (FC-07). The confirmation of the old process
// does not cover the new one, which serves nothing until it is notified.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { workerLines } from '../../../src/cli/show/show-workers.js';
import type { StatusReport, WorkerStatus } from '../../../src/core/status/status.js';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { http } from '../../../src/workers/drivers/http.js';
import { line } from '../../../src/workers/drivers/line.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { driverContext } from '../../kit/workers/driver-context.js';
import { startForgetfulWorker } from '../../kit/workers/forgetful-worker.js';

const halfAnHourMs = 1_800_000;

async function activeHost(driver: Driver): Promise<TestHost> {
  const reset = { driver: 'app', options: {}, timeoutMs: 5000, min: 1 };
  const test = testHost({ groups: { app: { driver, config: { reset } } } });
  await test.publish('access', { 'policy.yaml': 'v1' }, { serial: 1 });
  assert.equal((await test.pull()).confirmed, true);
  return test;
}

function reportOf({ host }: TestHost): StatusReport {
  return statusReport(host, { version: '', state: 'run', contact: { contact: {} }, problems: [] });
}

function workerOf(test: TestHost): WorkerStatus | undefined {
  return reportOf(test).workers[0];
}

function httpDriver(port: number): Driver {
  const options = { http: `http://127.0.0.1:${port}/`, body: '{generation}', expect: 'ok', confirms: true };
  return http.create(options, driverContext());
}

describe('a worker that was restarted and serves nothing', longCase, () => {
  it('is notified again over http, and confirmed at the time of its own answer', async () => {
    const first = await startForgetfulWorker('http', 0);
    using test = await activeHost(httpDriver(first.port));
    const provedAtMs = workerOf(test)?.provenAtMs;
    assert.equal(await first.serves(), '1');
    await test.clock.advance(halfAnHourMs);
    await settleNow(test.host);
    assert.equal(workerOf(test)?.provenAtMs, provedAtMs);
    await first.kill();
    const second = await startForgetfulWorker('http', first.port);
    assert.equal(await second.serves(), 'EMPTY');
    await settleNow(test.host);
    assert.equal(await second.serves(), '1');
    assert.equal(workerOf(test)?.provenAtMs, test.clock.nowMs());
    await second.kill();
  });

  it('is notified again over a line socket', async () => {
    using dir = tempDir();
    const first = await startForgetfulWorker('line', dir.join('s'));
    const options = { line: dir.join('s'), send: '{generation}', expect: 'ok', confirms: true };
    using test = await activeHost(line.create(options, driverContext()));
    await test.clock.advance(halfAnHourMs);
    await first.kill();
    rmSync(dir.join('s'));
    const second = await startForgetfulWorker('line', dir.join('s'));
    await settleNow(test.host);
    assert.equal(await second.serves(), '1');
    assert.equal(workerOf(test)?.provenAtMs, test.clock.nowMs());
    await second.kill();
  });

  it('is not confirmed while it is unreachable', async () => {
    const first = await startForgetfulWorker('http', 0);
    using test = await activeHost(httpDriver(first.port));
    await test.clock.advance(halfAnHourMs);
    await first.kill();
    await settleNow(test.host);
    const { state, provenAtMs } = workerOf(test) ?? {};
    assert.notEqual(state, 'confirmed');
    assert.equal(provenAtMs, undefined);
  });
});

describe('a worker without a known process and without a repeated probe', () => {
  it('stays confirmed, and its status reports that it is not observed', async () => {
    const worker = await startForgetfulWorker('http', 0);
    const process = { place: { kind: 'none' } } as const;
    const options = { http: `http://127.0.0.1:${worker.port}/`, body: '{generation}', confirms: true };
    using test = await activeHost(http.create(options, driverContext({ process })));
    await test.clock.advance(halfAnHourMs);
    await settleNow(test.host);
    assert.deepEqual([workerOf(test)?.state, workerOf(test)?.observed], ['confirmed', false]);
    assert.match(workerLines(reportOf(test)).join('\n'), /proved 30 min ago, not observed since/);
    await worker.kill();
  });

  it(
    'is observed if its process is known; a group with only a loader has nothing to observe',
    longCase,
    async () => {
      const worker = await startForgetfulWorker('http', 0);
      using test = await activeHost(httpDriver(worker.port));
      assert.equal(workerOf(test)?.observed, undefined);
      await worker.kill();
      const load = { run: ['true'], timeoutMs: 5000 } as const;
      using loaded = testHost({ groups: { app: { config: { load } } } });
      await loaded.publish('access', { 'policy.yaml': 'v1' }, { serial: 1 });
      await loaded.pull();
      assert.deepEqual([workerOf(loaded)?.state, workerOf(loaded)?.observed], ['confirmed', undefined]);
    },
  );
});
