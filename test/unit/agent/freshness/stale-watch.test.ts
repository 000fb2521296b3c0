// Policy older than `maxStale`: the agent runs the command of the operator once for each period and boot, and repeats it
// until it succeeds. Only a verified answer ends the period.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createStaleWatch } from '../../../../src/agent/freshness/stale-watch.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import type { FreshnessConfig } from '../../../../src/core/config/config.js';
import {
  facts,
  growOld,
  hourMs,
  minuteMs,
  shell,
  signal,
  site,
  stop,
} from '../../../kit/agent/stale-site.js';
import { testHost } from '../../../kit/host/test-host.js';

describe('policy older than maxStale', () => {
  it('runs the command once, and not before that age', async () => {
    using it = site(stop);
    await it.test.clock.advance(hourMs);
    it.attempt('SERVER_UNREACHABLE');
    assert.equal(await it.check(), 'same');
    assert.deepEqual(it.lines(), []);
    await it.test.clock.advance(minuteMs);
    assert.equal(await it.check(), 'changed');
    for (let polls = 0; polls < 3; polls += 1) {
      await it.test.clock.advance(hourMs);
      it.attempt('SERVER_UNREACHABLE');
      assert.equal(await it.check(), 'same');
    }
    assert.deepEqual(it.lines(), ['stop']);
  });

  it('passes state, age, limit, code and role to the command', async () => {
    using it = site((out) => ({ onStale: shell(`env | grep ^WRIT_ | sort >> ${out}`) }));
    await it.test.clock.advance(61 * minuteMs);
    it.attempt('SIGNATURE_THRESHOLD', 'timestamp');
    await it.check();
    const notified = it.lines().filter((line) => !line.startsWith('WRIT_SCRATCH_DIR='));
    assert.deepEqual(notified, [
      'WRIT_MAX_STALE_SECONDS=3600',
      'WRIT_STALE_AGE_SECONDS=3660',
      'WRIT_STALE_CODE=SIGNATURE_THRESHOLD',
      'WRIT_STALE_ROLE=timestamp',
      'WRIT_STALE_STATE=refused',
    ]);
  });

  it('is a history event with its code, and a problem of the status until it ends', async () => {
    using it = site(stop);
    await growOld(it);
    await it.check();
    const [entry] = readHistory(it.test.host.paths, { limit: 10 });
    assert.deepEqual(
      [entry?.result.trigger, entry?.result.outcome, entry?.reason],
      ['stale', 'degraded', 'onStale: exit 0'],
    );
    const problem = entry?.result.problems[0];
    assert.deepEqual([problem?.code, problem?.facts['code']], ['POLICY_STALE', 'SERVER_UNREACHABLE']);
    const codes = () =>
      statusReport(it.test.host, { ...facts, contact: it.contact.read() }).problems.map((one) => one.code);
    assert.deepEqual(codes(), ['POLICY_STALE']);
    it.attempt();
    await it.check();
    assert.deepEqual(codes(), []);
  });

  it('without a command is an event too, once', async () => {
    using it = site(() => ({}));
    await growOld(it);
    await it.check();
    await it.check();
    assert.deepEqual(
      readHistory(it.test.host.paths, { limit: 10 }).map((one) => one.result.problems[0]?.code),
      ['POLICY_STALE'],
    );
  });

  it('without a limit is not an event, and does not write the ledger', async () => {
    using it = site(() => ({}));
    using unlimited = testHost();
    await unlimited.clock.advance(1000 * hourMs);
    assert.equal(await createStaleWatch('b').check(unlimited.host, it.contact, signal), 'same');
    assert.equal(fs.existsSync(unlimited.host.paths.ledger), false);
    assert.equal(await it.check(), 'same');
    assert.equal(fs.existsSync(it.test.host.paths.ledger), false);
  });
});

describe('a command that fails', () => {
  const failing = (out: string): Partial<FreshnessConfig> => ({
    onStale: shell(`echo try >> ${out}; echo disk full; test -e ${out}.fixed`),
  });

  it('is run again at growing intervals until it exits with 0', async () => {
    using it = site(failing);
    await growOld(it);
    const triesAfter = async (byMs: number): Promise<number> => {
      await it.test.clock.advance(byMs);
      await it.check();
      return it.lines().length;
    };
    assert.deepEqual([await triesAfter(0), await triesAfter(29_000), await triesAfter(2000)], [1, 1, 2]);
    assert.deepEqual([await triesAfter(40_000), await triesAfter(21_000)], [2, 3]);
    fs.writeFileSync(`${it.test.directory}/x`, '');
    const [entry, ...others] = readHistory(it.test.host.paths, { limit: 10 });
    assert.deepEqual(
      [entry?.result.problems.map((one) => one.code), others],
      [['POLICY_STALE', 'STALE_COMMAND_FAILED'], []],
    );
    assert.match(entry?.reason ?? '', /^onStale: exit 1\ndisk full$/);
  });

  it('is tried at once after a restart, and not after a success', async () => {
    using it = site(failing);
    await growOld(it);
    await it.check();
    it.restart();
    it.attempt('SERVER_UNREACHABLE');
    await it.check();
    assert.equal(it.lines().length, 2);
    assert.equal(it.test.reopen().ledger.read().stale?.ranBootId, undefined);
  });

  it('has bounded output', async () => {
    using it = site(() => ({ onStale: shell('yes | head -c 100000; exit 3') }));
    await growOld(it);
    await it.check();
    const [entry] = readHistory(it.test.host.paths, { limit: 1 });
    assert.ok((entry?.reason?.length ?? 0) < 3000);
  });

  it('that does not exist or takes too long is a failure too, and does not end the agent', async () => {
    for (const hook of [
      { run: ['/does/not/exist'], timeoutMs: 1000 } as const,
      { run: ['sleep', '60'], timeoutMs: 50 } as const,
    ]) {
      using it = site(() => ({ onStale: hook }));
      await growOld(it);
      await it.check();
      const [entry] = readHistory(it.test.host.paths, { limit: 1 });
      assert.equal(entry?.result.problems[1]?.code, 'STALE_COMMAND_FAILED');
    }
  });
});
