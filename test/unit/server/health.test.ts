import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TopLevelRole } from '../../../src/core/tuf/tuf-metadata.js';
import { judgeHealth } from '../../../src/server/health.js';
import type { RoleState, ServedState } from '../../../src/server/resign/repository-view.js';

const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 10, 1);

function state(changes: Partial<Record<TopLevelRole, Partial<RoleState>>> = {}): ServedState {
  const role = (lifeDays: number, name: TopLevelRole): RoleState => ({
    version: 1,
    signedAtMs: nowMs,
    expiresMs: nowMs + lifeDays * dayMs,
    ...changes[name],
  });
  return {
    roles: {
      root: role(365, 'root'),
      targets: role(365, 'targets'),
      snapshot: role(30, 'snapshot'),
      timestamp: role(7, 'timestamp'),
    },
    problems: [],
    pending: [],
    missing: [],
  };
}

const summary = (input: Parameters<typeof judgeHealth>[0]): readonly string[] => {
  const { status, reasons } = judgeHealth(input);
  return [status, ...reasons.map(({ level, code }) => `${level} ${code}`)];
};

describe('health', () => {
  it('is ok while every role has time, and shows how much', () => {
    const health = judgeHealth({ state: state(), nowMs });
    assert.equal(health.status, 'ok');
    assert.equal(health.onlineKeys, false);
    assert.deepEqual(health.roles.timestamp, {
      version: 1,
      expires: '2026-11-08T00:00:00.000Z',
      secondsLeft: 7 * 86_400,
    });
  });

  it('is critical when hosts refuse the timestamp or the snapshot', () => {
    for (const role of ['timestamp', 'snapshot'] as const) {
      const expired = state({ [role]: { expiresMs: nowMs } });
      assert.deepEqual(summary({ state: expired, nowMs }), ['critical', 'critical METADATA_EXPIRED']);
    }
  });

  it('is critical when a role cannot be read', () => {
    const problems = [{ role: 'snapshot', code: 'METADATA_MISSING', message: 'gone' }] as const;
    const damaged = { ...state(), problems };
    assert.deepEqual(summary({ state: damaged, nowMs }), ['critical', 'critical METADATA_MISSING']);
  });

  it('warns when less than a quarter of the validity period of an online role is left', () => {
    const quarter = nowMs + 5.25 * dayMs;
    assert.deepEqual(summary({ state: state(), nowMs: quarter }), ['ok']);
    assert.deepEqual(summary({ state: state(), nowMs: quarter + 1 }), ['warning', 'warning EXPIRES_SOON']);
  });

  it('warns, and stays up, when people have to sign soon or should have', () => {
    const soon = state({ targets: { expiresMs: nowMs + 14 * dayMs - 1 } });
    assert.deepEqual(summary({ state: soon, nowMs }), ['warning', 'warning EXPIRES_SOON']);
    const late = state({ root: { expiresMs: nowMs - 1 } });
    assert.deepEqual(summary({ state: late, nowMs }), ['warning', 'warning METADATA_EXPIRED']);
  });

  it('reports for an online role near its expiry that this server does not sign it, where it has no keys', () => {
    const late = { state: state(), nowMs: nowMs + 6 * dayMs };
    assert.match(
      judgeHealth(late).reasons[0]?.message ?? '',
      /08T.*, and this server has no online keys: writ re/,
    );
    assert.doesNotMatch(judgeHealth({ ...late, resign: {} }).reasons[0]?.message ?? '', /no online keys/);
  });

  it('warns of an obstacle to re-signing, and reports until when hosts accept releases', () => {
    const obstacle = { code: 'DISK_DENIED', message: 'this user cannot write to repo: EACCES' } as const;
    const input = { state: state(), nowMs, resign: { obstacle } };
    assert.deepEqual(summary(input), ['warning', 'warning DISK_DENIED']);
    assert.equal(
      judgeHealth(input).reasons[0]?.message,
      're-signing would fail: this user cannot write to repo: EACCES; hosts take nothing new after 2026-11-08T00:00:00.000Z',
    );
  });

  it('warns of listed files of teams that are missing, and names the first five', () => {
    const missing = Array.from({ length: 7 }, (_, index) => `1.team-${index}.json`);
    const lost = { ...state(), missing };
    assert.deepEqual(summary({ state: lost, nowMs }), ['warning', 'warning METADATA_MISSING']);
    const { message = '' } = judgeHealth({ state: lost, nowMs, resign: {} }).reasons[0] ?? {};
    assert.match(message, /lists 1\.team-0\.json, .*, 1\.team-4\.json and 2 more, which/);
  });

  it('warns of a publish that waits for the online keys, but only where the server does not sign', () => {
    const pending = { ...state(), pending: ['2.targets.json'] };
    assert.deepEqual(summary({ state: pending, nowMs }), ['warning', 'warning PUBLISH_PENDING']);
    assert.deepEqual(summary({ state: pending, nowMs, resign: {} }), ['ok']);
  });

  it('names a file that hosts would refuse with its cause, and counts no failure', () => {
    const message = '2.dns-team.json cannot be published: a.tar.br is missing [TARGET_MISSING].';
    const files = [{ name: '2.dns-team.json', text: message }];
    const setAside = { files, verifiedUnder: '1 1', tries: 9, retryAtMs: 0 };
    const { status, reasons } = judgeHealth({ state: state(), nowMs, resign: { setAside } });
    assert.deepEqual(
      [status, reasons],
      ['warning', [{ level: 'warning', code: 'PUBLISH_PENDING', message }]],
    );
  });

  it('shows that re-signing fails, and when it last went well', () => {
    const failure = { code: 'KEYS_MISSING', message: 'no key', count: 3, atMs: nowMs } as const;
    const health = judgeHealth({ state: state(), nowMs, resign: { failure, lastSuccessMs: nowMs } });
    assert.equal(health.status, 'warning');
    assert.equal(health.onlineKeys, true);
    assert.equal(health.lastResign, '2026-11-01T00:00:00.000Z');
    assert.deepEqual(health.reasons, [
      {
        level: 'warning',
        code: 'KEYS_MISSING',
        message: 're-signing failed 3 times: no key; hosts take nothing new after 2026-11-08T00:00:00.000Z',
      },
    ]);
  });
});
