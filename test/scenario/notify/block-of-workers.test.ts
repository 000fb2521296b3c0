// A restore that failed because of a worker blocks the host until that worker uses the active generation, and no longer.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { handleResume } from '../../../src/agent/control/operator-requests.js';
import { createReconciler } from '../../../src/agent/daemon/reconcile-loop.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { recoverHost } from '../../../src/agent/startup/recover-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

/** Generation 2 was refused, and so was the restore of generation 1. */
async function blocked(): Promise<{ readonly test: TestHost; readonly driver: ScriptedDriver }> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.workers.set('a', (generation) => refuses(generation === 1 ? 'out of memory' : 'bad syntax')());
  await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
  const result = await test.pull();
  assert.deepEqual([result.outcome, result.exitCode, result.generation], ['blocked', 6, 1]);
  return { test, driver };
}

const { signal } = new AbortController();
const block = ({ host }: TestHost) => host.ledger.read().blocked;

describe('a block that a worker caused', () => {
  it('is reported by the next start, which restores again and counts no crash', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    driver.workers.set('a', confirms);
    const again = test.reopen();
    const end = await recoverHost(again, { cycle: 'c-ab', signal });
    const codes = end?.result.problems.map(({ code }) => code);
    assert.deepEqual([end?.result.outcome, codes], ['blocked', ['ACTIVATION_BLOCKED']]);
    assert.deepEqual([again.ledger.read().crashes, driver.notified.at(-1)], [undefined, 'a 1']);
    assert.equal(await recoverHost(again, { cycle: 'c-ac', signal }), undefined);
  });

  it('has no effect on a start after it ended by itself', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    driver.workers.set('a', confirms);
    await test.pull();
    assert.equal(block(test), undefined);
    assert.equal(await recoverHost(test.reopen(), { cycle: 'c-ab', signal }), undefined);
  });

  it('causes only a new notification at a start after an operator ended it', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    driver.workers.set('a', confirms);
    handleResume(test.host, 'anna');
    const again = test.reopen();
    const end = await recoverHost(again, { cycle: 'c-ab', signal });
    assert.deepEqual([end?.result.outcome, end?.result.problems], ['activated', []]);
    assert.deepEqual([again.ledger.read().crashes, driver.notified.at(-1)], [undefined, 'a 1']);
  });

  it('names the releases of both generations, and the active generation', async () => {
    const { test } = await blocked();
    using _ = test;
    assert.equal(
      block(test)?.reason,
      'generation 2 (access 2): app/a: bad syntax; then the restore of generation 1 (access 1) failed: app/a: out of memory; generation 1 is active',
    );
  });

  it('lasts while the worker refuses the active generation', async () => {
    const { test } = await blocked();
    using _ = test;
    assert.equal((await test.pull()).outcome, 'blocked');
    assert.equal(block(test)?.until, 'workers');
  });

  it('ends with the pull in which the worker accepts the active generation; the refusal of the release is kept', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    driver.workers.set('a', confirms);
    await test.pull();
    assert.equal(block(test), undefined);
    const [entry] = readHistory(test.host.paths, { limit: 9 });
    assert.match(
      entry?.reason ?? '',
      /^the block has ended, every worker uses the active generation: generation 2 /,
    );
    assert.deepEqual((await test.pull()).outcome, 'rejected');
    await test.publish('access', { 'policy.yaml': '3' }, { serial: 3 });
    assert.deepEqual((await test.pull()).outcome, 'activated');
  });

  it('ends also between two pulls, when a new process of the worker confirms', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    driver.workers.set('a', confirms);
    driver.processes.set('a', '77@1');
    await createReconciler().runRound(test.host, { signal: new AbortController().signal, loader: undefined });
    assert.equal(block(test), undefined);
  });

  it('differs from the block of a candidate that crashed the host, which only an operator ends', async () => {
    const { test, driver } = await blocked();
    using _ = test;
    const { until: _until, ...ofCrashes } = block(test) ?? { reason: '', atMs: 0, manifestDigests: [] };
    setLedger(test.host.ledger, { blocked: ofCrashes });
    driver.workers.set('a', confirms);
    assert.equal((await test.pull()).outcome, 'blocked');
    assert.notEqual(block(test), undefined);
  });
});
