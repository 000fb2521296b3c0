import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showHost, showHosts, showLog, showSummary } from '../../../../src/cli/show/show-fleet.js';
import type { FleetSummary, HostCounts, HostLine, OfferGroup } from '../../../../src/core/fleet/answers.js';
import { summarize } from '../../../../src/core/fleet/fleet-summary.js';
import { reportOf } from '../../../kit/fleet/fleet-bench.js';

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
  it('counts the waiting, silent and blocked hosts', () => {
    assert.equal(hostsLine({}), '9 hosts');
    assert.equal(hostsLine({ waiting: 1, silent: 2, blocked: 3 }), '9 hosts, 1 waiting, 2 silent, 3 blocked');
  });

  it('adds the digest to two roots of one version', () => {
    const root = (version: number, digest: string) => ({ version, digest: digest.repeat(64), hosts: 2 });
    assert.ok(summaryOf({ roots: [root(1, 'a'), root(2, 'b')] }).includes('roots on hosts: v1 2, v2 2'));
    const same = 'roots on hosts: v1 (aaaaaaaaaaaa) 2, v1 (bbbbbbbbbbbb) 2';
    assert.ok(summaryOf({ roots: [root(1, 'a'), root(1, 'b')] }).includes(same));
  });

  it('counts the hosts of unknown liveness only when there are some', () => {
    assert.equal(hostsLine({ unjudged: 1 }), '9 hosts; too early to say whether 1 host is silent');
    const both = '9 hosts, 2 silent; too early to say whether 3 hosts are silent';
    assert.equal(hostsLine({ silent: 2, unjudged: 3 }), both);
    assert.equal(hostsLine({}, 'too-early'), '9 hosts');
  });

  it('has at most a hundred rows of each table, those with the most hosts', () => {
    const names = Array.from({ length: 1000 }, (_, at) => `a${at}`);
    const release = { channel: 'stable', serial: 2, manifest: '', notified: 0, unconfirmed: 0 };
    const offer = { channel: 'stable', serial: 3, state: 'refused', code: 'CHECK_FAILED' } as const;
    const lines = summaryOf({
      releases: [...names, 'dns'].map((bundle) => {
        return { ...release, bundle, confirmed: bundle === 'dns' ? 9 : 1, place: 'newest' };
      }),
      offers: [...names, 'dns'].map((bundle) => ({ ...offer, bundle, hosts: bundle === 'dns' ? 9 : 1 })),
    });
    assert.ok(lines.length < 320, String(lines.length));
    assert.equal(lines.filter((line) => line.startsWith('  (901 more: --json has each)')).length >= 2, true);
    assert.equal(lines.filter((line) => /^\s*dns .* 9/.test(line)).length, 2, lines.join('\n'));
  });

  it('has a column of first lines when the role of the token permits it, and otherwise names that role', () => {
    const offer = { bundle: 'dns', channel: 'stable', serial: 2, state: 'refused', code: 'CHECK_FAILED' };
    const shown = (lines?: readonly string[]) =>
      summaryOf({ offers: [{ ...offer, hosts: 1, ...(lines && { lines }) } as OfferGroup] }).join('\n');
    assert.match(shown(['line 7: no']), /first line\n.*line 7: no/);
    assert.doesNotMatch(shown(), /first line\n/);
    assert.match(shown(), /No first lines: a token of the role detail shows/);
  });
});

describe('`writ fleet log` for people', () => {
  it('shortens keys and digests, and has seconds', () => {
    const entry = {
      id: 1,
      atMs: 1000,
      who: 'store',
      what: 'host.retire',
      subject: 'ab'.repeat(32),
      detail: '',
    };
    const lines = showLog({ schema: 1, type: 'fleet.log', entries: [entry] });
    assert.equal(lines[2]?.trimEnd(), '  1970-01-01 00:00:01 UTC  store  host.retire  abababababab');
  });
});

describe('`writ fleet host` and `fleet hosts` for people', () => {
  const nowMs = 1_000_000_000;
  const line: HostLine = {
    ...{ key: 'ab'.repeat(32), host: 'a', kind: 'writ', state: 'accepted', presence: 'heard', health: 'ok' },
    ...{ version: '1', root: 1, lastSeenMs: nowMs - 300_000, skewMs: 0, cloned: false, labels: {} },
    bundles: [{ bundle: 'dns', channel: 'stable', active: { serial: 2, state: 'confirmed', sinceMs: 1 } }],
  };

  it('mark the release of a silent host with the time of its last report', () => {
    assert.match(showHosts([line], false, nowMs).join('\n'), /dns 2 confirmed {2}5 min ago/);
    const silent = showHosts([{ ...line, presence: 'silent' }], false, nowMs).join('\n');
    assert.match(silent, /dns 2 confirmed, last report 5 min ago/);
  });

  it('show the bundles of an OPA, its whole key, and no version of Writ', () => {
    const key = 'opa/0123456789ab/edge';
    const opa = { ...line, key, kind: 'opa', bundles: [], version: '0.68.0' } as const;
    assert.match(showHosts([opa], false, nowMs).join('\n'), /opa\/0123456789ab\/edge/);
    const detail = { schema: 1, type: 'fleet.host', enrolledAtMs: 1, everyMs: 1, outcomes: [] } as const;
    const opaBundles = [
      { name: 'authz', revision: 'r1' },
      { name: 'main', code: 'bundle_error', message: 'line 3' },
    ];
    const lines = showHost({ ...opa, ...detail, namesakes: [], opaBundles }, nowMs);
    assert.match(lines[1] ?? '', / unsigned, health ok, OPA 0\.68\.0, /);
    assert.deepEqual(lines.slice(2), ['  authz r1', '  main nothing  bundle_error: line 3']);
  });

  it('show that a host or an OPA is retired in the first line', () => {
    const detail = { schema: 1, type: 'fleet.host', enrolledAtMs: 1, everyMs: 1, outcomes: [] } as const;
    for (const kind of ['writ', 'opa'] as const) {
      const retired = { ...line, ...detail, kind, state: 'retired', namesakes: [] } as const;
      assert.match(showHost(retired, nowMs)[0] ?? '', /^RETIRED a {2}/);
    }
  });

  it('show each code with its meaning and what to do, and the channel behind its bundle', () => {
    const report = { ...reportOf('a'), findings: ['WORKERS_MISSING', 'toString'] };
    const detail = { schema: 1, type: 'fleet.host', enrolledAtMs: 1, everyMs: 1, outcomes: [] } as const;
    const lines = showHost({ ...line, ...detail, namesakes: [], report }, nowMs);
    assert.ok(lines.includes('  WORKERS_MISSING: Fewer workers than `min` exist.'));
    assert.ok(lines.includes('    Next: Start the workers of this group.'));
    assert.ok(lines.includes('  toString'));
    assert.ok(lines.includes('  dns stable 2 confirmed'));
  });
});
