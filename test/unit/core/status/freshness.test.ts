import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ErrorCode, errorCodes } from '../../../../src/core/error-codes.js';
import {
  type Contact,
  classifyRefreshFailure,
  createStalePolicyError,
  type FreshnessFacts,
  judgeFreshness,
  type RefreshAttempt,
  recordAttempt,
} from '../../../../src/core/status/freshness.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const t0 = Date.UTC(2026, 10, 1);

function attempt(atMinutes: number, code?: ErrorCode, role?: string): RefreshAttempt {
  const facts = role === undefined ? {} : { role };
  return { atMs: t0 + atMinutes * minuteMs, ...(code === undefined ? {} : { error: { code, facts } }) };
}

function after(...attempts: readonly RefreshAttempt[]): Contact {
  return attempts.reduce(recordAttempt, {});
}

const roles = [
  { role: 'timestamp', version: 7, expiresAtMs: t0 + 7 * dayMs },
  { role: 'targets', version: 3, expiresAtMs: t0 + 365 * dayMs },
];

function judge(contact: Contact, atMinutes: number, more: Partial<FreshnessFacts> = {}) {
  const nowMs = t0 + atMinutes * minuteMs;
  return judgeFreshness({ contact, nowMs, roles, staleAfterMs: 15 * minuteMs, ...more });
}

describe('the record of refresh attempts', () => {
  it('counts consecutive failures, with the first and last time, and the last code and role', () => {
    const contact = after(
      attempt(0),
      attempt(5, 'SERVER_UNREACHABLE'),
      attempt(10, 'SIGNATURE_THRESHOLD', 'snapshot'),
      attempt(15, 'SIGNATURE_THRESHOLD', 'timestamp'),
      attempt(20, 'SERVER_BUSY'),
    );
    const at = (minutes: number): number => t0 + minutes * minuteMs;
    assert.deepEqual(contact, {
      lastContactAtMs: at(15),
      verifiedAtMs: at(0),
      failing: { code: 'SERVER_BUSY', sinceMs: at(5), atMs: at(20), times: 4 },
      refused: {
        code: 'SIGNATURE_THRESHOLD',
        role: 'timestamp',
        sinceMs: at(10),
        atMs: at(15),
        times: 2,
      },
    });
  });

  it('is cleared only by a success', () => {
    const contact = after(attempt(0, 'METADATA_MIX', 'snapshot'), attempt(5, 'DISK_FULL'), attempt(9));
    assert.deepEqual(contact, { lastContactAtMs: t0 + 9 * minuteMs, verifiedAtMs: t0 + 9 * minuteMs });
  });

  it('classifies each code of metadata and signatures as expired or refused', () => {
    for (const code of Object.keys(errorCodes) as ErrorCode[]) {
      if (!/^(METADATA|SIGNATURE)_/.test(code) || code === 'SIGNATURE_DISAGREEMENT') continue;
      assert.equal(classifyRefreshFailure(code), code === 'METADATA_EXPIRED' ? 'expired' : 'refused', code);
    }
    assert.deepEqual(
      [classifyRefreshFailure('DISK_FULL'), classifyRefreshFailure('ROOT_NOT_LINKED')],
      ['host', 'host'],
    );
  });
});

describe('freshness', () => {
  it('is kept with missed polls until `staleAfter`, and the report names them', () => {
    const missed = after(attempt(0), attempt(5, 'SERVER_UNREACHABLE'), attempt(10, 'SERVER_UNREACHABLE'));
    const young = judge(missed, 15);
    assert.deepEqual([young.state, young.sinceMs, young.failing?.times], ['fresh', undefined, 2]);
    const old = judge(missed, 16);
    assert.deepEqual([old.state, old.sinceMs, old.ageMs], ['stale', t0 + 15 * minuteMs, 16 * minuteMs]);
  });

  it('ends at once with refused metadata, until a success', () => {
    const attacked = after(
      attempt(0),
      attempt(5, 'METADATA_ROLLBACK', 'timestamp'),
      attempt(6, 'SERVER_BUSY'),
    );
    const report = judge(attacked, 6);
    assert.deepEqual([report.state, report.sinceMs], ['refused', t0 + 5 * minuteMs]);
    assert.deepEqual([report.refused?.code, report.refused?.role], ['METADATA_ROLLBACK', 'timestamp']);
    assert.equal(judge(recordAttempt(attacked, attempt(7)), 7).state, 'fresh');
  });

  it('is frozen after a trusted role expired, and names the first expired role', () => {
    const report = judge(after(attempt(0)), (8 * dayMs) / minuteMs);
    assert.deepEqual([report.state, report.sinceMs], ['frozen', t0 + 7 * dayMs]);
    assert.deepEqual(report.expired, roles[0]);
    assert.equal(judge(after(attempt(0)), (7 * dayMs) / minuteMs).state, 'frozen');
    assert.equal(judge(after(attempt(0)), (7 * dayMs) / minuteMs - 1).state, 'stale');
  });

  it('is frozen since the first failure if a role expired only by a signed time, and never since a future time', () => {
    const signed = { clockFloorMs: t0 + 3000 * dayMs };
    const report = judge(after(attempt(0), attempt(5, 'METADATA_EXPIRED', 'timestamp')), 10, signed);
    assert.deepEqual([report.state, report.sinceMs], ['frozen', t0 + 5 * minuteMs]);
    const unfailed = judge(after(attempt(0)), 10, signed);
    assert.deepEqual([unfailed.state, unfailed.sinceMs], ['frozen', undefined]);
  });

  it('is frozen if the offered metadata has expired', () => {
    const report = judge(after(attempt(0), attempt(5, 'METADATA_EXPIRED', 'snapshot')), 6);
    assert.deepEqual([report.state, report.sinceMs], ['frozen', t0 + 5 * minuteMs]);
    assert.deepEqual([report.failing?.role, report.expired], ['snapshot', undefined]);
  });

  it('is stale without an age on a host that never reached a server', () => {
    const report = judge({}, 0, { roles: [], maxStaleMs: 1 });
    assert.deepEqual(report, { state: 'stale' });
  });

  it('is overdue after `maxStale` and not at it, and stale then with any `staleAfter`', () => {
    const maxStaleMs = 10 * minuteMs;
    assert.equal(judge(after(attempt(0)), 10, { maxStaleMs }).overdueSinceMs, undefined);
    const report = judge(after(attempt(0)), 11, { maxStaleMs });
    assert.deepEqual([report.overdueSinceMs, report.state], [t0 + maxStaleMs, 'stale']);
    const attacked = after(attempt(0), attempt(5, 'METADATA_MIX'));
    assert.equal(judge(attacked, 11, { maxStaleMs }).overdueSinceMs, t0 + maxStaleMs);
  });
});

describe('the age', () => {
  it('counts from the signature of the timestamp if that is later, as after a restart', () => {
    const signedAtMs = t0 - 30 * minuteMs;
    assert.equal(judge({}, 0, { signedAtMs }).ageMs, 30 * minuteMs);
    const remembered = after(attempt(-5));
    assert.equal(judge(remembered, 0, { signedAtMs }).ageMs, 5 * minuteMs);
  });

  it('is judged at the clock floor after the clock was set back', () => {
    const clockFloorMs = t0 + 3 * dayMs;
    const report = judge({}, 0, { signedAtMs: t0, clockFloorMs });
    assert.equal(report.ageMs, 3 * dayMs);
    assert.equal(judge({}, 0, { signedAtMs: t0, clockFloorMs: t0 + 8 * dayMs }).state, 'frozen');
  });

  it('does not trust a success in the future', () => {
    const signedAtMs = t0 - 60 * minuteMs;
    assert.equal(judge(after(attempt(5)), 0, { signedAtMs }).ageMs, 60 * minuteMs);
    assert.deepEqual(judge(after(attempt(5)), 0).ageMs, undefined);
  });

  it('grows by the monotonic clock while the wall clock stands still', () => {
    const report = judge(after(attempt(0)), 1, { elapsedMs: 40 * minuteMs });
    assert.deepEqual([report.ageMs, report.state], [40 * minuteMs, 'stale']);
  });
});

describe('POLICY_STALE', () => {
  const textOf = (ageMs: number, maxStaleMs: number): string =>
    createStalePolicyError({ state: 'stale', ageMs, overdueSinceMs: t0 }, maxStaleMs).message;

  it('has the age in seconds below two minutes, otherwise in minutes', () => {
    assert.match(textOf(45_000, 30_000), / 45 s ago, longer than maxStale$/);
    assert.match(textOf(119_999, 30_000), / 119 s ago/);
    assert.match(textOf(120_000, 30_000), / 2 minutes ago/);
  });

  it('names the start of the period if the policy is younger than maxStale again', () => {
    const text =
      'policy was older than maxStale from 2026-11-01 00:00:00 UTC on; the end is not recorded yet';
    assert.equal(textOf(0, 30_000), text);
    assert.equal(textOf(30_000, 30_000), text);
    assert.notEqual(textOf(30_001, 30_000), text);
  });
});
