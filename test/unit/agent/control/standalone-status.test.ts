import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  publishRefresh,
  publishStatus,
  watchRefreshes,
} from '../../../../src/agent/control/standalone-status.js';
import { contactIn, keepContact } from '../../../../src/agent/freshness/contact-memory.js';
import { startObservation } from '../../../../src/agent/report/bake-status.js';
import { readStatusFile } from '../../../../src/agent/report/status-file.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import type { FreshnessReport } from '../../../../src/core/status/freshness.js';
import { growOld, signal, site, stop } from '../../../kit/agent/stale-site.js';
import { until } from '../../../kit/assert/until.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const minute = 60_000;
const release = { staleAfterMs: 60 * minute };

/** A pull without an agent: runs its cycle and records the result. */
async function pullOnce(test: TestHost): Promise<string> {
  const { host } = test;
  const { result, refresh } = await test.sync();
  const keeper = keepContact(readStatusFile(host.paths), host.clock);
  keeper.note(refresh);
  publishStatus(host, '0.0.0', { last: result, contact: keeper.read() });
  return result.outcome;
}

/** @returns the freshness that `writ status` shows without an agent */
function freshness({ host }: TestHost): FreshnessReport {
  const contact = { contact: contactIn(readStatusFile(host.paths)) };
  return statusReport(host, { version: '0.0.0', state: 'stop', problems: [], contact }).freshness;
}

describe('a host without an agent', () => {
  for (const limits of [{ staleAfterMs: 5 * minute }, { staleAfterMs: 60 * minute, maxStaleMs: 5 * minute }])
    it(`is fresh after each pull that reached the server, also without a change: ${Object.keys(limits)}`, async () => {
      using test = testHost({ config: { freshness: { release, ...limits } } });
      await test.publish('access', { f: '1' }, { serial: 1 });
      assert.equal(await pullOnce(test), 'activated');
      for (let pulls = 0; pulls < 3; pulls += 1) {
        await test.clock.advance(4 * minute);
        assert.equal(await pullOnce(test), 'unchanged');
        await test.clock.advance(2 * minute);
        const { state, ageMs, overdueSinceMs } = freshness(test);
        assert.deepEqual([state, ageMs, overdueSinceMs], ['fresh', 2 * minute, undefined]);
      }
      await test.clock.advance(4 * minute);
      assert.equal(freshness(test).state, 'stale');
    });

  it('runs onStale once at a refresh during a download that exceeds maxStale', async () => {
    using it = site(stop);
    await growOld(it);
    const watch = watchRefreshes(it.test.host, { version: '0.0.0', contact: it.contact, signal });
    watch.onRefreshed();
    await until(() => it.lines().length > 0);
    await watch.end();
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('has the time of a refresh during a download, but not before its first status', async () => {
    using test = testHost();
    await test.publish('access', { f: '1' }, { serial: 1 });
    const during = keepContact(undefined, test.clock);
    during.note({ atMs: test.clock.nowMs() });
    publishRefresh(test.host, '0.0.0', during.read());
    assert.equal(readStatusFile(test.host.paths), undefined);
    await pullOnce(test);
    await test.clock.advance(minute);
    const atMs = test.clock.nowMs();
    during.note({ atMs });
    publishRefresh(test.host, '0.0.0', during.read());
    assert.equal(freshness(test).verifiedAtMs, atMs);
  });

  it('keeps the observation of another command until its end', async () => {
    using test = testHost();
    const { host, clock } = test;
    const observation = startObservation(['access'], clock.nowMs());
    publishStatus(host, '0.0.0', { observation });
    publishStatus(host, '0.0.0', { contact: { contact: {} } });
    assert.deepEqual(readStatusFile(host.paths)?.observation, observation);
    await clock.advance(30_000);
    publishStatus(host, '0.0.0', { contact: { contact: {} } });
    assert.equal(readStatusFile(host.paths)?.observation, undefined);
  });

  it('keeps the time of the last success at a command that does not reach the server', async () => {
    using test = testHost();
    await test.publish('access', { f: '1' }, { serial: 1 });
    await pullOnce(test);
    const { verifiedAtMs } = freshness(test);
    await test.clock.advance(minute);
    publishStatus(test.host, '0.0.0', {});
    assert.equal(freshness(test).verifiedAtMs, verifiedAtMs);
    assert.notEqual(verifiedAtMs, undefined);
  });
});
