// The cycle results after which a host misses the offered release, the begin of that time, and the states that follow.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { missedAfter } from '../../../../src/agent/freshness/missed-release-rules.js';
import type { BundleResult } from '../../../../src/core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../../../src/core/cycle/problem.js';
import { type ErrorCode, WritError } from '../../../../src/core/errors.js';
import { createMissedReleaseError, judgeMissedRelease } from '../../../../src/core/status/missed-release.js';

const atMs = 1_800_000_000_000;
const before = { serial: 2, sinceMs: atMs - 5000, code: 'SERVER_ERROR', url: 'https://a/2' } as const;

/** A bundle with serial 1, to which a release was offered. */
function result(code: ErrorCode | undefined, more: Partial<BundleResult> = {}): BundleResult {
  const base = { bundle: 'b', channel: 'stable', fromSerial: 1, toSerial: 3 } as const;
  if (code === undefined) return { ...base, outcome: 'activated', ...more };
  const error = new WritError(code, 'text', { facts: { url: 'https://a/3' } });
  return { ...base, outcome: outcomeOf(error), problem: problemOf(error), ...more };
}

describe('a bundle at the end of a cycle', () => {
  const missing: readonly ErrorCode[] = [
    ...(['SERVER_ERROR', 'DOWNLOAD_TRUNCATED', 'DOWNLOAD_DIGEST', 'TARGET_MISSING'] as const),
    ...(['REDIRECT_REFUSED', 'DISK_FULL', 'CHECK_BROKEN'] as const),
  ];
  for (const code of missing)
    it(`misses its release with ${code}, since the first one that it missed`, () => {
      const url = 'https://a/3';
      assert.deepEqual(missedAfter(undefined, result(code), { atMs }), {
        serial: 3,
        sinceMs: atMs,
        code,
        url,
      });
      const again = missedAfter(before, result(code), { atMs });
      assert.deepEqual(again, { serial: 3, sinceMs: before.sinceMs, code, url });
    });

  const named: readonly ErrorCode[] = [
    ...(['RELEASE_HELD', 'ACTIVATION_PAUSED', 'ACTIVATION_PACED', 'REMEMBERED_REFUSAL'] as const),
    ...(['CHECK_FAILED', 'BAKE_GAP', 'BAKE_FAILED', 'REQUIRES_UNKNOWN', 'ACTIVATION_BLOCKED'] as const),
    ...(['TARGET_UNKNOWN', 'CHECK_DEFERRED'] as const),
  ];
  for (const code of named)
    it(`misses nothing with ${code}, because the status reports that separately`, () => {
      assert.equal(missedAfter(before, result(code), { atMs }), undefined);
    });

  it('misses nothing when the offered release is active', () => {
    assert.equal(missedAfter(before, result(undefined), { atMs }), undefined);
    assert.equal(missedAfter(before, result('SERVER_ERROR', { fromSerial: 3 }), { atMs }), undefined);
  });

  it('is unchanged if the process ended the cycle', () => {
    assert.equal(missedAfter(before, result('INTERRUPTED'), { atMs }), before);
    assert.equal(missedAfter(undefined, result('INTERRUPTED'), { atMs }), undefined);
  });

  it('misses a release of unknown serial if a delegated role cannot be fetched', () => {
    const { toSerial: _, ...unknown } = result('SERVER_ERROR');
    const missed = missedAfter(undefined, unknown, { atMs });
    assert.deepEqual(missed, { sinceMs: atMs, code: 'SERVER_ERROR', url: 'https://a/3' });
    assert.ok(missed !== undefined);
    const stale = judgeMissedRelease(missed, { nowMs: atMs + 10, staleAfterMs: 5 });
    assert.match(
      createMissedReleaseError('b', stale).message,
      /^b: newer releases may be offered since .*\[SERVER_ERROR\]/,
    );
  });

  it('misses its release by the error that ended the whole cycle', () => {
    const error = problemOf(new WritError('DISK_FULL', 'no room'));
    const taken = { ...result(undefined), outcome: 'unchanged' } as const;
    assert.equal(missedAfter(undefined, taken, { atMs, error })?.code, 'DISK_FULL');
  });

  it('misses its release since now if the recorded time is in the future', () => {
    const future = { ...before, sinceMs: atMs + 1e9 };
    assert.equal(missedAfter(future, result('SERVER_ERROR'), { atMs })?.sinceMs, atMs);
  });
});

describe('a missed release', () => {
  const state = (ageMs: number, maxStaleMs?: number, overdueNotedMs?: number) =>
    judgeMissedRelease(
      { sinceMs: atMs },
      { nowMs: atMs + ageMs, staleAfterMs: 100, maxStaleMs, overdueNotedMs },
    ).state;

  it('waits, then is stale, then overdue, by the smaller limit where maxStale is smaller', () => {
    assert.deepEqual([state(100), state(101), state(1e9)], ['waiting', 'stale', 'stale']);
    assert.deepEqual([state(199, 200), state(200, 200)], ['stale', 'overdue']);
    assert.deepEqual([state(49, 50), state(50, 50)], ['waiting', 'overdue']);
  });

  it('stays overdue if the clock is set back', () => {
    assert.equal(state(-5000, 200, atMs + 200), 'overdue');
  });
});
