import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isGone,
  isHostSilent,
  isUnjudged,
  lastSeenLagMs,
} from '../../../../src/fleet/hosts/silence-rules.js';

describe('silence of a host', () => {
  const everyMs = 300_000;
  const host = {
    state: 'accepted',
    kind: 'writ',
    agent: 'run',
    last_seen_ms: 1_000_000,
    every_ms: everyMs,
    ephemeral: 0,
  } as const;
  const dueMs = 1_000_000 + 2 * everyMs + lastSeenLagMs;
  const fleetAt = (nowMs: number, sinceMs = 0) => ({
    accepting_since_ms: sinceMs,
    accepting_until_ms: nowMs,
  });
  const silentAt = (nowMs: number, more: object = {}): boolean =>
    isHostSilent({ ...host, ...more }, fleetAt(nowMs), nowMs);

  it('begins behind two granted intervals', () => {
    assert.equal(silentAt(dueMs), false);
    assert.equal(silentAt(dueMs + 1), true);
    assert.equal(silentAt(dueMs + 1, { every_ms: everyMs + 1 }), false);
  });

  it('does not apply to a stopped, waiting or retired host', () => {
    for (const more of [{ agent: 'stop' }, { agent: 'shutdown' }, { state: 'waiting' }, { state: 'retired' }])
      assert.equal(silentAt(dueMs + 1, more), false);
  });

  it('is never reported before two intervals in which the server accepts reports', () => {
    const sinceMs = 50_000_000;
    const laterMs = sinceMs + 2 * everyMs + lastSeenLagMs;
    assert.equal(isHostSilent(host, fleetAt(laterMs, sinceMs), laterMs), false);
    assert.equal(isHostSilent(host, fleetAt(laterMs + 1, sinceMs), laterMs + 1), true);
  });

  it('is unknown for an overdue host until the server has accepted reports for two intervals, and for no other host', () => {
    const sinceMs = 500_000_000;
    const laterMs = sinceMs + 2 * everyMs + lastSeenLagMs;
    const open = (nowMs: number, more: object = {}): boolean =>
      isUnjudged({ ...host, ...more }, fleetAt(nowMs, sinceMs), nowMs);
    assert.deepEqual([open(sinceMs + 1), open(laterMs), open(laterMs + 1)], [true, true, false]);
    assert.equal(open(laterMs, { last_seen_ms: sinceMs }), false, 'it still has time');
    assert.equal(open(laterMs, { agent: 'stop' }), false);
    // Only a host with an interval of a day has unknown liveness for two days.
    assert.equal(open(laterMs + 1, { every_ms: 86_400_000, last_seen_ms: sinceMs - 200_000_000 }), true);
    assert.equal(isUnjudged(host, fleetAt(dueMs - 30_000), dueMs + 1), true, 'no server accepts');
  });

  it('is not reported while no server accepts reports', () => {
    const nowMs = dueMs + 100_000;
    assert.equal(isHostSilent(host, fleetAt(nowMs - 30_000), nowMs), true);
    assert.equal(isHostSilent(host, fleetAt(nowMs - 30_001), nowMs), false);
  });

  it('of a day retires an ephemeral host, whatever its last report stated, and no other host', () => {
    const dayMs = 86_400_000;
    const nowMs = host.last_seen_ms + dayMs;
    const ephemeral = { ...host, agent: 'shutdown', ephemeral: 1 };
    assert.equal(isGone(ephemeral, fleetAt(nowMs), nowMs), false);
    assert.equal(isGone(ephemeral, fleetAt(nowMs + 1), nowMs + 1), true);
    assert.equal(isGone(ephemeral, fleetAt(nowMs - 60_000), nowMs + 1), false);
    assert.equal(isGone(ephemeral, fleetAt(nowMs + 1, host.last_seen_ms + 1), nowMs + 1), false);
    for (const state of ['waiting', 'retired'] as const)
      assert.equal(isGone({ ...ephemeral, state }, fleetAt(nowMs + 1), nowMs + 1), false);
    assert.equal(isGone({ ...ephemeral, ephemeral: 0 }, fleetAt(nowMs + 1), nowMs + 1), false);
  });
});
