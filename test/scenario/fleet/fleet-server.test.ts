// `writ fleet serve` as strangers, hosts and browsers see it: authorization, refusals, and its end.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { signedHost } from '../../kit/fleet/signed-host.js';

const codeOf = async (answer: Response): Promise<string> => ((await answer.json()) as { code: string }).code;
const json = { 'content-type': 'application/json' };

describe('a fleet server', () => {
  it('answers only a valid token, and only within its role', longCase, async () => {
    await using fleet = await servedFleet();
    const [view, operate, hosts] = [
      await fleet.token('--for', 'people', '--role', 'view'),
      await fleet.token('--for', 'people', '--role', 'operate'),
      await fleet.token('--for', 'hosts'),
    ];
    const { paths } = (await (await fetch(`${fleet.url}/v1/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { 'x-role': string }>>;
    };
    const asked = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { 'x-role': role }]) => ({
        path,
        method: method.toUpperCase(),
        role,
      })),
    );
    const closed = asked.filter(({ role }) => ['view', 'detail', 'operate'].includes(role));
    assert.ok(closed.length >= 12);
    for (const { path, method, role } of closed) {
      const url = fleet.url + path.replace('{serial}', '1').replace(/\{\w+\}/g, 'x');
      for (const authorization of ['', `Bearer ${hosts}`, 'Bearer writ_people_x', `Basic ${view}`])
        assert.equal((await fetch(url, { method, headers: { authorization } })).status, 401, path);
      if (role !== 'operate') continue;
      const answer = await fetch(url, { method, headers: { authorization: `Bearer ${view}` } });
      assert.deepEqual([answer.status, await codeOf(answer)], [403, 'FLEET_FORBIDDEN'], path);
    }
    assert.equal((await fleet.get(`/v1/summary?token=${operate}`, 'none')).status, 401);
    assert.equal((await fleet.get('/v1/tokens', operate)).status, 200);
  });

  it(
    'exchanges a token of people for a cookie, and refuses a change by another site with it',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const token = await fleet.token('--for', 'people', '--role', 'operate');
      const signIn = (body: string, site = 'same-origin') =>
        fetch(`${fleet.url}/sign-in`, {
          ...{ method: 'POST', redirect: 'manual' },
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': site },
          body,
        });
      assert.equal((await signIn('token=writ_people_wrong')).status, 401);
      assert.equal((await signIn(`token=${token}`, 'cross-site')).status, 403);
      const signed = await signIn(`token=${token}`);
      assert.equal(signed.status, 303);
      const cookie = signed.headers.get('set-cookie') ?? '';
      assert.match(cookie, /^writ_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
      const session = { cookie: cookie.split(';')[0] ?? '' };
      assert.equal((await fetch(`${fleet.url}/v1/summary`, { headers: session })).status, 200);
      const create = (headers: Record<string, string>) =>
        fetch(`${fleet.url}/v1/tokens`, {
          method: 'POST',
          headers: { ...json, ...session, ...headers },
          body: '{"kind":"opa"}',
        });
      for (const site of ['cross-site', 'same-site', 'none'])
        assert.equal((await create({ 'sec-fetch-site': site })).status, 403, site);
      assert.equal((await create({})).status, 403);
      assert.equal((await create({ 'sec-fetch-site': 'same-origin' })).status, 200);
      await fetch(`${fleet.url}/sign-out`, {
        ...{ method: 'POST', redirect: 'manual' },
        headers: { ...session, 'sec-fetch-site': 'same-origin' },
      });
      assert.equal((await fetch(`${fleet.url}/v1/summary`, { headers: session })).status, 401);
      const page = await fetch(`${fleet.url}/sign-in`);
      assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'/);
    },
  );

  it('answers the history of a release and of a host, in pages and as CSV', longCase, async () => {
    await using fleet = await servedFleet('--keep-history', '30d');
    const view = await fleet.token('--for', 'people', '--role', 'view');
    const host = await fleet.host('web-1');
    for (const serial of [41, 42]) await host.report({ bundles: [bundleAt(serial)] });
    const paths = ['/v1/releases/dns/stable/41/history', `/v1/hosts/${host.key.slice(0, 12)}/history`];
    const counts: number[] = [];
    for (const path of paths) {
      assert.equal((await fetch(fleet.url + path)).status, 401);
      const { intervals } = (await (await fleet.get(path, view)).json()) as { intervals: object[] };
      counts.push(intervals.length);
      const csv = await fleet.get(`${path}.csv`, view);
      assert.match(csv.headers.get('content-disposition') ?? '', /history\.csv/);
      assert.equal((await csv.text()).split('\r\n').length, intervals.length + 2);
    }
    assert.deepEqual(counts, [1, 2]);
    const first = (await (await fleet.get(`${paths[1]}?limit=1`, view)).json()) as { next: string };
    assert.equal((await fleet.get(`${paths[1]}?limit=1&after=${first.next}`, view)).status, 200);
    for (const bad of ['?limit=0', '?limit=1001', '?after=x', '?after='])
      assert.equal((await fleet.get(paths[1] + bad, view)).status, 400, bad);
    assert.equal((await fleet.get('/v1/hosts/nothing/history', view)).status, 404);
  });

  it(
    'refuses a request that is too large, unsigned or no report, and answers the next one',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const host = await fleet.host('web-1');
      assert.equal((await host.post('/v1/reports', 'x'.repeat(1_000_000))).status, 413);
      const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`n${at}`, 'x']));
      assert.equal((await host.report({ labels })).status, 400);
      assert.equal(
        (await fetch(`${fleet.url}/v1/reports`, { method: 'POST', headers: json, body: '{}' })).status,
        401,
      );
      assert.equal(await codeOf(await host.post('/v1/reports', '{')), 'FLEET_REPORT_INVALID');
      assert.equal(await codeOf(await signedHost(fleet.url, 'stranger').report()), 'FLEET_KEY_UNKNOWN');
      const xml = { headers: { 'content-type': 'text/xml' } };
      assert.equal((await host.post('/v1/reports', '<a/>', xml)).status, 415);
      assert.equal((await host.report()).status, 200);
      assert.equal((await host.post('/v1/reports', '{}', { counter: 1 })).status, 400);
      assert.equal((await host.report()).status, 200);
    },
  );

  it('enrols with a valid token, within its uses, and only names that it covers', longCase, async () => {
    await using fleet = await servedFleet();
    const once = await fleet.token(
      '--for',
      'hosts',
      '--uses',
      '1',
      '--hosts',
      'web-*',
      '--label',
      'site=fra',
    );
    assert.equal(await codeOf(await signedHost(fleet.url, 'db-1').enrol(once)), 'FLEET_HOST_NOT_COVERED');
    const host = signedHost(fleet.url, 'web-1');
    assert.equal((await host.enrol(once, { site: 'squat' })).status, 200);
    assert.equal(await codeOf(await signedHost(fleet.url, 'web-2').enrol(once)), 'FLEET_TOKEN_REFUSED');
    const view = await fleet.token('--for', 'people');
    const { hosts } = (await (await fleet.get('/v1/hosts', view)).json()) as { hosts: { labels: object }[] };
    assert.deepEqual(
      hosts.map((one) => one.labels),
      [{ site: 'fra' }],
    );
  });

  it(
    'answers 304 to the ETag of an unchanged page, and lists hosts as CSV without formulas',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const view = await fleet.token('--for', 'people');
      await (await fleet.host('=cmd|calc')).report({ host: '=cmd|calc' });
      const first = await fleet.get('/v1/hosts', view);
      const etag = first.headers.get('etag') ?? '';
      assert.equal((await fleet.get('/v1/hosts', view, { 'if-none-match': etag })).status, 304);
      const csv = await fleet.get('/v1/hosts.csv', view);
      assert.match(csv.headers.get('content-type') ?? '', /text\/csv/);
      assert.match(await csv.text(), /,"'=cmd\|calc",/);
    },
  );

  it(
    'streams changes, and stores the status of an OPA, which does not count in releases',
    longCase,
    async () => {
      await using fleet = await servedFleet();
      const view = await fleet.token('--for', 'people');
      const opa = await fleet.token('--for', 'opa');
      const host = await fleet.host('web-1');
      const stop = new AbortController();
      const events = await fetch(`${fleet.url}/v1/events`, {
        headers: { authorization: `Bearer ${view}` },
        signal: stop.signal,
      });
      const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
      const until = async (text: string): Promise<void> => {
        for (let seen = ''; !seen.includes(text); ) {
          const { value, done } = (await reader?.read()) ?? { done: true };
          assert.ok(!done, seen);
          seen += value;
        }
      };
      await until('"releases":[]');
      await host.report({ bundles: [bundleAt(42)] });
      await until('"serial":42');
      stop.abort();
      const status = {
        labels: { id: 'opa-1', version: '1.0' },
        bundles: { authz: { active_revision: 'r1' } },
        extra: 1,
      };
      const post = (token: string, path = '/v1/opa/status') =>
        fetch(fleet.url + path, {
          method: 'POST',
          headers: { ...json, authorization: `Bearer ${token}` },
          body: JSON.stringify(status),
        });
      assert.equal((await post(view)).status, 401);
      assert.equal((await post(opa, '/v1/opa/status/part')).status, 200);
      assert.equal((await post(opa)).status, 200);
      const { hosts } = (await (await fleet.get('/v1/hosts?where=kind%3Dopa', view)).json()) as {
        hosts: { key: string; kind: string }[];
      };
      assert.equal(hosts.length, 1);
      assert.match(hosts[0]?.key ?? '', /^opa\/[0-9a-f]{12}\/opa-1$/);
      const summary = (await (await fleet.get('/v1/summary', view)).json()) as { releases: object[] };
      assert.equal(summary.releases.length, 1);
      const metrics = await (await fetch(`${fleet.url}/metrics`)).text();
      assert.match(metrics, /^writ_fleet_reports_total\{result="accepted"\} 1$/m);
    },
  );

  it('refuses the status of a retired OPA until it has another id', async () => {
    await using fleet = await servedFleet();
    const opa = await fleet.token('--for', 'opa');
    const post = (id: string) =>
      fetch(`${fleet.url}/v1/opa/status`, {
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${opa}` },
        body: JSON.stringify({ labels: { id } }),
      });
    assert.equal((await post('opa-1')).status, 200);
    const { runWrit } = await import('../../kit/cli/run-writ.js');
    const view = await fleet.token('--for', 'people');
    const { hosts } = (await (await fleet.get('/v1/hosts?where=kind%3Dopa', view)).json()) as {
      hosts: { key: string }[];
    };
    const retired = await runWrit(['fleet', 'host', 'retire', hosts[0]?.key ?? '', '--store', fleet.store]);
    assert.equal(retired.exitCode, 0, retired.stderr);
    assert.match(retired.stdout, /^RETIRED {3}opa-1/);
    assert.match(retired.stdout, /with another `id`/);
    assert.doesNotMatch(retired.stdout, /enrol|key is refused/);
    const refused = await post('opa-1');
    assert.equal(refused.status, 403);
    const { code, hint } = (await refused.json()) as { code: string; hint: string };
    assert.equal(code, 'FLEET_KEY_RETIRED');
    assert.match(hint, /with another `id`/);
    assert.equal((await post('opa-2')).status, 200);
  });

  it('ends at SIGTERM with every acknowledged report in its store', longCase, async () => {
    await using fleet = await servedFleet();
    const hosts = await Promise.all([1, 2, 3, 4].map((at) => fleet.host(`web-${at}`)));
    const answers = Promise.allSettled(hosts.map((host) => host.report({ bundles: [bundleAt(7)] })));
    fleet.server.child.kill('SIGTERM');
    const { exitCode, stdout } = await fleet.server.ended;
    assert.equal(exitCode, 0);
    assert.match(stdout, /^STOPPED http/m);
    const stored = (await answers).filter(
      (one) => one.status === 'fulfilled' && one.value.status === 200,
    ).length;
    const { runWrit, jsonOf } = await import('../../kit/cli/run-writ.js');
    const status = jsonOf(await runWrit(['fleet', 'status', '--store', fleet.store, '--json']));
    const [release] = status['releases'] as { confirmed: number }[];
    assert.ok((release?.confirmed ?? 0) >= stored);
  });
});
