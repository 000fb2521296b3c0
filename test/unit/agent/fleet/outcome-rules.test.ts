import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noOutcomes } from '../../../../src/agent/fleet/fleet-files.js';
import { outcomeOfEnd, withOutcome, withoutStored } from '../../../../src/agent/fleet/outcome-rules.js';
import { bundleResult, cycleResult, problem } from '../../../kit/cli/cycle-results.js';

const outcome = (serial: number, code?: string) => ({
  ...({ trigger: 'poll', outcome: 'rejected', atMs: serial } as const),
  ...(code === undefined ? {} : { code }),
  bundles: [{ bundle: 'dns-edge', channel: 'stable', serial }],
});

describe('reported outcomes', () => {
  it('are cycles that changed or refused a release', () => {
    const refused = bundleResult('rejected', { toSerial: 43, problem: problem('CHECK_FAILED', 'no') });
    const end = cycleResult('rejected', { bundles: [refused] });
    assert.equal(outcomeOfEnd(end)?.code, 'CHECK_FAILED');
    assert.deepEqual(outcomeOfEnd(end)?.bundles, [
      { bundle: refused.bundle, channel: refused.channel, serial: 43 },
    ]);
    const remembered = { ...refused, remembered: true } as const;
    assert.equal(outcomeOfEnd({ ...end, bundles: [remembered] }), undefined);
    for (const one of ['unchanged', 'failed', 'deferred'] as const)
      assert.equal(
        outcomeOfEnd({ ...end, outcome: one, bundles: [{ ...refused, outcome: one }] }),
        undefined,
      );
    assert.ok(outcomeOfEnd({ ...end, changed: true, outcome: 'activated', bundles: [] }));
  });

  it('include a degraded activation, and no poll at which a release waits after a refusal of everything', () => {
    for (const code of ['REFUSAL_REPEATED', 'SILENT_REFUSAL'] as const) {
      const waits = bundleResult('degraded', { problem: problem(code, 'waits') });
      assert.equal(outcomeOfEnd(cycleResult('degraded', { changed: false, bundles: [waits] })), undefined);
    }
    const moved = cycleResult('degraded', { changed: false, bundles: [bundleResult('degraded')] });
    assert.equal(outcomeOfEnd(moved)?.bundles.length, 1);
  });

  it('are limited to a hundred; older ones are dropped and counted', () => {
    let file = noOutcomes;
    for (let serial = 1; serial <= 103; serial += 1) file = withOutcome(file, outcome(serial));
    assert.equal(file.pending.length, 100);
    assert.equal(file.pending[0]?.n, 4);
    assert.equal(file.last, 103);
    assert.equal(file.dropped, 3);
    assert.deepEqual(withoutStored(file, 103), { ...file, dropped: 0, pending: [] });
  });

  it('are merged if one repeats the last, under a new number', () => {
    const file = withOutcome(withOutcome(noOutcomes, outcome(7)), { ...outcome(7), atMs: 99 });
    assert.deepEqual(
      file.pending.map(({ n, atMs }) => [n, atMs]),
      [[2, 99]],
    );
    assert.equal(withOutcome(file, outcome(8)).pending.length, 2);
  });

  it('are removed after a server stored them, and numbered after those that this host has lost', () => {
    const file = withOutcome(withOutcome(noOutcomes, outcome(7)), outcome(8));
    assert.deepEqual(
      withoutStored(file, 1).pending.map(({ n }) => n),
      [2],
    );
    assert.equal(withoutStored(file, 0), file);
    const behind = withoutStored(file, 500);
    assert.deepEqual(
      behind.pending.map(({ n }) => n),
      [501, 502],
    );
    assert.equal(behind.last, 502);
  });
});
