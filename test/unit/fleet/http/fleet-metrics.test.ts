import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FleetSummary, OfferGroup, ReleaseCount } from '../../../../src/core/fleet/answers.js';
import { summarize } from '../../../../src/core/fleet/fleet-summary.js';
import { createFleetMetrics } from '../../../../src/fleet/http/fleet-metrics.js';
import { longCase } from '../../../kit/assert/long-case.js';

const release: ReleaseCount = {
  ...{ bundle: 'dns', channel: 'stable', serial: 42, manifest: 'a' },
  ...{ confirmed: 7, notified: 2, unconfirmed: 1, place: 'newest' },
};
const offer: OfferGroup = {
  ...{ bundle: 'dns', channel: 'stable', serial: 43 },
  ...{ state: 'refused', code: 'CHECK_FAILED', hosts: 3 },
};

function summaryOf(more: Partial<FleetSummary> = {}): FleetSummary {
  return summarize({
    ...{ fleet: 'f', atMs: 1000, countedAtMs: 1000, silence: 'judged', roots: [], versions: [], keys: [] },
    hosts: { accepted: 13, waiting: 1, stopped: 0, silent: 2, unjudged: 0, blocked: 0, cloned: 0, opa: 4 },
    releases: [release],
    offers: [offer],
    ...more,
  });
}

async function linesOf(summary: FleetSummary | undefined, names: 'hidden' | 'shown' = 'hidden') {
  const metrics = await createFleetMetrics({ process: 'omit' });
  return seriesOf(await metrics.text(summary && { summary, sessions: 5 }, names));
}

function seriesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

const has = (lines: readonly string[], ...wanted: string[]): void =>
  assert.deepEqual(
    wanted.filter((line) => !lines.includes(line)),
    [],
    lines.join('\n'),
  );

describe('metrics of a fleet', () => {
  it('show numbers without the name of a bundle, channel, team or host', longCase, async () => {
    const keys = [
      { role: 'timestamp', version: 9, expiresAtMs: 90_000 },
      { role: 'team-a', version: 1, expiresAtMs: 80_000 },
      { role: 'team-b', version: 1, expiresAtMs: 70_000 },
    ];
    const lines = await linesOf(summaryOf({ keys, offers: [offer, { ...offer, serial: 44, hosts: 2 }] }));
    has(
      lines,
      ...[
        'writ_fleet_store_up 1',
        'writ_fleet_health 2',
        'writ_fleet_sessions 5',
        'writ_fleet_silence_judged 1',
      ],
      ...['writ_fleet_findings{code="REFUSED"} 2', 'writ_fleet_findings{code="SILENT"} 1'],
      ...['writ_fleet_hosts{state="accepted"} 13', 'writ_fleet_hosts{state="waiting"} 1'],
      'writ_fleet_places{place="newest",state="confirmed"} 7',
      'writ_fleet_places{place="tail",state="confirmed"} 0',
      ...['writ_fleet_offers{state="refused"} 5', 'writ_fleet_offers{state="deferred"} 0'],
      'writ_fleet_offers_by_code{state="refused",code="CHECK_FAILED"} 5',
      'writ_fleet_role_expiry_timestamp_seconds{role="timestamp"} 90',
      'writ_fleet_role_expiry_timestamp_seconds{role="delegated"} 70',
    );
    assert.doesNotMatch(lines.join('\n'), /dns|stable|team-/);
  });

  it('have no series for a code that a host invented', async () => {
    const offers = ['X_1', 'X_2', 'X_3'].map((code) => ({ ...offer, code }));
    const coded = (await linesOf(summaryOf({ offers }))).filter((line) => line.includes('offers_by_code'));
    assert.deepEqual(coded, ['writ_fleet_offers_by_code{state="refused",code="other"} 9']);
  });

  it('show each bundle and channel to a permitted caller, the 100 with most hosts', async () => {
    const small = Array.from({ length: 150 }, (_, at) => ({ ...release, bundle: `x${at}`, confirmed: 1 }));
    const tail = { ...release, serial: 41, confirmed: 4, place: 'tail' } as const;
    const lines = await linesOf(summaryOf({ releases: [...small, release, tail] }), 'shown');
    has(
      lines,
      'writ_fleet_channel_hosts{bundle="dns",channel="stable",place="newest",state="confirmed"} 7',
      'writ_fleet_channel_hosts{bundle="dns",channel="stable",place="tail",state="confirmed"} 4',
      'writ_fleet_channel_offers{bundle="dns",channel="stable",state="refused"} 3',
      'writ_fleet_channel_newest_serial{bundle="dns",channel="stable"} 42',
      'writ_fleet_channels_left_out 51',
    );
    assert.equal(lines.filter((line) => line.startsWith('writ_fleet_channel_newest_serial')).length, 100);
  });

  it('drop the numbers of the store when it does not answer, and keep those of the server', async () => {
    const metrics = await createFleetMetrics({ process: 'omit' });
    await metrics.text({ summary: summaryOf(), sessions: 1 }, 'shown');
    metrics.batch({ reports: 3, durationMs: 20, result: 'failed' });
    const lines = seriesOf(await metrics.text(undefined, 'shown'));
    has(lines, 'writ_fleet_store_up 0', 'writ_fleet_batches_total{result="failed"} 1');
    assert.deepEqual(
      lines.filter((line) => /^writ_fleet_(?:hosts|health|offers|places|channel|sessions)/.test(line)),
      [],
    );
  });

  it('have the times of reports and commits, and how many reports shared one, as histograms', async () => {
    const metrics = await createFleetMetrics({ process: 'omit' });
    metrics.report('accepted', 30);
    metrics.batch({ reports: 3, durationMs: 20, result: 'stored' });
    const lines = seriesOf(await metrics.text(undefined, 'hidden'));
    has(
      lines,
      ...['writ_fleet_report_seconds_bucket{le="0.025"} 0', 'writ_fleet_report_seconds_bucket{le="0.05"} 1'],
      ...['writ_fleet_commit_seconds_bucket{le="0.025"} 1', 'writ_fleet_commit_seconds_count 1'],
      ...['writ_fleet_batch_reports_bucket{le="2"} 0', 'writ_fleet_batch_reports_bucket{le="4"} 1'],
      ...['writ_fleet_reports_total{result="accepted"} 1', 'writ_fleet_batches_total{result="stored"} 1'],
    );
  });
});
