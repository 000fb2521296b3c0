// A webhook by itself; the cases of any store (test/kit/fleet/cases/webhook-cases.ts) have its whole life.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';
import { receiver, refusedOffer, startWebhook, summaryWith } from '../../../kit/fleet/webhook-bench.js';

const refused = summaryWith({ offers: [refusedOffer] });

describe('a webhook that fails', () => {
  it('is FLEET_WEBHOOK_FAILED in the log, with the origin of the receiver and never its path', async () => {
    using dir = tempDir(memory());
    await using bench = await fleetBench(dir.join('store'), fakeClock());
    await using heard = await receiver();
    heard.answer = (response) => void response.writeHead(302, { location: '/elsewhere' }).end();
    await using hook = startWebhook(bench.store, { url: heard.url });
    hook.summary = refused;
    await hook.look();
    const [line] = hook.log.lines.filter(({ code }) => code === 'FLEET_WEBHOOK_FAILED');
    assert.deepEqual(
      [line?.['to'], line?.['alarms'], line?.['msg']],
      [heard.url.origin, 1, 'the receiver was not notified: it answered 302'],
    );
    assert.doesNotMatch(JSON.stringify(hook.log.lines), /secret/);
  });
});

describe('two servers with a webhook', () => {
  it('are one at a time: the second is quiet while the first holds the lease', async () => {
    using dir = tempDir(memory());
    const clock = fakeClock();
    await using bench = await fleetBench(dir.join('store'), clock);
    await using first = await receiver();
    await using second = await receiver();
    await using one = startWebhook(bench.store, { url: first.url }, clock);
    await one.look();
    await using two = startWebhook(bench.store, { url: second.url }, clock);
    one.summary = summaryWith();
    two.summary = refused;
    await two.look(3);
    assert.equal(second.bodies.length, 0);
  });
});
