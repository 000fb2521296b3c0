import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeNames, type NameFacts } from '../../../../src/agent/doctor/check-names.js';
import {
  judgeClock,
  judgeMirrors,
  judgeTrust,
  type MirrorFacts,
  type TrustFacts,
} from '../../../../src/agent/doctor/check-server.js';

const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 10, 21);
const url = 'https://policy.example.net/';

describe('a mirror', () => {
  const well: MirrorFacts = { url, answer: { status: 200, tookMs: 38 }, nowMs };
  const away: MirrorFacts = {
    url,
    error: { code: 'SERVER_UNREACHABLE', message: 'connection refused', hint: 'Check the network.' },
    nowMs,
  };
  const cases: readonly (readonly [string, MirrorFacts, string])[] = [
    ['that answers', well, 'ok'],
    ['with status 304', { ...well, answer: { status: 304, tookMs: 5 } }, 'ok'],
    ['with a certificate of 54 days', { ...well, certificateEndsAtMs: nowMs + 54 * dayMs }, 'ok'],
    ['with a certificate of 13 days', { ...well, certificateEndsAtMs: nowMs + 13 * dayMs }, 'warn'],
    ['that is slow', { ...well, answer: { status: 200, tookMs: 4000 } }, 'warn'],
    ['without a repository', { ...well, answer: { status: 404, tookMs: 5 } }, 'FAIL'],
    ['that cannot be reached', away, 'FAIL'],
  ];
  for (const [what, facts, state] of cases) {
    it(`${what}: ${state}`, () => assert.equal(judgeMirrors([facts])[0]?.state, state));
  }

  it('is reported with status, duration and the days of its certificate', () => {
    const [judged] = judgeMirrors([{ ...well, certificateEndsAtMs: nowMs + 54 * dayMs - 1000 }]);
    assert.equal(judged?.text, `${url}: 200 in 38 ms, certificate 54 d left`);
  });

  it('is only a warning while another mirror answers', () => {
    assert.deepEqual(
      judgeMirrors([away, well]).map(({ state }) => state),
      ['warn', 'ok'],
    );
    assert.deepEqual(
      judgeMirrors([away, away]).map(({ state }) => state),
      ['FAIL', 'FAIL'],
    );
  });
});

describe('the clock', () => {
  const releasedAtMs = Date.UTC(2030, 0, 10);
  const facts = { nowMs: releasedAtMs, releasedAtMs };
  const cases: readonly (readonly [string, Partial<Parameters<typeof judgeClock>[0]>, string])[] = [
    ['equal to that of the server', { aheadMs: 900 }, 'ok'],
    ['without a server that sends a Date', {}, 'ok'],
    ['a little behind', { aheadMs: -4100 }, 'warn'],
    ['a little ahead', { aheadMs: 60_000 }, 'warn'],
    ['so far behind that releases are refused', { aheadMs: -3_600_000 }, 'FAIL'],
    ['behind the newest signature', { aheadMs: 0, behindSignedMs: dayMs }, 'FAIL'],
    ['before the release of the program', { aheadMs: 0, nowMs: releasedAtMs - dayMs - 1 }, 'FAIL'],
    ['on the day of the release', { aheadMs: 0, nowMs: releasedAtMs - dayMs }, 'ok'],
    ['of a host without a known release', { aheadMs: 0, nowMs: 0, releasedAtMs: undefined }, 'ok'],
  ];
  for (const [what, given, state] of cases) {
    it(`${what}: ${state}`, () => assert.equal(judgeClock({ ...facts, ...given }).state, state));
  }

  it('is reported with amount and direction of the difference, and the command that sets it', () => {
    const { text, next } = judgeClock({ ...facts, aheadMs: -4100 });
    assert.deepEqual([text, next], ['4.1 s behind the server', 'timedatectl set-ntp true']);
    assert.equal(judgeClock({ ...facts, aheadMs: 400 * dayMs }).text, '400 d ahead of the server');
    assert.match(
      judgeClock({ ...facts, nowMs: 0 }).text,
      /^it is 1970-01-01 00:00:00 UTC, before the release of this version on /,
    );
  });
});

describe('trust', () => {
  const role = (name: string, days: number) => ({
    role: name,
    version: 1,
    expiresAtMs: nowMs + days * dayMs,
  });
  const wrongKey = { code: 'SIGNATURE_WRONG_KEY', message: 'timestamp: no key', hint: 'Check `root`.' };
  const well: TrustFacts = {
    root: '/etc/writ/root.json',
    roles: [role('timestamp', 6), role('snapshot', 3), role('targets', 340), role('root', 211)],
    untrusted: false,
    nowMs,
  };
  const cases: readonly (readonly [string, Partial<TrustFacts>, string])[] = [
    ['with time left', {}, 'ok'],
    ['of an offline role that ends soon', { roles: [role('targets', 13)] }, 'warn'],
    ['of a role that has expired', { roles: [role('timestamp', -1), role('root', 211)] }, 'FAIL'],
    ['before the first contact', { roles: [] }, 'warn'],
    ['without a bootstrap root', { roles: [], rootUnread: 'ENOENT' }, 'FAIL'],
    ['in a release that no trusted key signed', { untrusted: true }, 'FAIL'],
    ['with rejected metadata', { failure: wrongKey }, 'FAIL'],
    ['with rejected metadata, before the first contact', { failure: wrongKey, roles: [] }, 'FAIL'],
  ];
  for (const [what, facts, state] of cases) {
    it(`${what}: ${state}`, () => assert.equal(judgeTrust({ ...well, ...facts }).state, state));
  }

  it('fails with message and hint of rejected metadata', () => {
    assert.deepEqual(judgeTrust({ ...well, failure: wrongKey }), {
      state: 'FAIL',
      text: 'timestamp: no key',
      next: 'Check `root`.',
      code: 'SIGNATURE_WRONG_KEY',
    });
  });

  it('names the command that renews the role that expires first', () => {
    const next = (...roles: ReturnType<typeof role>[]) => judgeTrust({ ...well, roles }).next ?? '';
    assert.match(next(role('root', 13)), /`writ root rotate`/);
    assert.match(next(role('targets', 13)), /`writ sign --role targets`/);
    assert.match(next(role('timestamp', -1)), /`writ refresh`/);
  });

  it('does not need the bootstrap root once metadata is trusted', () => {
    assert.equal(judgeTrust({ ...well, rootUnread: 'ENOENT' }).state, 'ok');
  });
});

describe('names', () => {
  const loop: NameFacts = {
    names: ['policy.example.net'],
    known: ['localhost'],
    nameservers: ['127.0.0.1'],
    resolverGroups: ['resolver'],
  };

  it('are a warning if only a worker of Writ can resolve them', () => {
    const { state, text } = judgeNames(loop);
    assert.equal(state, 'warn');
    assert.match(text, /127\.0\.0\.1 resolves policy\.example\.net.*resolver/);
    assert.equal(judgeNames({ ...loop, nameservers: ['::1', '127.0.0.1'] }).state, 'warn');
  });

  const fine: readonly (readonly [string, Partial<NameFacts>])[] = [
    ['in /etc/hosts', { known: ['policy.example.net'] }],
    ['of a repository that has an address or a directory', { names: [] }],
    ['that a second nameserver knows', { nameservers: ['127.0.0.1', '192.0.2.1'] }],
    ['asked through systemd-resolved', { nameservers: ['127.0.0.53'] }],
    ['of a host without resolvers among its workers', { resolverGroups: [] }],
    ['of a host without resolv.conf', { nameservers: [] }],
  ];
  for (const [what, facts] of fine) {
    it(`${what} are ok`, () => assert.equal(judgeNames({ ...loop, ...facts }).state, 'ok'));
  }
});
