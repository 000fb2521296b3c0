// The intervals of a host after a report: begin, end, confirmation, and activations between two reports.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FleetReport, OutcomeReport } from '../../../../src/core/fleet/report.js';
import { reportBundleRows } from '../../../../src/fleet/hosts/report-rows.js';
import {
  changeIntervals,
  mergeIntervals,
  type ReportedState,
} from '../../../../src/fleet/intervals/interval-rules.js';
import type { IntervalRow } from '../../../../src/fleet/store/tables.js';
import { bundleAt, reportOf } from '../../../kit/fleet/fleet-bench.js';

type Bundle = FleetReport['bundles'][number];

const nowMs = 1_000_000_000;
const activeAt = (
  serial: number,
  sinceMs: number,
  state: 'confirmed' | 'notified' | 'unconfirmed' = 'confirmed',
) => bundleAt(serial, { active: { serial, manifest: `m${serial}`, sinceMs, state } });
const refusedAt = (serial: number, atMs: number, code = 'CHECK_FAILED') =>
  ({ offered: { serial, state: 'refused', code, atMs } }) as const;
const activated = (n: number, serial: number, atMs: number): OutcomeReport => {
  const bundles = [{ bundle: 'dns', channel: 'stable', serial }];
  return { n, trigger: 'poll', outcome: 'activated', atMs, bundles };
};

function reported(bundles: readonly Bundle[], more: Partial<ReportedState> = {}): ReportedState {
  const rows = reportBundleRows('key', reportOf('web-1', { bundles }));
  return { keyId: 'key', receivedAtMs: nowMs, skewMs: 0, bundles: rows, outcomes: [], ...more };
}

/** An interval as `active 1 confirmed 5-9`; without a last number while it is open. */
const textOf = ({ kind, serial, state, code, since_ms, until_ms }: IntervalRow): string =>
  `${kind} ${serial} ${state}${code} ${since_ms}-${until_ms || ''}`;

/** Applies reports in order, with intervals in the form of the store. */
function play(...reports: readonly ReportedState[]): string[] {
  const rows = new Map<string, IntervalRow>();
  for (const one of reports) {
    const open = [...rows.values()].filter(({ until_ms }) => until_ms === 0);
    for (const row of changeIntervals(open, one))
      rows.set(JSON.stringify([row.kind, row.serial, row.code, row.since_ms]), row);
  }
  return [...rows.values()].map(textOf);
}

describe('the intervals of a host', () => {
  it('begin with a release, and end with the next one', () => {
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([activeAt(2, 9)])), [
      'active 1 confirmed 5-9',
      'active 2 confirmed 9-',
    ]);
  });

  it('are not written again for a report that changes nothing of them', () => {
    const [row] = changeIntervals([], reported([activeAt(1, 5)]));
    assert.ok(row);
    assert.deepEqual(changeIntervals([row], reported([activeAt(1, 5)])), []);
    assert.deepEqual(changeIntervals([row], reported([activeAt(1, 5, 'unconfirmed')])), [], 'a proof stays');
    const [notified] = changeIntervals([], reported([activeAt(1, 5, 'notified')]));
    assert.ok(notified);
    assert.deepEqual(changeIntervals([notified], reported([activeAt(1, 5, 'notified')])), []);
  });

  it('are of one release of one repository: another manifest with the same serial is another release', () => {
    const other = bundleAt(1, { active: { serial: 1, manifest: 'other', sinceMs: 9, state: 'confirmed' } });
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([other])), [
      'active 1 confirmed 5-9',
      'active 1 confirmed 9-',
    ]);
    const same = bundleAt(2, { active: { serial: 2, manifest: 'm1', sinceMs: 9, state: 'confirmed' } });
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([same])), [
      'active 1 confirmed 5-9',
      'active 2 confirmed 9-',
    ]);
  });

  it('of a refusal have the state of now, and end with another code', () => {
    const offered = (state: 'refused' | 'rolled-back', code: string) =>
      bundleAt(1, {
        active: { serial: 1, manifest: 'm1', sinceMs: 5, state: 'confirmed' },
        offered: { serial: 2, state, code, atMs: 7 },
      });
    const kinds = (...reports: readonly ReturnType<typeof offered>[]): string[] =>
      play(...reports.map((one) => reported([one]))).filter((text) => text.startsWith('refused'));
    const first = offered('refused', 'CHECK_FAILED');
    assert.deepEqual(kinds(offered('rolled-back', 'WORKER_REFUSED')), [
      'refused 2 rolled-backWORKER_REFUSED 7-',
    ]);
    assert.equal(kinds(first, offered('refused', 'LOADER_FAILED')).length, 2);
    const [row] = changeIntervals([], reported([first])).filter(({ kind }) => kind === 'refused');
    assert.ok(row);
    const next = changeIntervals([row], reported([offered('rolled-back', 'CHECK_FAILED')]));
    assert.deepEqual(
      next.filter(({ kind }) => kind === 'refused').map(({ state, until_ms }) => [state, until_ms]),
      [['rolled-back', 0]],
      'by its key it is the same row',
    );
  });

  it('keep the best state that was confirmed', () => {
    assert.deepEqual(play(reported([activeAt(1, 5, 'notified')]), reported([activeAt(1, 5)])), [
      'active 1 confirmed 5-',
    ]);
  });

  it('end with the report that has no such bundle', () => {
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([])), [`active 1 confirmed 5-${nowMs}`]);
  });

  it('are of refusals too, with their code, until something else is offered', () => {
    const refused = { ...activeAt(1, 5), ...refusedAt(2, 8) };
    const again = { ...activeAt(1, 5), ...refusedAt(2, 70) };
    assert.deepEqual(play(reported([refused]), reported([again]), reported([activeAt(3, 90)])), [
      'active 1 confirmed 5-90',
      `refused 2 refusedCHECK_FAILED 8-${nowMs}`,
      'active 3 confirmed 90-',
    ]);
  });

  it('are none of a release that only waits', () => {
    const waits = { offered: { serial: 2, state: 'deferred', code: 'ACTIVATION_PACED', atMs: 8 } } as const;
    assert.deepEqual(play(reported([{ ...activeAt(1, 5), ...waits }])), ['active 1 confirmed 5-']);
  });

  it('have each release that was active between two reports', () => {
    const outcomes = [activated(1, 2, 20), activated(2, 3, 30), activated(3, 4, 40)];
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([activeAt(4, 41)], { outcomes })), [
      'active 1 confirmed 5-20',
      'active 2  20-30',
      'active 3  30-41',
      'active 4 confirmed 41-',
    ]);
  });

  it('have the release between two times of another one', () => {
    const outcomes = [activated(1, 2, 20), activated(2, 1, 30)];
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([activeAt(1, 30)], { outcomes })), [
      'active 1 confirmed 5-20',
      'active 2  20-30',
      'active 1 confirmed 30-',
    ]);
    const repeated = [activated(1, 1, 20), activated(2, 1, 30)];
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([activeAt(1, 5)], { outcomes: repeated })), [
      'active 1 confirmed 5-',
    ]);
  });

  it('are at most 16 of one outcome, and none of a bundle that the host does not have', () => {
    const names = Array.from({ length: 20 }, (_, at) => `b${at}`);
    const has = names.map((bundle) => ({ ...activeAt(1, 90), bundle }));
    const bundles = ['other', ...names].map((bundle) => ({ bundle, channel: 'stable', serial: 7 }));
    const outcomes = [{ ...activated(1, 7, 20), bundles }];
    const rows = changeIntervals([], reported(has, { outcomes }));
    assert.equal(rows.filter(({ serial }) => serial === 7).length, 15);
    assert.equal(rows.length, 20 + 15);
  });

  it('have no release twice where its activation is among the outcomes', () => {
    const outcomes = [activated(1, 2, 20)];
    assert.deepEqual(play(reported([activeAt(1, 5)]), reported([activeAt(2, 19)], { outcomes })), [
      'active 1 confirmed 5-19',
      'active 2 confirmed 19-',
    ]);
  });

  it('are by the clock of the server, and never lie after the report', () => {
    const ahead = { skewMs: 500 };
    assert.deepEqual(play(reported([activeAt(1, nowMs - 100 + 500)], ahead)), [
      `active 1 confirmed ${nowMs - 100}-`,
    ]);
    assert.deepEqual(play(reported([activeAt(1, nowMs + 9999)])), [`active 1 confirmed ${nowMs}-`]);
    const dayMs = 86_400_000;
    const late = { receivedAtMs: 1000 * dayMs };
    assert.deepEqual(play(reported([activeAt(1, 5)], late)), [`active 1 confirmed ${600 * dayMs}-`]);
  });

  it('are merged by release and day, with the best state that was confirmed', () => {
    const row = (since_ms: number, more: Partial<IntervalRow> = {}): IntervalRow => ({
      ...{ key_id: 'key', bundle: 'dns', channel: 'stable', kind: 'active', serial: 1, manifest: 'm' },
      ...{ state: 'notified', code: '', since_ms, until_ms: since_ms + 5, written_ms: 0, merged: 1, ...more },
    });
    const dayMs = 86_400_000;
    const merged = mergeIntervals([
      ...[
        row(dayMs + 30),
        row(dayMs + 20, { state: 'confirmed' }),
        row(dayMs - 1),
        row(dayMs + 10, { serial: 2 }),
      ],
    ]);
    assert.deepEqual(
      merged.map((one) => [textOf(one), one.merged]),
      [
        [`active 1 confirmed ${dayMs + 20}-${dayMs + 35}`, 2],
        [`active 2 notified ${dayMs + 10}-${dayMs + 15}`, 1],
        [`active 1 notified ${dayMs - 1}-${dayMs + 4}`, 1],
      ],
    );
  });
});
