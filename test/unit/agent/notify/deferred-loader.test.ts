// A loader or probe that defers, or gives no verdict, at each attempt. Each attempt swaps and restores, so the attempts need a
// backoff and must not run at every poll.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { endExpiredWaits } from '../../../../src/agent/control/operator-requests.js';
import { endFailedWaits, waitingNow } from '../../../../src/agent/select/waits.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const minuteMs = 60_000;
const codes = ({ problems }: CycleResult): string[] => problems.map((one) => one.code);

type Command = [string, ...string[]];

interface World extends Disposable {
  readonly test: TestHost;
  /** How often the link was moved to a new release since the first one was active. */
  swaps(): number;
  /** From now on the loader succeeds. */
  ready(): void;
  publish(): Promise<unknown>;
}

/** Version 1 is active, and version 2 is published, which the loader defers. */
async function world(end = 'exit 75'): Promise<World> {
  const dir = tempDir();
  const busy = dir.join('busy');
  const driver = scriptedDriver({ a: confirms });
  const load = { run: ['sh', '-c', `! test -e ${busy} || ${end}`] as Command, timeoutMs: 60_000 };
  const test = testHost({
    bundles: [{ name: 'access' }, { name: 'zones' }],
    groups: { app: { driver, config: { uses: ['access'], load } } },
  });
  let serial = 0;
  const publish = (): Promise<unknown> => {
    serial += 1;
    return test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
  };
  await publish();
  await test.publish('zones', { 'a.zone': '1' }, { serial: 1 });
  assert.equal((await test.pull()).outcome, 'activated');
  driver.announced.length = 0;
  fs.writeFileSync(busy, '');
  await publish();
  return {
    test,
    publish,
    swaps: () => driver.announced.filter((one) => (one?.generation ?? 0) > 1).length,
    ready: () => fs.rmSync(busy),
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe('a loader that defers', () => {
  it('runs with a growing backoff, and not at every poll', longCase, async () => {
    using host = await world();
    const { test, swaps } = host;
    const counts: number[] = [];
    for (let hour = 0; hour < 2; hour++) {
      for (let poll = 0; poll < 12; poll++) {
        assert.deepEqual(codes(await test.pull()), ['LOADER_DEFERRED']);
        await test.clock.advance(5 * minuteMs);
      }
      counts.push(swaps());
    }
    // At minute 0, 5, 10, 15, 25, 45 and 80.
    assert.deepEqual(counts, [6, 7]);
    assert.equal(test.read('access/policy.yaml'), '1');
  });

  it('has its next attempt in the report and in the status, and the agent polls at that time', async () => {
    using host = await world();
    const { test, swaps, ready } = host;
    const untilMs = test.clock.nowMs() + minuteMs;
    const first = await test.pull();
    assert.deepEqual([first.exitCode, first.problems[0]?.facts['untilMs']], [8, untilMs]);
    const again = await test.sync();
    assert.deepEqual([again.result.exitCode, again.result.problems[0]?.facts['untilMs']], [8, untilMs]);
    assert.equal(again.result.bundles[0]?.outcome, 'deferred');
    assert.deepEqual(
      again.progress.steps.map((one) => one.step),
      ['refresh', 'select'],
      'nothing is fetched meanwhile',
    );
    const { ledger, clock } = test.host;
    assert.deepEqual(waitingNow(ledger.read(), clock.nowMs()), [
      { bundle: 'access', serial: 2, groups: ['app'], untilMs },
    ]);
    assert.equal(endExpiredWaits(test.host), false);
    await test.clock.advance(minuteMs);
    assert.deepEqual([endExpiredWaits(test.host), endExpiredWaits(test.host)], [true, false]);
    ready();
    assert.equal((await test.pull()).outcome, 'activated');
    assert.deepEqual([swaps(), test.read('access/policy.yaml')], [2, '2']);
    assert.deepEqual(ledger.read().waiting, undefined, 'no failed attempt is counted any more');
  });

  it('does not run again after a restart of the agent', async () => {
    using host = await world();
    await host.test.pull();
    assert.deepEqual(codes(await cycleOn(host.test.reopen())), ['LOADER_DEFERRED']);
    assert.equal(host.swaps(), 1);
  });

  it('runs at once, and only once, after the clock was set back', async () => {
    using host = await world();
    const { test, swaps } = host;
    await test.pull();
    test.clock.setWallTime(test.clock.nowMs() - 5 * minuteMs);
    for (let poll = 0; poll < 3; poll++) await test.pull();
    assert.equal(swaps(), 2);
  });

  it('runs at once under another configuration', async () => {
    using host = await world();
    const { test, swaps } = host;
    await test.pull();
    endFailedWaits(test.host);
    assert.deepEqual(codes(await test.pull()), ['LOADER_DEFERRED']);
    assert.equal(swaps(), 2);
  });

  it('delays no other bundle', async () => {
    using host = await world();
    const { test } = host;
    await test.pull();
    await test.publish('zones', { 'a.zone': '2' }, { serial: 2 });
    const { bundles } = await test.pull();
    assert.deepEqual(
      bundles.map((one) => one.outcome),
      ['deferred', 'activated'],
    );
  });

  it('runs at once for another release, or with --force', async () => {
    using host = await world();
    const { test, publish, swaps, ready } = host;
    await test.pull();
    await publish();
    const untilMs = test.clock.nowMs() + 2 * minuteMs;
    assert.equal((await test.pull()).problems[0]?.facts['untilMs'], untilMs, 'the second deferral');
    assert.equal(swaps(), 2);
    ready();
    assert.equal((await test.pull()).exitCode, 8);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('runs each time on a host without a policy, because no worker uses another one', async () => {
    const load = { run: ['sh', '-c', 'exit 75'] as Command, timeoutMs: 60_000 };
    using test = testHost({ groups: { app: { config: { uses: ['access'], load } } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    assert.deepEqual(codes(await test.pull()), ['LOADER_DEFERRED']);
    assert.equal(test.host.ledger.read().waiting, undefined);
    assert.equal((await test.sync()).progress.steps.at(-1)?.step, 'restore');
  });
});

/** Breaks for new releases only, because a loader that also breaks during the restore ends in a block. */
const broken = 'grep -qx 1 {bundle}/policy.yaml || exit 127';

describe('a loader that gives no verdict', () => {
  it('runs with a backoff too, and its release is not refused', async () => {
    using host = await world(broken);
    const { test, swaps, ready } = host;
    const untilMs = test.clock.nowMs() + minuteMs;
    const first = await test.pull();
    assert.deepEqual([first.exitCode, codes(first)], [1, ['LOADER_BROKEN']]);
    assert.equal(first.problems[0]?.facts['untilMs'], untilMs);
    const { result, progress } = await test.sync();
    assert.deepEqual([result.exitCode, codes(result), progress.steps.length], [1, ['LOADER_BROKEN'], 2]);
    assert.deepEqual([swaps(), test.host.refusals.read().refusals], [1, []]);
    ready();
    await test.clock.advance(minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('runs at once with --force after a repair', longCase, async () => {
    using host = await world(broken);
    await host.test.pull();
    host.ready();
    assert.equal((await host.test.pull({ force: 'yes' })).outcome, 'activated');
  });
});

describe('a probe that gives no verdict', longCase, () => {
  it('causes a swap and a restore with a growing backoff, and not at every poll', async () => {
    const driver = scriptedDriver({ a: confirms });
    const script = `grep -q 1 {bundle}/f || exit 127`;
    const probe = { run: ['sh', '-c', script] as Command, timeoutMs: 60_000 };
    using test = testHost({ groups: { app: { driver, config: { uses: ['access'], probe } } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    await test.publish('access', { f: '2' }, { serial: 2 });
    driver.notified.length = 0;
    const counts: number[] = [];
    for (let poll = 0; poll < 8; poll++) {
      assert.deepEqual(codes(await test.pull()), ['PROBE_BROKEN']);
      counts.push(driver.notified.length);
      await test.clock.advance(minuteMs);
    }
    // At minute 0, 1, 3 and 7, each time a swap and a restore.
    assert.deepEqual(counts, [2, 4, 4, 6, 6, 6, 6, 8]);
    assert.equal(test.read('access/f'), '1');
  });
});
