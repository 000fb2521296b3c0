// Which differences of a status report count as a change, so that the report is written and shown.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BakeStatus } from '../../../../src/core/status/status.js';
import { fingerprintStatus } from '../../../../src/core/status/status-fingerprint.js';
import { statusReport } from '../../../kit/cli/status-reports.js';

describe('a lost line of the log', () => {
  it('changes the fingerprint only if it is the first', () => {
    const one = statusReport({ logLosses: { lines: 1, code: 'ENOSPC' } });
    const two = statusReport({ logLosses: { lines: 2, code: 'ENOSPC' } });
    assert.notEqual(fingerprintStatus(one), fingerprintStatus(statusReport()));
    assert.equal(fingerprintStatus(one), fingerprintStatus(two));
  });
});

describe('a bake time', () => {
  it('changes the fingerprint with its state, and not with the time that is left', () => {
    const textOf = (bake: BakeStatus) =>
      fingerprintStatus(statusReport({ bundles: [{ bundle: 'dns', channel: 'stable', serial: 1, bake }] }));
    const baking = { state: 'baking', leftMs: 9, ends: [] } as const;
    assert.equal(textOf(baking), textOf({ ...baking, leftMs: 8 }));
    assert.notEqual(textOf(baking), textOf({ ...baking, waitsFor: { what: 'agent' } }));
    assert.notEqual(textOf(baking), textOf({ state: 'settled', atMs: 1, observed: true }));
  });
});
