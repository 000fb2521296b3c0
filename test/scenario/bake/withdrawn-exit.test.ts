// A withdrawn release is active, and the offered release is not accepted: the host moves to a release that settled before.
import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { afterExit } from '../../../src/agent/cycle/combined-result-rules.js';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { createWithdrawnExit } from '../../../src/agent/cycle/withdrawn-exit.js';
import { listTrees } from '../../../src/agent/generations/generations.js';
import { pause } from '../../../src/agent/select/pause.js';
import { WritError } from '../../../src/core/errors.js';
import { longCase } from '../../kit/assert/long-case.js';
import { readCallsBelow } from '../../kit/disk/count-looks.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import type { TestHostOptions } from '../../kit/host/test-host.js';
import { confirms, refuses } from '../../kit/workers/scripted-driver.js';

const second = 1000;
const { signal } = new AbortController();
const rejected = { f: 'rejected' };

/** 1 and 2 have settled; the daemon refuses each release with `rejected` in its file. */
async function onTwo(options: TestHostOptions = {}): Promise<BakingHost> {
  const driver = supervisedDriver(['a']);
  const host = bakingHost(driver, options);
  driver.workers.set('a', (generation) =>
    host.active() === 'rejected' ? refuses('no')() : confirms(generation),
  );
  for (const serial of [1, 2]) {
    assert.equal((await host.take(serial)).outcome, 'activated');
    await host.pass(bakeMs + 70 * second);
  }
  return host;
}

/** The publisher withdrew 2 and published 3 while this host was offline. */
async function offerThree({ test }: BakingHost, files: Record<string, string> = rejected): Promise<void> {
  await test.publish('access', files, { serial: 3, withdrawn: [2] });
}

/** 1 has settled; 2 was rolled back because its worker died; 3 is active. */
async function onThreeAfterTwoFailed(): Promise<BakingHost> {
  const host = bakingHost(supervisedDriver(['a']));
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  await host.take(2);
  host.driver.replace('a');
  await host.pass(10 * second);
  assert.equal(host.active(), '1');
  assert.equal((await host.take(3)).outcome, 'activated');
  return host;
}

const exited = async (host: BakingHost, exit = createWithdrawnExit()) => {
  const end = await host.test.sync();
  const left = await exit.afterCycle(host.test.host, end, signal);
  return [end.result.outcome, left?.result.outcome, host.active()];
};

describe('a withdrawn release with a refused successor', () => {
  it('is replaced by the newest settled release when the worker refuses the successor', async () => {
    using host = await onTwo();
    await offerThree(host);
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
    assert.deepEqual(host.test.host.ledger.read().holds, [], 'a withdrawn serial needs no hold');
    assert.deepEqual(await exited(host), ['rejected', undefined, '1']);
  });

  it('is replaced by a release after one read of its tree', async () => {
    using host = await onTwo();
    await offerThree(host);
    const end = await host.test.sync();
    const [settled = ''] = listTrees(host.test.host.paths).flatMap(({ path }) =>
      basename(path).startsWith('1-') ? [path] : [],
    );
    const file = join(settled, 'f');
    const looks = await readCallsBelow(file, () =>
      createWithdrawnExit().afterCycle(host.test.host, end, signal),
    );
    assert.equal(host.active(), '1');
    assert.equal(looks.filter((path) => path === file).length, 1, looks.join());
  });

  it(
    'is replaced at the next cycle when the first cycle ran in a version without exit rollbacks',
    longCase,
    async () => {
      using host = await onTwo();
      await offerThree(host);
      await host.test.pull();
      assert.deepEqual(await exited(host), ['rejected', 'activated', '1']);
    },
  );

  it('is replaced when an operator holds the successor', longCase, async () => {
    using host = await onTwo();
    await host.take(3);
    await rollBack(host.test.host, { by: 'anna', signal });
    assert.equal(host.active(), '2');
    await offerThree(host, { f: '3' });
    assert.deepEqual(await exited(host), ['deferred', 'activated', '1']);
  });

  it('stays when an operator activated it by force after its withdrawal', longCase, async () => {
    using host = await onTwo();
    await host.take(3);
    await host.test.publish('access', { f: '3' }, { serial: 3, withdrawn: [2] });
    await host.test.pull();
    const { result } = await rollBack(host.test.host, { generation: 2, force: true, by: 'anna', signal });
    assert.deepEqual([result.outcome, host.active()], ['activated', '2']);
    assert.deepEqual(await exited(host), ['deferred', undefined, '2']);
  });

  it('stays in a pause, in a block, and when no older release is allowed', longCase, async () => {
    using paused = await onTwo();
    await offerThree(paused);
    pause(paused.test.host, { by: 'anna', reason: 'fair' });
    assert.deepEqual(await exited(paused), ['deferred', undefined, '2']);

    using blocked = await onTwo();
    await offerThree(blocked);
    const block = { reason: 'x', atMs: blocked.test.clock.nowMs(), manifestDigests: [] };
    setLedger(blocked.test.host.ledger, { blocked: block });
    assert.equal((await exited(blocked))[1], undefined);

    using without = await onTwo();
    await without.test.publish('access', rejected, { serial: 3, withdrawn: [1, 2] });
    assert.deepEqual(await exited(without), ['rolled-back', undefined, '2']);
  });

  it('stays while only the download of the successor fails', longCase, async () => {
    let isAway = false;
    using host = await onTwo({
      source: (source) => ({
        ...{ location: source.location, close: () => source.close() },
        fetch: (path, options) => source.fetch(path, options),
        stream: (path, options) => {
          if (isAway) throw new WritError('SERVER_UNREACHABLE', 'away');
          return source.stream(path, options);
        },
      }),
    });
    await offerThree(host, { f: '3' });
    isAway = true;
    assert.deepEqual(await exited(host), ['failed', undefined, '2']);
  });

  it('makes the host retry its exit rollback after a minute, then two, when the worker refuses it', async () => {
    using host = await onTwo();
    await offerThree(host);
    host.driver.workers.set('a', (generation) =>
      host.active() === '2' ? confirms(generation) : refuses('no')(),
    );
    const exit = createWithdrawnExit();
    const outcomes: unknown[] = [];
    for (let seconds = 0; seconds <= 200; seconds += 20) {
      const [, left] = await exited(host, exit);
      if (left !== undefined) outcomes.push([seconds, left]);
      await host.test.clock.advance(20 * second);
    }
    assert.deepEqual(outcomes, [
      [0, 'rolled-back'],
      [60, 'rolled-back'],
      [180, 'rolled-back'],
    ]);
    assert.equal(host.active(), '2');
  });
});

describe('a withdrawn release with a refused older offer', () => {
  it('is replaced by an older settled release', longCase, async () => {
    using host = await onTwo();
    await host.take(3);
    await host.pass(bakeMs + 70 * second);
    host.driver.workers.set('a', (generation) =>
      host.active() === '2' ? refuses('no')() : confirms(generation),
    );
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [3] });
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
  });

  it('is replaced by the settled release when the offered one was rolled back before', async () => {
    using host = await onThreeAfterTwoFailed();
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [3] });
    const end = await host.test.sync();
    assert.deepEqual([end.result.outcome, host.active()], ['rejected', '3'], 'no worker got 2 again');
    assert.equal(end.result.bundles[0]?.problem?.code, 'REMEMBERED_REFUSAL');
    const left = await createWithdrawnExit().afterCycle(host.test.host, end, signal);
    assert.equal(host.active(), '1');
    assert.ok(left !== undefined);
    const pulled = afterExit(end.result, { alarm: 'ACTIVE_WITHDRAWN', result: left.result });
    assert.deepEqual(
      pulled.bundles.map(({ fromSerial, toSerial, activeSerial }) => [fromSerial, toSerial, activeSerial]),
      [[3, 2, 1]],
    );
    assert.deepEqual(await exited(host), ['rejected', undefined, '1']);
  });

  it('is replaced by the offered release that was rolled back before when no other is allowed', async () => {
    using host = await onThreeAfterTwoFailed();
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [1, 3] });
    assert.deepEqual(await exited(host), ['activated', undefined, '2']);
  });

  it('stays in a pause, which the cycle reports instead of the refusal', async () => {
    using host = await onThreeAfterTwoFailed();
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [3] });
    pause(host.test.host, { by: 'anna', reason: 'fair' });
    const { result } = await host.test.sync();
    assert.equal(result.bundles[0]?.problem?.code, 'ACTIVATION_PAUSED');
    assert.equal(host.active(), '3');
  });

  it('is replaced by the tree of an older settled release after many generations', async () => {
    using host = await onTwo();
    for (const serial of [3, 4, 5, 6]) await host.take(serial);
    await host.pass(bakeMs + 70 * second);
    assert.equal(host.active(), '6');
    await host.test.publish('access', rejected, { serial: 7, withdrawn: [2, 3, 4, 5, 6] });
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
  });
});
