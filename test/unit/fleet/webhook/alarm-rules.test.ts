import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AlarmRow } from '../../../../src/fleet/store/tables.js';
import { alarmsOf, labelsIn, planAlarms, resolveAfterMs } from '../../../../src/fleet/webhook/alarm-rules.js';
import { webhookBody } from '../../../../src/fleet/webhook/webhook-body.js';
import { refusedOffer, summaryWith } from '../../../kit/fleet/webhook-bench.js';

const refused = summaryWith({ offers: [refusedOffer] });
const well = summaryWith();
const hosts = { accepted: 13, waiting: 0, stopped: 0, silent: 2, unjudged: 0, blocked: 0, cloned: 0, opa: 0 };
const names = (summary: ReturnType<typeof summaryWith>): (string | undefined)[] =>
  alarmsOf(summary).map(({ labels }) => labels['alertname']);

/** Returns the stored alarms after checks of these summaries, a second apart by default. Every pending alarm is sent. */
function storedAfter(...checks: readonly (readonly [ReturnType<typeof summaryWith>, number])[]): AlarmRow[] {
  let rows: AlarmRow[] = [];
  for (const [summary, nowMs] of checks) {
    const { written, gone, untold } = planAlarms(rows, summary, nowMs);
    const changed = new Set([...gone, ...written.map(({ fingerprint }) => fingerprint)]);
    rows = [...rows.filter(({ fingerprint }) => !changed.has(fingerprint)), ...written];
    const sent = new Set(untold.map(({ fingerprint }) => fingerprint));
    rows = rows
      .filter((row) => !sent.has(row.fingerprint) || row.ends_at_ms === 0)
      .map((row) => (sent.has(row.fingerprint) ? { ...row, told: 'firing' as const } : row));
  }
  return rows;
}

describe('alarms of a fleet', () => {
  it('are sent for any expiry of a role that a host reports', () => {
    const keys = [{ role: 'root', version: 1, expiresAtMs: Number.MAX_SAFE_INTEGER }];
    assert.deepEqual(names(summaryWith({ keys, offers: [refusedOffer] })), ['WritFleetRefused']);
  });

  it('are its problems, the most severe first; a fleet without hosts has none', () => {
    assert.deepEqual(names(well), []);
    assert.deepEqual(names(summaryWith({ hosts: { ...hosts, accepted: 0, silent: 0 } })), []);
    const keys = [
      { role: 'timestamp', version: 1, expiresAtMs: 2_000 },
      { role: 'root', version: 1, expiresAtMs: 500 },
    ];
    const all = summaryWith({ keys, hosts: { ...hosts, waiting: 1 }, offers: [refusedOffer] });
    assert.deepEqual(names(all).slice(0, 2).sort(), ['WritFleetRefused', 'WritFleetRoleExpired']);
    assert.deepEqual(names(all).slice(2).sort(), [
      'WritFleetRoleEnds',
      'WritFleetSilent',
      'WritFleetWaitingForApproval',
    ]);
  });

  it('stay the same alarm while only its count, its hours or its codes change', () => {
    const print = (offers: readonly (typeof refusedOffer)[]) =>
      alarmsOf(summaryWith({ offers })).map(({ fingerprint }) => fingerprint);
    const one = print([refusedOffer]);
    assert.deepEqual(print([{ ...refusedOffer, hosts: 400, code: 'LOADER_FAILED' }]), one);
    assert.notDeepEqual(print([{ ...refusedOffer, serial: 44 }]), one);
    const role = (atMs: number) =>
      alarmsOf(summaryWith({ atMs, keys: [{ role: 'root', version: 1, expiresAtMs: 9e8 }] }))[0]?.fingerprint;
    assert.equal(role(1000), role(8e8));
  });

  it('use the roles of followed repositories before those of hosts, as findings do', () => {
    const stale = { role: 'root', version: 1, expiresAtMs: 500 };
    const team = { role: 'team-a', version: 3, expiresAtMs: 500 };
    const read = { url: 'https://policy.example.net', checkedAtMs: 900, roles: [team], releases: [] };
    const all = alarmsOf(summaryWith({ keys: [stale], repositories: [read] }));
    assert.deepEqual(
      all.flatMap(({ labels }) => labels['role'] ?? []),
      ['team-a'],
    );
  });

  it('of one host that invents refusals do not displace those of many hosts', () => {
    const invented = Array.from({ length: 900 }, (_, at) => ({
      ...refusedOffer,
      bundle: `a${at}`,
      hosts: 1,
    }));
    const all = alarmsOf(summaryWith({ offers: [...invented, { ...refusedOffer, bundle: 'z', hosts: 2 }] }));
    assert.equal(all.length, 500);
    assert.equal(all[0]?.labels['bundle'], 'z');
  });

  for (const other of [{ bundle: 'web' }, { channel: 'canary' }, { serial: 44 }]) {
    const [member = ''] = Object.keys(other);
    it(`come in the order of the hosts of their own release, where the ${member} differs`, () => {
      const taken = { ...refusedOffer, ...other, state: 'rolled-back', hosts: 4 } as const;
      assert.deepEqual(names(summaryWith({ offers: [refusedOffer, taken] })), [
        'WritFleetRolledBack',
        'WritFleetRefused',
      ]);
    });
  }

  it('are sent when they begin, and as ended after a minute without them', () => {
    const began = planAlarms([], refused, 1000);
    assert.deepEqual(
      began.untold.map(({ starts_at_ms, ends_at_ms, told }) => [starts_at_ms, ends_at_ms, told]),
      [[1000, 0, '']],
    );
    const ended = storedAfter([refused, 1000], [well, 2000]);
    assert.deepEqual(planAlarms(ended, well, 2000 + resolveAfterMs - 1).untold, []);
    assert.deepEqual(
      planAlarms(ended, well, 2000 + resolveAfterMs).untold.map((row) => row.ends_at_ms),
      [2000],
    );
    const back = planAlarms(ended, refused, 3000);
    assert.deepEqual(
      [back.written.map((row) => [row.ends_at_ms, row.told]), back.untold],
      [[[0, 'firing']], []],
    );
  });

  it('are dropped if they end before they are sent', () => {
    const stored = planAlarms([], refused, 1000).written;
    const { gone, untold } = planAlarms(stored, well, 2000);
    assert.deepEqual([gone, untold], [[stored[0]?.fingerprint], []]);
  });

  it('of silence stay unchanged while host liveness is unknown, so that a restart resolves none', () => {
    const silent = summaryWith({ hosts });
    const early = summaryWith({ hosts: { ...hosts, silent: 0, unjudged: 1 } });
    const stored = storedAfter([silent, 1000], [early, 2000]);
    assert.deepEqual(
      stored.map((row) => [labelsIn(row)['alertname'], row.ends_at_ms]),
      [['WritFleetSilent', 0]],
    );
    assert.equal(storedAfter([silent, 1000], [well, 2000])[0]?.ends_at_ms, 2000);
    const both = summaryWith({ hosts, offers: [refusedOffer] });
    assert.deepEqual(
      storedAfter([both, 1000], [early, 2000]).map((row) => [labelsIn(row)['alertname'], row.ends_at_ms]),
      [
        ['WritFleetSilent', 0],
        ['WritFleetRefused', 2000],
      ],
    );
  });

  it('have the labels that all of them share as common labels of a message', () => {
    const offers = [refusedOffer, { ...refusedOffer, serial: 44 }];
    const rows = planAlarms([], summaryWith({ offers }), 1000).untold;
    const body = webhookBody(rows, 'f-1', 'https://fleet.example.net');
    assert.equal(body.alerts.length, 2);
    assert.deepEqual(Object.keys(body.commonLabels).sort(), [
      'alertname',
      'bundle',
      'channel',
      'fleet',
      'severity',
    ]);
    assert.deepEqual(body.commonAnnotations, {});
    const ended = webhookBody(
      rows.map((row) => ({ ...row, ends_at_ms: 5000 })),
      'f-1',
      'https://f',
    );
    assert.deepEqual([body.status, ended.status], ['firing', 'resolved']);
    assert.equal(ended.alerts[0]?.endsAt, '1970-01-01T00:00:05.000Z');
  });
});
