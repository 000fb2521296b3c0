// A lane of reports: what shares a batch, what waits for the next one, and what its end waits for.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReportLane, type WaitingReport } from '../../../../src/fleet/hosts/report-lane.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { reportOf } from '../../../kit/fleet/fleet-bench.js';

const signed = { kind: 'signed', fleet: '', createdAtMs: 0, bodyDigest: '' } as const;

function waiting(keyId: string, counter: number): WaitingReport {
  const taken = { signed: { ...signed, keyId, counter }, report: reportOf(keyId), receivedAtMs: 0 };
  return { taken, answer: () => undefined };
}

function lane(commit: (counters: readonly string[]) => Promise<void>) {
  const clock = fakeClock({ mode: 'skip' });
  const named = (batch: readonly WaitingReport[]): Promise<void> =>
    commit(batch.map(({ taken: { signed: of } }) => `${of.keyId} ${of.counter}`));
  const options = { clock, closing: new AbortController().signal, commit: named };
  return { clock, lane: new ReportLane(options) };
}

describe('a lane of reports', () => {
  it('commits what comes within a moment together, and never two reports of one host', async () => {
    const batches: (readonly string[])[] = [];
    const { lane: one, clock } = lane(async (batch) => {
      batches.push(batch);
    });
    for (const [host, counter] of [
      ['a', 1],
      ['b', 1],
      ['a', 2],
      ['a', 3],
    ] as const)
      one.add(waiting(host, counter));
    await one.drained();
    assert.deepEqual(batches, [['a 1', 'b 1'], ['a 2'], ['a 3']]);
    assert.deepEqual(clock.sleeps, [20, 20, 20]);
  });

  it('has one batch under way, and at most 256 reports in it', async () => {
    const sizes: number[] = [];
    let underWay = 0;
    const { lane: one } = lane(async (batch) => {
      assert.equal(++underWay, 1);
      await new Promise(setImmediate);
      sizes.push(batch.length);
      underWay--;
    });
    for (let host = 0; host < 600; host++) one.add(waiting(`host-${host}`, 1));
    assert.equal(one.size, 600);
    await one.drained();
    assert.deepEqual([sizes, one.size], [[256, 256, 88], 0]);
  });
});
