// Status and metrics of a fleet server, with an open store and with a closed one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';
import { ownRoutesOf } from '../../../kit/fleet/own-routes.js';

describe('the routes of a fleet server about itself', () => {
  it('run the statements of one request for a flood of requests', longCase, async () => {
    using directory = tempDir(memory());
    let statements = 0;
    const clock = fakeClock();
    await using bench = await fleetBench(directory.join('store'), clock, { onSql: () => statements++ });
    const ask = await ownRoutesOf(bench);
    const costOf = async (url: string, times: number): Promise<number> => {
      const before = statements;
      await Promise.all(Array.from({ length: times }, () => ask(url)));
      for (let at = 0; at < times; at++) await ask(url);
      return statements - before;
    };
    for (const url of ['/healthz', '/metrics']) {
      const first = await costOf(url, 1);
      assert.ok(first >= 1, url);
      assert.equal(await costOf(url, 500), 0, url);
      await clock.advance(10_000);
      assert.equal(await costOf(url, 500), first, url);
    }
  });

  it('report an unreachable store: no health, and a metric for it', longCase, async () => {
    using directory = tempDir(memory());
    const clock = fakeClock();
    const bench = await fleetBench(directory.join('store'), clock);
    const ask = await ownRoutesOf(bench);
    assert.match(String(await ask('/metrics')), /^writ_fleet_store_up 1$/m);
    assert.deepEqual(Object.keys((await ask('/healthz')) as object), ['status', 'version']);
    await bench.store.close();
    await clock.advance(10_000);
    await assert.rejects(ask('/healthz'));
    const text = String(await ask('/metrics'));
    assert.match(text, /^writ_fleet_store_up 0$/m);
    assert.doesNotMatch(text, /^writ_fleet_hosts\{/m);
  });

  it('show names for a token of people alone, and refuse another one', async () => {
    using directory = tempDir(memory());
    const clock = fakeClock();
    await using bench = await fleetBench(directory.join('store'), clock);
    const ask = await ownRoutesOf(bench);
    const { token } = await bench.token({ kind: 'people', role: 'view' });
    const host = await bench.token();
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
    assert.match(String(await ask('/metrics', bearer(token))), /writ_fleet_channels_left_out 0/);
    assert.doesNotMatch(String(await ask('/metrics')), /writ_fleet_channel/);
    await rejectsCode('FLEET_TOKEN_REFUSED', ask('/metrics', bearer(host.token)) as Promise<unknown>);
  });
});
