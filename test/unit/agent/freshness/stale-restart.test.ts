// Old policy over a restart, and policy that is fresh again.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createStaleWatch } from '../../../../src/agent/freshness/stale-watch.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import type { FreshnessConfig } from '../../../../src/core/config/config.js';
import { growOld, hourMs, minuteMs, shell, signal, site, stop } from '../../../kit/agent/stale-site.js';

const stopAndStart = (out: string): Partial<FreshnessConfig> => ({
  ...stop(out),
  onFresh: shell(`echo start >> ${out}`),
});

describe('a restart', () => {
  it('does not run a command again that has succeeded in this boot', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('of the machine runs it again, because the effect of the command may be lost', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    it.restart('boot-2');
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'stop']);
  });

  it('uses no recorded state before its first attempt has ended, or ten minutes have passed', async () => {
    using it = site(stop);
    await it.test.clock.advance(2 * hourMs);
    it.restart();
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), []);
    await it.test.clock.advance(11 * minuteMs);
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('continues the period with any clock', async () => {
    using it = site(stopAndStart);
    await growOld(it);
    await it.check();
    it.test.clock.setWallTime(Date.UTC(2026, 10, 1));
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
    assert.deepEqual([it.freshness().state, it.freshness().overdueSinceMs !== undefined], ['stale', true]);
  });
});

describe('policy that is fresh again', () => {
  it('runs the other command once, and only after a verified answer', async () => {
    using it = site(stopAndStart);
    await growOld(it);
    await it.check();
    it.attempt('METADATA_EXPIRED');
    await it.check();
    assert.deepEqual(it.lines(), ['stop']);
    it.attempt();
    assert.equal(await it.check(), 'changed');
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), ['stop', 'start']);
    assert.equal(it.test.host.ledger.read().stale, undefined);
    const [entry] = readHistory(it.test.host.paths, { limit: 1 });
    assert.deepEqual([entry?.result.outcome, entry?.result.problems], ['unchanged', []]);
    assert.match(entry?.reason ?? '', /^fresh again; .*onFresh: exit 0$/);
  });

  it('begins a new period the next time', async () => {
    using it = site(stopAndStart);
    for (let times = 0; times < 2; times += 1) {
      await growOld(it);
      await it.check();
      it.attempt();
      await it.check();
    }
    assert.deepEqual(it.lines(), ['stop', 'start', 'stop', 'start']);
  });

  it('does not run the other command if the first one never succeeded', async () => {
    using it = site((out) => ({ onStale: shell('exit 1'), onFresh: shell(`echo start >> ${out}`) }));
    await growOld(it);
    await it.check();
    it.attempt();
    await it.check();
    assert.deepEqual([it.lines(), it.test.host.ledger.read().stale], [[], undefined]);
  });

  it('continues to try the other command across a restart and new failures of the server', async () => {
    using it = site((out) => ({
      ...stop(out),
      onFresh: shell(`echo try >> ${out}; test -e ${out}.fixed`),
    }));
    await growOld(it);
    await it.check();
    it.attempt();
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'try']);
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.deepEqual(it.lines(), ['stop', 'try', 'try']);
    assert.equal(it.freshness().overdueSinceMs, undefined);
  });

  it('also results from a configuration without the limit', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    const host = it.test.reopen({
      config: { freshness: { staleAfterMs: hourMs, release: { staleAfterMs: hourMs } } },
    });
    await createStaleWatch('boot-1').check(host, it.contact, signal);
    assert.equal(host.ledger.read().stale, undefined);
  });
});
