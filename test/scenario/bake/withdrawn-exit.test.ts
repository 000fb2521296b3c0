// A withdrawn release is active, and what is offered in its place is not taken: the host goes to what settled before.
import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { afterExit } from '../../../src/agent/cycle/combined-result-rules.js';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { createWithdrawnExit } from '../../../src/agent/cycle/withdrawn-exit.js';
import { listTrees } from '../../../src/agent/generations/generations.js';
import { pause } from '../../../src/agent/select/pause.js';
import { WritError } from '../../../src/core/errors.js';
import { looksBelow } from '../../kit/disk/count-looks.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import type { TestHostOptions } from '../../kit/host/test-host.js';
import { confirms, refuses } from '../../kit/workers/scripted-driver.js';

const second = 1000;
const { signal } = new AbortController();
const rejected = { f: 'rejected' };

/** 1 has settled, and 2 too; the daemon refuses each release whose file says so. */
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

/** The publisher withdrew 2 and has published 3 since, while this host was away. */
async function offerThree({ test }: BakingHost, files: Record<string, string> = rejected): Promise<void> {
  await test.publish('access', files, { serial: 3, withdrawn: [2] });
}

/** 1 has settled; 2 was taken back because its worker died; 3 is active. */
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

describe('a withdrawn release whose successor is refused', () => {
  it('is left for the newest settled release, by a worker that refuses the successor', async () => {
    using host = await onTwo();
    await offerThree(host);
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
    assert.deepEqual(host.test.host.ledger.read().holds, [], 'a withdrawn serial needs no hold');
    assert.deepEqual(await exited(host), ['rejected', undefined, '1']);
  });

  it('is left for a release whose tree is read once', async () => {
    using host = await onTwo();
    await offerThree(host);
    const end = await host.test.sync();
    const [settled = ''] = listTrees(host.test.host.paths).flatMap(({ path }) =>
      basename(path).startsWith('1-') ? [path] : [],
    );
    const file = join(settled, 'f');
    const looks = await looksBelow(file, () => createWithdrawnExit().afterCycle(host.test.host, end, signal));
    assert.equal(host.active(), '1');
    assert.equal(looks.filter((path) => path === file).length, 1, looks.join());
  });

  it('is left at the next cycle where the first was of a version without this exit', async () => {
    using host = await onTwo();
    await offerThree(host);
    await host.test.pull();
    assert.deepEqual(await exited(host), ['rejected', 'activated', '1']);
  });

  it('is left where a person holds the successor', async () => {
    using host = await onTwo();
    await host.take(3);
    await rollBack(host.test.host, { by: 'anna', signal });
    assert.equal(host.active(), '2');
    await offerThree(host, { f: '3' });
    assert.deepEqual(await exited(host), ['deferred', 'activated', '1']);
  });

  it('stays where a person went to it by force after it was withdrawn', async () => {
    using host = await onTwo();
    await host.take(3);
    await host.test.publish('access', { f: '3' }, { serial: 3, withdrawn: [2] });
    await host.test.pull();
    const { result } = await rollBack(host.test.host, { generation: 2, force: true, by: 'anna', signal });
    assert.deepEqual([result.outcome, host.active()], ['activated', '2']);
    assert.deepEqual(await exited(host), ['deferred', undefined, '2']);
  });

  it('stays in a pause, behind a block, and where nothing older is allowed', async () => {
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

  it('is not left while the successor only cannot be downloaded', async () => {
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

  it('is tried again after a minute, then two, where the worker refuses the way back', async () => {
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

describe('a withdrawn release whose signed way back is refused', () => {
  it('is left for an older settled release', async () => {
    using host = await onTwo();
    await host.take(3);
    await host.pass(bakeMs + 70 * second);
    host.driver.workers.set('a', (generation) =>
      host.active() === '2' ? refuses('no')() : confirms(generation),
    );
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [3] });
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
  });

  it('is left for the settled release where the offered one was taken back before', async () => {
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

  it('is left for the offered release that was taken back before, where no other is allowed', async () => {
    using host = await onThreeAfterTwoFailed();
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [1, 3] });
    assert.deepEqual(await exited(host), ['activated', undefined, '2']);
  });

  it('stays in a pause, which the cycle reports in place of the refusal', async () => {
    using host = await onThreeAfterTwoFailed();
    await host.test.publish('access', { f: '2' }, { serial: 2, withdrawn: [3] });
    pause(host.test.host, { by: 'anna', reason: 'fair' });
    const { result } = await host.test.sync();
    assert.equal(result.bundles[0]?.problem?.code, 'ACTIVATION_PAUSED');
    assert.equal(host.active(), '3');
  });

  it('finds the tree of an older settled release after many generations', async () => {
    using host = await onTwo();
    for (const serial of [3, 4, 5, 6]) await host.take(serial);
    await host.pass(bakeMs + 70 * second);
    assert.equal(host.active(), '6');
    await host.test.publish('access', rejected, { serial: 7, withdrawn: [2, 3, 4, 5, 6] });
    assert.deepEqual(await exited(host), ['rolled-back', 'activated', '1']);
  });
});
