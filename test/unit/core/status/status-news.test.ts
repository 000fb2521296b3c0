// Which change of a status report is news, so that it is written and shown.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
