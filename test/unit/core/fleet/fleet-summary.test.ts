import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  FleetFacts,
  OfferGroup,
  ReleaseCount,
  RepositoryStatus,
} from '../../../../src/core/fleet/answers.js';
import { filtersToName, summarize } from '../../../../src/core/fleet/fleet-summary.js';

const hour = 3_600_000;
const hosts = { accepted: 3, waiting: 0, stopped: 0, silent: 0, unjudged: 0, blocked: 0, cloned: 0, opa: 0 };
const release = (more: Partial<ReleaseCount> = {}): ReleaseCount => ({
  ...{
    bundle: 'dns',
    channel: 'stable',
    serial: 42,
    manifest: 'aa',
    confirmed: 3,
    notified: 0,
    unconfirmed: 0,
  },
  place: 'newest',
  ...more,
});
const offer = (more: Partial<OfferGroup> = {}): OfferGroup => ({
  ...{ bundle: 'dns', channel: 'stable', serial: 43, state: 'refused', code: 'CHECK_FAILED', hosts: 1 },
  ...more,
});
const facts = (more: Partial<FleetFacts> = {}): FleetFacts => ({
  ...{ fleet: 'f', atMs: 1000 * hour, countedAtMs: 0, hosts, silence: 'judged', releases: [release()] },
  ...{ offers: [], roots: [], versions: [], keys: [] },
  ...more,
});
const codes = (more: Partial<FleetFacts>): string[] =>
  summarize(facts(more)).findings.map(({ code }) => code);
const key = (role: string, leftMs: number) => ({ role, version: 1, expiresAtMs: 1000 * hour + leftMs });

describe('the summary of a fleet', () => {
  it('names the release that all hosts confirmed', () => {
    const { level, sentence, findings } = summarize(facts());
    assert.deepEqual([level, sentence, findings], ['ok', 'All 3 hosts confirmed dns 42.', []]);
  });

  it('does not count as confirmed a host without a worker that can confirm, nor one with an older release', () => {
    const some = [release({ confirmed: 2, notified: 1 })];
    assert.equal(
      summarize(facts({ releases: some })).sentence,
      '2 of 3 confirmed dns 42, 1 has nothing to confirm it.',
    );
    const tail = [release({ confirmed: 2 }), release({ serial: 41, confirmed: 1, place: 'tail' })];
    assert.equal(summarize(facts({ releases: tail })).sentence, '2 of 3 confirmed dns 42.');
  });

  it('counts hosts as a wait does: silent hosts separately, stopped hosts not at all, hosts without a release in the total', () => {
    const releases = [release({ confirmed: 1, silent: 1, stopped: 5 })];
    const idle = [
      { bundle: 'dns', channel: 'stable', hosts: 2 },
      { bundle: 'dns', channel: 'edge', hosts: 9 },
    ];
    const { sentence } = summarize(facts({ releases, idle }));
    assert.equal(sentence, '1 of 4 confirmed dns 42, 1 had it and is silent.');
  });

  it('names the release that hosts run unconfirmed, and at most three hosts of a finding', () => {
    const releases = [release({ confirmed: 1, unconfirmed: 2 }), release({ serial: 41, unconfirmed: 4 })];
    const of = facts({ releases });
    const where = 'state=unconfirmed,bundle=dns,channel=stable,serial=42';
    assert.deepEqual(filtersToName(of), [where]);
    const texts = (names: readonly string[]) =>
      summarize(of, new Map([[where, names]])).findings.map(({ text }) => text);
    assert.deepEqual(texts(['a', 'b'.repeat(80)]), [
      '4 hosts run dns 41 unconfirmed',
      `2 hosts (a, ${'b'.repeat(60)}) run dns 42 unconfirmed`,
    ]);
    assert.deepEqual(texts(['a']), ['4 hosts run dns 41 unconfirmed', '2 hosts run dns 42 unconfirmed']);
  });

  it('is critical if a host reports critical health, with the most frequent first codes', () => {
    const { findings } = summarize(
      facts({ hosts: { ...hosts, critical: 1 }, criticalCodes: ['WORKERS_MISSING'] }),
    );
    const text = '1 host is critical (WORKERS_MISSING)';
    assert.deepEqual(findings, [{ level: 'critical', code: 'HOST_CRITICAL', text, where: 'state=critical' }]);
  });

  it('writes large numbers with separators', () => {
    const many = [release({ confirmed: 998_412, notified: 1588 })];
    const { sentence } = summarize(facts({ releases: many }));
    assert.equal(sentence, '998,412 of 1,000,000 confirmed dns 42, 1,588 have nothing to confirm it.');
  });

  it('begins with the worst finding', () => {
    const all = facts({
      hosts: { ...hosts, silent: 2, waiting: 1, blocked: 1, cloned: 1 },
      offers: [offer({ state: 'deferred', code: 'CHECK_DEFERRED' }), offer()],
      keys: [key('timestamp', -1), key('targets', 24 * hour)],
      releases: [release({ confirmed: 2, unconfirmed: 1 })],
    });
    const { level, findings, sentence } = summarize(all);
    assert.equal(level, 'critical');
    assert.deepEqual(
      findings.map(({ code }) => code),
      [
        'ROLE_EXPIRED',
        'REFUSED',
        'BLOCKED',
        'CLONED',
        'SILENT',
        'UNCONFIRMED',
        'DEFERRED',
        'ROLE_ENDS',
        'WAITING_FOR_APPROVAL',
      ],
    );
    assert.match(sentence, /^Timestamp has expired.*, and 8 more things\. 2 of 3 confirmed dns 42\.$/);
  });

  it('is critical if a host is blocked, even with the right release, and has a filter for the host', () => {
    const { level, findings } = summarize(facts({ hosts: { ...hosts, blocked: 1 } }));
    const text = '1 host is blocked after repeated failures';
    assert.deepEqual(findings, [{ level: 'critical', code: 'BLOCKED', text, where: 'state=blocked' }]);
    assert.equal(level, 'critical');
  });

  it('combines the refusals of one release, with their codes and a filter for the hosts', () => {
    const offers = [offer({ hosts: 2 }), offer({ code: 'WORKER_REFUSED' }), offer({ state: 'rolled-back' })];
    const { findings } = summarize(facts({ offers }));
    assert.deepEqual(findings[0], {
      level: 'critical',
      code: 'REFUSED',
      text: '3 hosts refused dns 43 (CHECK_FAILED, WORKER_REFUSED)',
      where: 'state=refused,bundle=dns,channel=stable,serial=43',
    });
    assert.equal(findings[1]?.code, 'ROLLED_BACK');
  });

  it('names silent hosts, also while it is too early for a host with a longer interval', () => {
    assert.deepEqual(codes({ hosts: { ...hosts, silent: 3 }, silence: 'too-early' }), ['SILENT']);
    assert.deepEqual(codes({ silence: 'too-early' }), []);
  });

  it('begins with the release that most hosts refused, whatever names one host invents', () => {
    const offers = [offer({ bundle: '0', hosts: 1 }), offer({ hosts: 2 })];
    assert.match(summarize(facts({ offers })).sentence, /^2 hosts refused dns 43 /);
  });

  it('warns of a role before it expires, two weeks ahead for an offline role', () => {
    assert.deepEqual(codes({ keys: [key('targets', 14 * 24 * hour)] }), []);
    assert.deepEqual(codes({ keys: [key('targets', 14 * 24 * hour - 1)] }), ['ROLE_ENDS']);
    assert.deepEqual(codes({ keys: [key('timestamp', 24 * hour)] }), []);
    assert.deepEqual(codes({ keys: [key('timestamp', 24 * hour - 1)] }), ['ROLE_ENDS']);
    assert.deepEqual(codes({ keys: [key('timestamp', 0)] }), ['ROLE_EXPIRED']);
  });

  it('is a warning while no host is enrolled', () => {
    const empty = summarize(facts({ hosts: { ...hosts, accepted: 0 }, releases: [] }));
    assert.deepEqual([empty.level, empty.sentence], ['warning', 'No host is enrolled.']);
    assert.equal(summarize(facts({ releases: [] })).sentence, '3 hosts enrolled, and no release in use yet.');
  });
});

describe('the summary of a fleet with repositories', () => {
  const atMs = 1000 * hour;
  const signed = (serial: number, seenAtMs = atMs - hour) => ({
    ...{ bundle: 'dns', channel: 'stable', serial, revision: '', seenAtMs },
  });
  const repository = (more: Partial<RepositoryStatus> = {}): RepositoryStatus => ({
    ...{ url: 'https://a/', checkedAtMs: atMs, roles: [], releases: [signed(42)] },
    ...more,
  });
  const of = (...repositories: readonly RepositoryStatus[]) => ({ repositories });

  it('is compared with the head of each channel, also if no host knows it', () => {
    const current = facts({ releases: [release({ standing: 'current' })], ...of(repository()) });
    assert.equal(
      summarize(current).sentence,
      'All 3 hosts confirmed dns 42, the release that should be in use.',
    );
    const releases = [release({ serial: 41, standing: 'behind' })];
    const { sentence, level, findings } = summarize(facts({ releases, ...of(repository()) }));
    assert.equal(
      sentence,
      '3 hosts run dns 41 where 42 should be in use. 0 of 3 confirmed dns 42, the release that should be in use.',
    );
    assert.equal(level, 'warning');
    assert.equal(findings[0]?.where, 'bundle=dns,channel=stable,serial=41');
    const unknown = facts({ releases: [release({ standing: 'unknown' })], ...of(repository()) });
    assert.equal(summarize(unknown).sentence, 'All 3 hosts confirmed dns 42.');
  });

  it('is behind half an hour after the release was first read, and at once with a withdrawn one', () => {
    const with41 = (standing: 'behind' | 'withdrawn', seenAgoMs: number) =>
      codes({
        releases: [release({ serial: 41, standing })],
        ...of(repository({ releases: [signed(42, atMs - seenAgoMs)] })),
      });
    assert.deepEqual(with41('behind', hour / 2 - 1), []);
    assert.deepEqual(with41('behind', hour / 2), ['BEHIND']);
    assert.deepEqual(with41('withdrawn', 0), ['WITHDRAWN_IN_USE']);
  });

  it('has the expiries of the signed roles of each repository', () => {
    const near = [key('timestamp', hour)];
    assert.deepEqual(codes({ keys: near, ...of(repository({ roles: [key('root', 900 * hour)] })) }), []);
    assert.deepEqual(codes({ keys: near, ...of(repository({ failing: { code: 'X', sinceMs: atMs } })) }), [
      'ROLE_ENDS',
    ]);
    const two = of(repository({ roles: near }), repository({ url: 'https://b/', roles: [key('root', -1)] }));
    assert.deepEqual(
      summarize(facts(two)).findings.map(({ text }) => text),
      ['root of https://b/ has expired: hosts accept nothing new', 'timestamp of https://a/ expires in 1 h'],
    );
  });

  it('warns of an unread repository after five minutes, and at once if it was never read', () => {
    const failing = (agoMs: number) => ({ failing: { code: 'SERVER_UNREACHABLE', sinceMs: atMs - agoMs } });
    assert.deepEqual(codes(of(repository(failing(299_999)))), []);
    assert.deepEqual(codes(of(repository(failing(300_000)))), ['REPOSITORY_UNREAD']);
    const { checkedAtMs: _, ...never } = repository(failing(0));
    assert.deepEqual(codes(of(never)), ['REPOSITORY_UNREAD']);
  });
});
