// A lane of reports: which reports share a batch, which wait for the next one, and when the lane is drained.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReportLane, type WaitingReport } from '../../../../src/fleet/hosts/report-lane.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const signed = { kind: 'signed', fleet: '', createdAtMs: 0, bodyDigest: '' } as const;

function waiting(keyId: string, counter: number, bytes = 100): WaitingReport {
  const body = new Uint8Array(bytes);
  return { signed: { ...signed, keyId, counter }, body, receivedAtMs: 0, answer: () => undefined };
}

function lane(commit: (counters: readonly string[]) => Promise<void>) {
  const clock = fakeClock({ mode: 'skip' });
  const named = (batch: readonly WaitingReport[]): Promise<void> =>
    commit(batch.map(({ signed: of }) => `${of.keyId} ${of.counter}`));
  const options = { clock, closing: new AbortController().signal, commit: named };
  return { clock, lane: new ReportLane(options) };
}

describe('a lane of reports', () => {
  it('commits reports of one moment together, and never two reports of one host', async () => {
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

  it('parses at most 2 MB for one commit, and commits the reports of each host in their order', async () => {
    const batches: (readonly string[])[] = [];
    const { lane: one } = lane(async (batch) => {
      batches.push(batch);
    });
    const kilobyte = 1024;
    for (let host = 0; host < 7; host++) one.add(waiting(`large-${host}`, 1, 256 * kilobyte));
    one.add(waiting('small', 1, 200 * kilobyte));
    // This report exceeds the batch; the next one of its host would fit.
    one.add(waiting('late', 1, 100 * kilobyte));
    one.add(waiting('late', 2, kilobyte));
    await one.drained();
    const large = Array.from({ length: 7 }, (_, host) => `large-${host} 1`);
    assert.deepEqual(batches, [[...large, 'small 1'], ['late 1'], ['late 2']]);
  });

  it('commits a report that is larger than a batch alone', async () => {
    const batches: (readonly string[])[] = [];
    const { lane: one } = lane(async (batch) => {
      batches.push(batch);
    });
    one.add(waiting('a', 1, 3 * 1024 * 1024));
    one.add(waiting('b', 1));
    await one.drained();
    assert.deepEqual(batches, [['a 1'], ['b 1']]);
  });

  it('commits one batch at a time, with at most 256 reports', async () => {
    const sizes: number[] = [];
    let runningCommits = 0;
    const { lane: one } = lane(async (batch) => {
      assert.equal(++runningCommits, 1);
      await new Promise(setImmediate);
      sizes.push(batch.length);
      runningCommits--;
    });
    for (let host = 0; host < 600; host++) one.add(waiting(`host-${host}`, 1));
    assert.equal(one.size, 600);
    await one.drained();
    assert.deepEqual([sizes, one.size], [[256, 256, 88], 0]);
  });
});
