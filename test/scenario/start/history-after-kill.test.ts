// Kills a host before and after every operation between its swap and the line in its history, then starts it again: the
// active release is in the history, once, after each kill. The operations are recorded from a run, so that a new one gets its cases.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { activeGenerationNumber } from '../../../src/agent/generations/generations.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { HistoryEntry } from '../../../src/core/protocol/control-protocol.js';
import { operationTrap } from '../../kit/disk/operation-trap.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const signal = new AbortController().signal;

async function pullAndRecord(host: Host, cycle: string): Promise<void> {
  const end = await syncCycle(host, { cycle, trigger: 'poll', force: 'no', signal });
  createRecorder().record(host, end, {});
}

async function start(host: Host): Promise<void> {
  const { recovered } = await startHost(host, { cycle: newCycleId(), signal });
  if (recovered !== undefined) createRecorder().record(host, recovered, {});
}

/** A host at generation 1, with notified workers and a recorded cycle; serial 2 is published. */
async function hostWithNews(): Promise<TestHost> {
  const test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }) } } });
  await test.publish('access', { 'a.yaml': 'version: 1\n' }, { serial: 1, revision: 'one' });
  await pullAndRecord(test.host, 'c-01');
  await test.publish('access', { 'a.yaml': 'version: 2\n' }, { serial: 2, revision: 'two' });
  return test;
}

const linesOf = ({ host }: TestHost): HistoryEntry[] => readHistory(host.paths, { limit: 100 });

/** Labels of a cycle that is not disturbed, from its swap on. */
async function operations(): Promise<{ first: number; labels: readonly string[] }> {
  using test = await hostWithNews();
  const trap = operationTrap();
  await pullAndRecord(test.reopen({ observer: trap }), 'c-02');
  return { first: trap.seen.findIndex((op) => op.startsWith('swap.')), labels: trap.seen };
}

describe('the history of a host that was killed after its swap', async () => {
  const { first, labels } = await operations();
  assert.ok(labels.includes('history.append'), 'the run under test writes its line');
  for (const [index, label] of labels.entries()) {
    if (index < first) continue;
    for (const when of ['before', 'after'] as const) {
      it(`has a line for what is active, once: killed ${when} ${label} (${index})`, async () => {
        using test = await hostWithNews();
        const trap = operationTrap();
        trap.arm(index, when);
        await pullAndRecord(test.reopen({ observer: trap }), 'c-02').catch(() => undefined);
        assert.ok(trap.isSprung());
        await start(test.reopen());
        await start(test.reopen());
        const active = activeGenerationNumber(test.host.paths);
        const brought = linesOf(test).filter((one) => one.result.outcome === 'activated');
        const moves = brought.map(({ result }) => {
          const serials = result.bundles.map(({ fromSerial, toSerial }) => [fromSerial, toSerial]);
          return [result.changed, result.fromGeneration, result.generation, ...serials];
        });
        const first = [true, undefined, 1, [undefined, 1]];
        assert.deepEqual(moves, active === 2 ? [[true, 1, 2, [1, 2]], first] : [first]);
        if (active === 2) assert.equal(readHistory(test.host.paths, { limit: 5, cycle: 'c-02' }).length, 1);
      });
    }
  }

  it('has all known facts of the cycle', async () => {
    using test = await hostWithNews();
    const trap = operationTrap();
    trap.arm(labels.indexOf('history.append'), 'before');
    await pullAndRecord(test.reopen({ observer: trap }), 'c-02').catch(() => undefined);
    await start(test.reopen());
    const [line] = readHistory(test.host.paths, { limit: 1, cycle: 'c-02' });
    const { result, steps, by, reason } = line!;
    const { startedAtMs, workers, ...rest } = result;
    assert.deepEqual(rest, {
      schema: 1,
      type: 'pull.result',
      cycle: 'c-02',
      trigger: 'recovery',
      outcome: 'activated',
      exitCode: 0,
      confirmed: true,
      changed: true,
      fromGeneration: 1,
      generation: 2,
      bundles: [
        {
          bundle: 'access',
          channel: 'stable',
          outcome: 'activated',
          fromSerial: 1,
          toSerial: 2,
          revision: 'two',
        },
      ],
      problems: [],
      warnings: [],
      durationMs: 0,
    });
    assert.deepEqual([steps, by], [[], undefined]);
    assert.match(reason ?? '', /its agent ended before it could write it/);
    assert.deepEqual(
      workers.map((one) => [one.group, one.worker, one.state, one.generation]),
      [['app', 'a', 'confirmed', 2]],
    );
    assert.ok(startedAtMs > 0);
  });

  it('has no line for a link that a person moved', async () => {
    using test = await hostWithNews();
    const { ledger } = test.host;
    setLedger(ledger, { committedCycle: 'c-99', settled: 7 });
    await start(test.reopen());
    assert.deepEqual(readHistory(test.host.paths, { limit: 5, cycle: 'c-99' }), []);
  });
});
