import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  eventLines,
  eventOfState,
  eventsOfChange,
  eventsOfCycle,
  maxEventsAtOnce,
} from '../../../../src/agent/report/events.js';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { bundleResult, cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';

const changes = (
  before: Partial<StatusReport>,
  after: Partial<StatusReport>,
): (readonly [name: string, fields: Readonly<Record<string, unknown>>])[] =>
  eventsOfChange(statusReport(before), statusReport(after)).map(({ event, fields }) => [event, fields]);

describe('the events of a cycle', () => {
  it('are its end and the activated generation', () => {
    const [ended, activated, ...more] = eventsOfCycle(
      cycleResult('activated', { bundles: [bundleResult('activated')] }),
    );
    assert.equal(ended?.event, 'cycle.ended');
    assert.deepEqual(Object.keys(ended?.fields ?? {}).sort(), [
      'bundles',
      'changed',
      'confirmed',
      'cycle',
      'durationMs',
      'exitCode',
      'fromGeneration',
      'generation',
      'outcome',
      'trigger',
    ]);
    assert.deepEqual(activated, {
      event: 'policy.activated',
      fields: { cycle: 'c-7f20', fromGeneration: 17, generation: 18, confirmed: true },
    });
    assert.deepEqual(more, []);
  });

  it('name each new refusal with its reason, once', () => {
    const refused = bundleResult('rejected', {
      problem: problem('CHECK_FAILED', `zones parse\n${'x'.repeat(1000)}`),
      retryAtMs: Date.UTC(2026, 10, 21, 15),
    });
    const events = eventsOfCycle(
      cycleResult('rejected', { bundles: [refused], problems: [refused.problem!] }),
    );
    assert.deepEqual(
      events.map((one) => one.event),
      ['cycle.ended', 'release.refused'],
    );
    const { message, ...fields } = events[1]!.fields;
    assert.deepEqual(fields, {
      cycle: 'c-7f20',
      bundle: 'dns-edge',
      channel: 'stable',
      serial: 42,
      code: 'CHECK_FAILED',
      retryAt: '2026-11-21T15:00:00.000Z',
    });
    assert.equal(String(message).length, 500);
    const again = eventsOfCycle(cycleResult('rejected', { bundles: [{ ...refused, remembered: true }] }));
    assert.deepEqual(
      again.map((one) => one.event),
      ['cycle.ended'],
    );
  });

  it('report the rollback to the previous generation', () => {
    const problems = [problem('WORKER_REFUSED', 'kresd@2: view undefined')];
    const events = eventsOfCycle(
      cycleResult('rolled-back', {
        bundles: [bundleResult('rolled-back', { problem: problems[0]! })],
        problems,
      }),
    );
    assert.deepEqual(
      events.map((one) => one.event),
      ['cycle.ended', 'policy.rolled-back', 'release.refused'],
    );
    assert.equal(events[1]?.fields['code'], 'WORKER_REFUSED');
    assert.equal(events[1]?.fields['generation'], 17);
  });
});

describe('the events of a change', () => {
  it('are empty if only ages have changed', () => {
    assert.deepEqual(changes({}, { atMs: 1, nextPollAtMs: 2 }), []);
  });

  it('report the freshness and the reason of a stale one', () => {
    const failing = { code: 'SERVER_UNREACHABLE', sinceMs: 0, atMs: 1, times: 9 } as const;
    assert.deepEqual(changes({}, { freshness: { state: 'stale', failing } }), [
      ['freshness.stale', { from: 'fresh', code: 'SERVER_UNREACHABLE' }],
    ]);
    const refused = { ...failing, code: 'SIGNATURE_WRONG_KEY', role: 'targets' } as const;
    assert.deepEqual(changes({}, { freshness: { state: 'refused', failing, refused } }), [
      ['freshness.refused', { from: 'fresh', code: 'SIGNATURE_WRONG_KEY', role: 'targets' }],
    ]);
    const expired = { role: 'timestamp', version: 1, expiresAtMs: 0 };
    assert.deepEqual(changes({}, { freshness: { state: 'frozen', expired } }), [
      ['freshness.frozen', { from: 'fresh', role: 'timestamp' }],
    ]);
    assert.deepEqual(changes({ freshness: { state: 'stale', failing } }, { freshness: { state: 'fresh' } }), [
      ['freshness.fresh', { from: 'stale' }],
    ]);
  });

  it('report new versions of trusted metadata', () => {
    const role = (version: number) => ({ role: 'root', version, expiresAtMs: Date.UTC(2027, 0, 1) });
    assert.deepEqual(changes({ trust: [role(1)] }, { trust: [role(2)] }), [
      ['trust.changed', { role: 'root', fromVersion: 1, version: 2, expiresAt: '2027-01-01T00:00:00.000Z' }],
    ]);
  });

  it('report damage that a scan found, and its repair', () => {
    const counts = { looks: 1, damaged: 1, repaired: 0, failed: 0 };
    const scrub = (outcome: 'intact' | 'damaged' | 'repaired', atMs: number) => ({
      scrub: { atMs, outcome, found: 2, damage: [], counts },
    });
    assert.deepEqual(changes({}, scrub('damaged', 1)), [['policy.damaged', { found: 2 }]]);
    assert.deepEqual(changes(scrub('damaged', 1), scrub('repaired', 2)), [['policy.repaired', { found: 2 }]]);
    assert.deepEqual(changes(scrub('repaired', 2), scrub('repaired', 2)), []);
    assert.deepEqual(changes(scrub('repaired', 2), scrub('intact', 3)), []);
  });

  it('report the begin and end of a problem, and a block with its own event', () => {
    const blocked = problem('ACTIVATION_BLOCKED', 'the restore failed');
    const { message, hint } = blocked;
    assert.deepEqual(changes({}, { problems: [blocked] }), [
      ['problem.raised', { code: 'ACTIVATION_BLOCKED', message, hint }],
      ['policy.blocked', { message }],
    ]);
    assert.deepEqual(changes({ problems: [blocked] }, {}), [
      ['problem.ended', { code: 'ACTIVATION_BLOCKED' }],
      ['policy.unblocked', {}],
    ]);
  });

  it('report a pause with its operator, and its end', () => {
    const pause = { by: 'anna', reason: 'change freeze', atMs: 1, untilMs: Date.UTC(2027, 0, 1) };
    assert.deepEqual(changes({}, { pause }), [
      ['policy.paused', { by: 'anna', reason: 'change freeze', until: '2027-01-01T00:00:00.000Z' }],
    ]);
    assert.deepEqual(changes({ pause }, { pause }), []);
    assert.deepEqual(changes({ pause }, {}), [['policy.resumed', {}]]);
  });

  it('report held releases with their operator', () => {
    const hold = { bundle: 'dns-edge', serial: 42, by: 'anna', atMs: 0, reason: 'no' };
    assert.deepEqual(changes({}, { holds: [hold] }), [
      ['release.held', { bundle: 'dns-edge', serial: 42, by: 'anna', reason: 'no' }],
    ]);
    assert.deepEqual(changes({ holds: [hold] }, {}), [
      ['release.released', { bundle: 'dns-edge', serial: 42 }],
    ]);
  });

  it('report a release that settles, but not one that settled before', () => {
    const withBake = (bake: NonNullable<StatusReport['bundles'][number]['bake']>, serial = 42) =>
      statusReport({ bundles: [{ bundle: 'dns-edge', channel: 'stable', serial, bake }] });
    const baking = withBake({ state: 'baking', leftMs: 1, forMs: 2, ends: [] });
    const settled = withBake({ state: 'settled', atMs: 1, observed: false });
    assert.deepEqual(
      eventsOfChange(baking, settled).map(({ event, fields }) => [event, fields]),
      [['release.settled', { bundle: 'dns-edge', channel: 'stable', serial: 42, observed: false }]],
    );
    assert.deepEqual(eventsOfChange(settled, settled), []);
    assert.deepEqual(eventsOfChange(withBake({ state: 'baking', leftMs: 1, ends: [] }, 43), settled), []);
  });

  it('report the notification and the answer of each worker', () => {
    const worker = (state: Parameters<typeof workerStatus>[1], confirmed: number, text: string) => ({
      workers: [workerStatus('kresd@1', state, { confirmed, text })],
    });
    const name = { group: 'resolver', worker: 'kresd@1' };
    const before = worker('confirmed', 17, 'ok');
    assert.deepEqual(changes(before, worker('unreachable', 17, 'refused')), [
      ['worker.notified', { ...name, state: 'unreachable', wanted: 18, confirmed: 17, text: 'refused' }],
    ]);
    assert.deepEqual(changes(before, worker('pending', 17, '')), [
      ['worker.pending', { ...name, wanted: 18, confirmed: 17 }],
    ]);
    assert.deepEqual(changes(before, worker('confirmed', 18, 'ok')), [
      ['worker.notified', { ...name, state: 'confirmed', wanted: 18, confirmed: 18, text: 'ok' }],
    ]);
    assert.deepEqual(changes(before, { workers: [] }), [['worker.gone', name]]);
    assert.deepEqual(changes(before, worker('confirmed', 17, 'other words')), []);
  });
});

describe('the lines of events', () => {
  it('have schema, type, name, time and host first', () => {
    const line = eventLines([eventOfState('run', '0.1.0')], { host: 'edge', atMs: 0 });
    assert.equal(
      line,
      '{"schema":1,"type":"event","event":"agent.state","time":"1970-01-01T00:00:00.000Z","host":"edge","state":"run","version":"0.1.0"}\n',
    );
  });

  it('are bounded, and count the dropped events', () => {
    const many = Array.from({ length: maxEventsAtOnce + 3 }, () => eventOfState('run', '1'));
    const lines = eventLines(many, { host: 'edge', atMs: 0, dropped: 2 }).trim().split('\n');
    assert.equal(lines.length, maxEventsAtOnce + 1);
    const { event, count } = JSON.parse(lines.at(-1) ?? '') as Record<string, unknown>;
    assert.deepEqual([event, count], ['events.dropped', 5]);
  });
});
