import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clampIntervalMs, judgeReply, readChallenge } from '../../../../src/agent/fleet/fleet-answers.js';
import { ReportTimes } from '../../../../src/agent/fleet/report-times.js';
import type { ErrorCode } from '../../../../src/core/errors.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const url = new URL('https://fleet.example.net/v1/reports');
const answered = (status: number, body = '{}') => ({ kind: 'answered', status, body }) as const;
const hourMs = 3_600_000;

describe('a granted report interval', () => {
  it('is never shorter than the configured one, and at most ten times that and an hour', () => {
    assert.equal(clampIntervalMs(60_000, 1), 60_000);
    assert.equal(clampIntervalMs(60_000, 120_000), 120_000);
    assert.equal(clampIntervalMs(60_000, hourMs), 600_000);
    assert.equal(clampIntervalMs(1_800_000, 9 * hourMs), hourMs);
    assert.equal(clampIntervalMs(hourMs, 9 * hourMs), hourMs);
  });

  it('applies only to the interval that was configured then', () => {
    const clock = fakeClock();
    const times = new ReportTimes({ clock: () => clock, installId: () => 'a', random01: () => 0.5 });
    const fleet = {
      url: url.href,
      tokenFile: '/t',
      everyMs: 60_000,
      detail: 'codes',
      stay: 'lasting',
      claim: 'new',
    } as const;
    times.stored(fleet, 600_000);
    assert.equal(times.everyMs(fleet), 600_000);
    assert.equal(times.everyMs({ ...fleet, everyMs: 30_000 }), 30_000);
  });
});

describe('a report after a failed one', () => {
  it('waits for its backoff also after a change', () => {
    const clock = fakeClock();
    const times = new ReportTimes({ clock: () => clock, installId: () => 'a', random01: () => 0.5 });
    const fleet = {
      url: url.href,
      tokenFile: '/t',
      everyMs: 600_000,
      detail: 'codes',
      stay: 'lasting',
      claim: 'new',
    } as const;
    times.failed(fleet, 'failed', 1_800_000);
    assert.ok(times.untilDue(fleet, true) >= 1_800_000);
    times.failed(fleet, 'failed', undefined);
    times.failed(fleet, 'failed', undefined);
    assert.ok(times.untilDue(fleet, true) > 600_000);
    times.stored(fleet, 600_000);
    assert.equal(times.untilDue(fleet, true), 1000);
  });
});

describe('a response', () => {
  it('becomes the error of its code, otherwise that of its status', () => {
    const is = (code: ErrorCode, status: number, body?: string, asked: 'enrol' | 'report' = 'report') =>
      throwsCode(code, () => judgeReply(answered(status, body), url, asked));
    is('FLEET_KEY_UNKNOWN', 401);
    is('FLEET_TOKEN_REFUSED', 401, '{}', 'enrol');
    is('FLEET_KEY_RETIRED', 403);
    is('FLEET_KEY_WAITING', 403, '{"code":"FLEET_KEY_WAITING"}');
    is('FLEET_HOST_NOT_COVERED', 403, '{"code":"FLEET_HOST_NOT_COVERED"}', 'enrol');
    is('FLEET_ENROL_FULL', 403, '{"code":"FLEET_ENROL_FULL"}', 'enrol');
    is('FLEET_SIGNATURE_REFUSED', 401, '{"code":"FLEET_SIGNATURE_REFUSED"}');
    is('FLEET_REPORT_INVALID', 400);
    is('FLEET_REPORT_INVALID', 409, '{}', 'enrol');
    is('FLEET_ANSWER', 404);
    // A code of Writ that a server may not send.
    is('FLEET_ANSWER', 404, '{"code":"STATE_DAMAGED"}');
  });

  it('that never arrived names an untrusted certificate as the cause', () => {
    const is = (code: ErrorCode, reason: string) =>
      throwsCode(code, () => judgeReply({ kind: 'failed', reason }, url, 'report'));
    is('FLEET_CERTIFICATE', 'DEPTH_ZERO_SELF_SIGNED_CERT');
    is('FLEET_CERTIFICATE', 'ERR_TLS_CERT_ALTNAME_INVALID');
    is('FLEET_UNREACHABLE', 'ECONNREFUSED');
    is('FLEET_ANSWER', 'its answer is longer than 16384 bytes');
  });

  it('is a valid challenge only with a nonce for one header, and a counter below the maximum', () => {
    for (const body of [
      { counter: 1, nonce: 'a\r\nx: y' },
      { counter: 1, nonce: 'n'.repeat(201) },
      { counter: Number.MAX_SAFE_INTEGER, nonce: 'n' },
    ])
      throwsCode('FLEET_ANSWER', () => readChallenge(answered(409, JSON.stringify(body)), url));
    assert.deepEqual(readChallenge(answered(409, '{"counter":1,"nonce":"n"}'), url), {
      counter: 1,
      nonce: 'n',
    });
  });
});
