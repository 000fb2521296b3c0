// `writ refusals` and `writ refusals forget` as a user runs them, against a scripted agent.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { withAgent } from '../../kit/cli/with-agent.js';

const atMs = Date.UTC(2026, 10, 21, 9, 40);
const refusal = (serial: number, state: 'standing' | 'older') => ({
  ...{ bundle: 'dns-edge', channel: 'stable', serial, code: 'CHECK_FAILED', reason: 'zone parses\nline 3' },
  ...{ atMs, retryAtMs: 0, tries: 2, refusedWith: [], state },
});
const answer = (...refusals: object[]) => [{ schema: 1, type: 'refusals.result', refusals }];

describe('writ refusals', () => {
  it('lists the refusals, the newest first, with the next retry of each', async () => {
    const known = () => answer(refusal(41, 'older'), refusal(42, 'standing'));
    const { run, requests } = await withAgent(['refusals'], known);
    assert.deepEqual(requests, [{ type: 'refusals' }]);
    assert.match(run.stdout, /^FOUND {5}2 refusals, 1 of releases that the server offers now\n/);
    const [, , first, second] = run.stdout.split('\n');
    assert.match(
      first ?? '',
      /2026-11-21 09:40 UTC {2}dns-edge .* 42 {2}CHECK_FAILED .*at the next cycle .*zone parses$/,
    );
    assert.match(second ?? '', / 41 {2}CHECK_FAILED .*no: no longer offered/);
    const { run: json } = await withAgent(['refusals', '--json'], known);
    const { type, outcome, refusals } = jsonOf(json);
    assert.deepEqual([type, outcome, (refusals as unknown[]).length], ['refusals.result', 'found', 2]);
  });

  it('prints an empty list with exit 0 when the host has no refusal', async () => {
    const { run } = await withAgent(['refusals', '--json'], () => answer());
    assert.deepEqual([jsonOf(run)['outcome'], run.exitCode], ['empty', 0]);
  });
});

describe('writ refusals forget', () => {
  it('requests the named refusals, and prints what follows for each', async () => {
    const args = ['refusals', 'forget', '--bundle', 'dns-edge', '--serial', '42'];
    const { run, requests } = await withAgent(args, () => answer(refusal(42, 'standing')));
    assert.deepEqual(requests, [{ type: 'forget', by: 'anna', bundle: 'dns-edge', serial: 42 }]);
    assert.match(
      run.stdout,
      /^FORGOTTEN 1 refusal\n {2}dns-edge 42 \[CHECK_FAILED\] is tried again at the next pull\nNext: writ pull/,
    );
    const older = await withAgent(['refusals', 'forget'], () => answer(refusal(41, 'older')));
    assert.deepEqual(older.requests, [{ type: 'forget', by: 'anna' }]);
    assert.match(older.run.stdout, /is no longer offered\n$/);
    const none = await withAgent(['refusals', 'forget', '--json'], () => answer());
    assert.deepEqual([jsonOf(none.run)['outcome'], none.run.exitCode], ['unchanged', 0]);
  });

  for (const args of [
    ['forgte'],
    ['--bundle', 'dns-edge'],
    ['forget', '--serial', '3'],
    ['forget', '--bundle', 'dns-edge', '--serial', '0'],
  ])
    it(`refuses ${args.join(' ')}`, async () => {
      const { run, requests } = await withAgent(['refusals', ...args], () => answer());
      assert.deepEqual([run.exitCode, requests], [2, []]);
    });
});
