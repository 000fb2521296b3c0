import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fitReport, truncatedFinding } from '../../../../src/agent/fleet/fit-report.js';
import { type FleetReport, fleetBounds } from '../../../../src/core/fleet/report.js';

const report: FleetReport = {
  ...{
    schema: 1,
    type: 'fleet.report',
    version: '0.1.0',
    host: 'a',
    labels: {},
    installId: 'i',
    bootId: 'b',
  },
  ...{ atMs: 1, everyMs: 1, agent: 'run', health: 'ok', findings: [], trust: [], freshness: 'fresh' },
  ...{ bundles: [], groups: [], outcomes: [] },
};
const bundle = (index: number) => ({
  ...{ bundle: `bundle-${index}`, channel: 'stable' },
  offered: {
    ...({ serial: 2, state: 'refused', code: 'CHECK_FAILED', atMs: 1 } as const),
    ...{ line: 'x'.repeat(200), output: 'y'.repeat(4096) },
  },
});
const outcome = (n: number) => ({
  ...({ n, trigger: 'poll', outcome: 'activated', atMs: 1 } as const),
  bundles: Array.from({ length: 16 }, (_, index) => ({
    bundle: `bundle-${index}`,
    channel: 'stable',
    serial: n,
  })),
});
const list = <T>(length: number, make: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => make(index));

describe('a truncated report', () => {
  it('is unchanged if it is within its limits', () => {
    assert.deepEqual(fitReport(report, false), report);
  });

  it('has a finding if a part is missing', () => {
    assert.deepEqual(fitReport(report, true).findings, [truncatedFinding]);
  });

  it('drops outputs before lines, and no bundle in their place', () => {
    const fits = fitReport({ ...report, bundles: list(256, bundle) }, false);
    assert.equal(fits.bundles.length, 256);
    assert.deepEqual(fits.findings, [truncatedFinding]);
    assert.equal(fits.bundles[0]?.offered?.line?.length, 200);
    assert.ok(!('output' in (fits.bundles[0]?.offered ?? {})));
  });

  it('keeps every limit for any input', () => {
    const labels = Object.fromEntries(list(10_000, (index) => [`label-${index}`, 'z'.repeat(1000)]));
    const named = (index: number) => ({ ...bundle(index), bundle: `${index}-${'b'.repeat(250)}` });
    const fits = fitReport(
      {
        ...{ ...report, labels, bundles: list(3000, named), outcomes: list(500, outcome) },
        groups: list(1000, (index) => ({ group: `g-${index}`, workers: 1, confirmed: 1, min: 1 })),
        trust: list(5000, (index) => ({ role: `role-${index}`, version: 1, expiresAtMs: 1 })),
        findings: list(100, (index) => `CODE_${index}`),
      },
      false,
    );
    assert.ok(Buffer.byteLength(JSON.stringify(fits)) <= fleetBounds.maxReportBytes);
    assert.ok(fits.findings.length <= fleetBounds.maxFindings && fits.findings.includes(truncatedFinding));
    assert.ok(Object.keys(fits.labels).length <= fleetBounds.maxLabels);
    assert.ok(fits.bundles.length > 0 && fits.bundles.length <= fleetBounds.maxBundles);
    // The oldest: a server stores them in their order.
    assert.equal(fits.outcomes[0]?.n, 0);
  });
});
