// When the header of a proxy authenticates a person: from which addresses, in which header, and never if a client may have set it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCaller } from '../../../../src/fleet/http/callers.js';
import {
  type IdentityRule,
  parseIdentityHeader,
  parseIdentityNetworks,
  readIdentity,
} from '../../../../src/fleet/http/identity-rules.js';
import { createRefusalBound } from '../../../../src/fleet/http/refusal-bound.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';

function ruleOf(...networks: string[]): IdentityRule {
  const from = parseIdentityNetworks(networks);
  assert.ok(from);
  return { header: 'x-remote-user', from, role: 'detail' };
}

function asking(name: string | string[], ip = '10.0.0.2') {
  return { headers: { 'x-remote-user': name } as Record<string, string>, ip };
}

describe('the name that a proxy gives', () => {
  it('counts from the configured addresses in each of their spellings', () => {
    const rule = ruleOf('10.0.0.0/24', '192.0.2.7', '2001:db8::/64', 'fe80::1');
    const counts = (ip: string) => readIdentity(rule, asking('alice', ip), false) !== undefined;
    for (const ip of ['10.0.0.2', '::ffff:10.0.0.2', '192.0.2.7', '2001:db8::9', 'fe80::1%eth0'])
      assert.ok(counts(ip), ip);
    for (const ip of ['10.0.1.2', '192.0.2.8', '::ffff:10.0.1.2', '2001:db8:0:1::9', '::1', '127.0.0.1', ''])
      assert.ok(!counts(ip), ip);
    assert.deepEqual(readIdentity(rule, asking('alice'), false), { person: 'alice' });
    assert.equal(readIdentity(rule, { headers: {}, ip: '10.0.0.2' }, true), undefined);
  });

  it('is refused where it occurs twice, beside a credential, and where it is not a name', () => {
    const rule = ruleOf('10.0.0.2');
    const isRefused = (name: string | string[], isBeside = false) =>
      'refused' in (readIdentity(rule, asking(name), isBeside) ?? {});
    for (const name of ['alice, bob', 'alice,alice', ['alice', 'bob'], '', ' ', '(null)', 'a b', 'a;b', 'é'])
      assert.ok(isRefused(name), String(name));
    for (const address of ['192.0.2.7', '2001:db8::7', '::1']) assert.ok(isRefused(address), address);
    assert.ok(isRefused('a'.repeat(129)));
    assert.ok(isRefused('alice', true));
    for (const name of ['a'.repeat(128), 'alice@example.net', 'DOMAIN\\alice', 'accounts.example.net:a'])
      assert.ok(!isRefused(name), name);
  });

  it('stands in a header of its own', () => {
    assert.equal(parseIdentityHeader('X-Remote-User'), 'x-remote-user');
    // Node keeps only the first of two such headers, or they have another meaning.
    for (const name of ['From', 'User-Agent', 'Authorization', 'Cookie', 'Sec-Fetch-Site', 'Content-Digest'])
      assert.equal(parseIdentityHeader(name), undefined, name);
    for (const name of ['', 'x user', 'x_user', 'x:', `x${'-'.repeat(64)}`])
      assert.equal(parseIdentityHeader(name), undefined, name);
  });

  it('is never in a header that browsers or proxies send with every request', () => {
    const common =
      'Accept Accept-Language Via Forwarded X-Forwarded-For X-Forwarded-Host X-Real-IP True-Client-IP X-Client-IP ' +
      'CF-Connecting-IP CF-Ray CF-IPCountry X-Request-ID X-Correlation-ID X-Amzn-Trace-Id X-Envoy-External-Address ' +
      'X-Original-URL X-Forwarded-Proto X-Forwarded-Prefix Signature Signature-Input Traceparent Priority DNT ' +
      'Cache-Control If-Range Upgrade-Insecure-Requests X-Requested-With Front-End-Https-Port X-Scheme ' +
      'Writ-Fleet Writ-Counter X-Content-Type-Options Content-Security-Policy';
    for (const name of common.split(' ')) assert.equal(parseIdentityHeader(name), undefined, name);
  });

  it('may be in each header in which a usual proxy names a person', () => {
    const usual =
      'Remote-User X-Remote-User X-Forwarded-User X-Forwarded-Email X-Forwarded-Preferred-Username X-Auth-Request-User ' +
      'X-Auth-Request-Email X-WEBAUTH-USER X-authentik-username X-Vouch-User X-Token-Subject X-User-Id X-SSL-Client-S-DN ' +
      'Tailscale-User-Login X-Goog-Authenticated-User-Email Cf-Access-Authenticated-User-Email X-MS-CLIENT-PRINCIPAL-NAME';
    for (const name of usual.split(' ')) assert.equal(parseIdentityHeader(name), name.toLowerCase(), name);
  });

  it('counts from networks of a bounded width and number', () => {
    for (const network of ['0.0.0.0/0', '10.0.0.0/7', '::/0', '2000::/15', '10.0.0.0/33', '::ffff:10.0.0.2'])
      assert.equal(parseIdentityNetworks([network]), undefined, network);
    for (const network of ['', 'proxy', '10.0.0', '10.0.0.2/', '10.0.0.2/a', 'fe80::1%eth0'])
      assert.equal(parseIdentityNetworks([network]), undefined, network);
    assert.ok(parseIdentityNetworks(Array<string>(32).fill('10.0.0.0/8')));
    assert.equal(parseIdentityNetworks(Array<string>(33).fill('10.0.0.0/8')), undefined);
    assert.equal(parseIdentityNetworks([]), undefined);
  });
});

describe('a person behind a proxy', () => {
  it('is not refused for refusals of others, and a refused header counts as one', async () => {
    using directory = tempDir(memory());
    const clock = fakeClock();
    await using bench = await fleetBench(directory.join('store'), clock);
    const parts = {
      db: bench.store.db,
      bound: createRefusalBound(clock),
      nowMs: clock.nowMs(),
      secure: true,
    };
    const rule = ruleOf('10.0.0.2');
    const ask = (name: string, more: Record<string, string> = {}) => {
      const { headers, ip } = asking(name);
      return findCaller({ ...parts, identity: rule }, { headers: { ...headers, ...more }, ip });
    };
    for (const more of [
      { authorization: 'Bearer writ_people_x' },
      { authorization: 'bearer' },
      { cookie: 'other=1; writ_session=short' },
      { cookie: 'other=1; __Host-writ_session=short' },
    ])
      await rejectsCode('FLEET_IDENTITY_REFUSED', ask('alice', more as Record<string, string>));
    for (let at = 0; at < 96; at++) await rejectsCode('FLEET_IDENTITY_REFUSED', ask('a, b'));
    await rejectsCode('FLEET_REFUSED_OFTEN', ask('a, b'));
    const known = { who: 'person alice', role: 'detail', by: 'proxy' };
    assert.deepEqual(await ask('alice'), known);
    // A password and a cookie of the proxy have no effect here.
    assert.deepEqual(await ask('alice', { authorization: 'Basic eDp5', cookie: '_proxy=1' }), known);
    await rejectsCode('FLEET_TOKEN_REFUSED', findCaller(parts, { ...asking('alice'), ip: '10.0.0.3' }));
  });
});
