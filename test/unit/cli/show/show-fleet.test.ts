import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showSummary } from '../../../../src/cli/show/show-fleet.js';
import type { FleetSummary, HostCounts } from '../../../../src/core/fleet/answers.js';
import { summarize } from '../../../../src/core/fleet/fleet-summary.js';

const hosts: HostCounts = {
  ...{ accepted: 9, waiting: 0, stopped: 0, silent: 0, unjudged: 0, blocked: 0, cloned: 0, opa: 0 },
};

function summaryOf(more: Partial<FleetSummary>): readonly string[] {
  const none = { releases: [], offers: [], roots: [], versions: [], keys: [], hosts };
  return showSummary(summarize({ ...none, fleet: 'f', atMs: 1, countedAtMs: 1, silence: 'judged', ...more }));
}

function hostsLine(more: Partial<HostCounts>, silence: FleetSummary['silence'] = 'judged'): string {
  const none = { releases: [], offers: [], roots: [], versions: [], keys: [] };
  const summary = summarize({
    ...none,
    fleet: 'f',
    atMs: 1,
    countedAtMs: 1,
    silence,
    hosts: { ...hosts, ...more },
  });
  const lines = showSummary(summary);
  return lines.find((line) => line.startsWith('9 hosts')) ?? lines.join('\n');
}

describe('`writ fleet status` for people', () => {
  it('counts hosts by what sets them apart', () => {
    assert.equal(hostsLine({}), '9 hosts');
    assert.equal(hostsLine({ waiting: 1, silent: 2, blocked: 3 }), '9 hosts, 1 waiting, 2 silent, 3 blocked');
  });

  it('tells two roots of one version apart', () => {
    const root = (version: number, digest: string) => ({ version, digest: digest.repeat(64), hosts: 2 });
    assert.ok(summaryOf({ roots: [root(1, 'a'), root(2, 'b')] }).includes('roots on hosts: v1 2, v2 2'));
    const same = 'roots on hosts: v1 (aaaaaaaaaaaa) 2, v1 (bbbbbbbbbbbb) 2';
    assert.ok(summaryOf({ roots: [root(1, 'a'), root(1, 'b')] }).includes(same));
  });

  it('says of how many it is too early to say whether they are silent, and of nobody else', () => {
    assert.equal(hostsLine({ unjudged: 1 }), '9 hosts; too early to say whether 1 host is silent');
    const both = '9 hosts, 2 silent; too early to say whether 3 hosts are silent';
    assert.equal(hostsLine({ silent: 2, unjudged: 3 }), both);
    assert.equal(hostsLine({}, 'too-early'), '9 hosts');
  });
});
