// The factor of report intervals for different rates of reports.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReportRate } from '../../../../src/fleet/hosts/report-rate.js';

/** @returns the time after the last report */
function count(rate: ReportRate, fromMs: number, forMs: number, perSecond: number): number {
  for (let at = 0; at < (forMs * perSecond) / 1000; at++) rate.count(fromMs + (at * 1000) / perSecond);
  return fromMs + forMs;
}

describe('the factor of intervals', () => {
  it('is 1 while the rate is within the limit', () => {
    const rate = new ReportRate(100);
    assert.equal(rate.factor, 1);
    count(rate, 1_000_000, 60_000, 99);
    assert.equal(rate.factor, 1);
  });

  it('follows the rate also after the clock is set back', () => {
    const rate = new ReportRate(10);
    count(rate, 1_000_000_000, 20_000, 1);
    count(rate, 1_000_000, 200_000, 500);
    assert.ok(rate.factor > 9, String(rate.factor));
  });

  it('grows with a rate above the limit, to ten at most, and decreases again', () => {
    const rate = new ReportRate(10);
    let atMs = count(rate, 1_000_000, 20_001, 20);
    assert.ok(rate.factor > 2 && rate.factor < 2.5, String(rate.factor));
    atMs = count(rate, atMs, 200_000, 500);
    assert.ok(rate.factor > 9.9 && rate.factor <= 10, String(rate.factor));
    count(rate, atMs, 300_000, 0.5);
    assert.ok(rate.factor < 1.1, String(rate.factor));
  });
});
