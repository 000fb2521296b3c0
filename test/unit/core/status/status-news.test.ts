// Which change of a status report is news, so that it is written and shown.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BakeStatus } from '../../../../src/core/status/status.js';
import { statusNews } from '../../../../src/core/status/status-news.js';
import { statusReport } from '../../../kit/cli/status-reports.js';

describe('a lost line of the log', () => {
  it('is news when it is the first, and not when it is one more', () => {
    const one = statusReport({ logLosses: { lines: 1, code: 'ENOSPC' } });
    const two = statusReport({ logLosses: { lines: 2, code: 'ENOSPC' } });
    assert.notEqual(statusNews(one), statusNews(statusReport()));
    assert.equal(statusNews(one), statusNews(two));
  });
});

describe('a bake time', () => {
  it('is news when its state changes, and not when only the time that is left does', () => {
    const textOf = (bake: BakeStatus) =>
      statusNews(statusReport({ bundles: [{ bundle: 'dns', channel: 'stable', serial: 1, bake }] }));
    const baking = { state: 'baking', leftMs: 9, ends: [] } as const;
    assert.equal(textOf(baking), textOf({ ...baking, leftMs: 8 }));
    assert.notEqual(textOf(baking), textOf({ ...baking, waitsFor: { what: 'agent' } }));
    assert.notEqual(textOf(baking), textOf({ state: 'settled', atMs: 1, observed: true }));
  });
});
