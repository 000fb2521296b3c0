import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withObservedRuns } from '../../../../src/agent/runs/note-runs.js';
import type { WorkerLedger } from '../../../../src/agent/state/ledger.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

/** @returns whether the end of process 100, which 101 replaced, counts as that of a notified process */
function wasNotified(entry: Partial<WorkerLedger>): boolean {
  using test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }) } } });
  const worker = { wanted: 1, state: 'confirmed', text: 'ok', atMs: 5, ...entry } as WorkerLedger;
  const known = { process: '100', sinceMs: 0, watchedSinceMs: 0, bootId: 'b', ends: [] };
  setLedger(test.host.ledger, { workers: { 'app/a': worker }, runs: { 'app/a': known } });
  const ledger = test.host.ledger.read();
  const asked = { askedAtMs: 10, bootMs: 10 };
  const seen = { process: '101', record: undefined, isDead: false, isFirst: false, hasEnded: false, asked };
  const observation = { observed: new Map([['app/a', seen]]), bootId: 'b', nowMs: 10 };
  const { runs } = withObservedRuns(test.host, ledger, observation);
  return runs?.['app/a']?.ends[0]?.wasNotified === true;
}

describe('the end of a process', () => {
  it('counts as that of a notified process if the known process answered, or the answering process is unknown', () => {
    assert.equal(wasNotified({ process: 'b:100', notifiedAtMs: 5 }), true);
    assert.equal(wasNotified({ process: 'b:', notifiedAtMs: 5 }), true);
    assert.equal(wasNotified({ process: 'b:100' }), false, 'not notified yet');
    assert.equal(wasNotified({ process: 'b:100', notifiedAtMs: 5, replacedAtMs: 6 }), true, 'made by it');
  });

  it('counts as that of a notified process if the entry of its successor records that', () => {
    assert.equal(wasNotified({ process: 'b:101', followsNotified: true }), true);
    assert.equal(wasNotified({ process: 'b:101', notifiedAtMs: 9 }), false);
  });
});
