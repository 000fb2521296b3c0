// A fleet server as a process under attacks from the network: stolen keys, squatted names, false serials, wrong clocks, replays
// and floods. An attacker can falsify only its own state, and reports of other hosts are accepted.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { skippedPauses } from '../../kit/clock/skipped-pauses.js';
import { bundleAt, reportOf } from '../../kit/fleet/fleet-bench.js';
import { type ServedFleet, servedFleet } from '../../kit/fleet/served-fleet.js';
import { signedHost } from '../../kit/fleet/signed-host.js';

const codeOf = async (answer: Response): Promise<string> => ((await answer.json()) as { code: string }).code;
const wait = (...args: readonly string[]) => runWrit(['fleet', 'wait', 'dns', '42', ...args, '--json']);
const hostsOf = async (
  fleet: ServedFleet,
): Promise<{ host: string; key: string; state: string; skewMs: number }[]> =>
  jsonOf(await runWrit(['fleet', 'hosts', '--store', fleet.store, '--json']))['hosts'] as never;

describe('an attacker of a fleet server', longCase, () => {
  it('does not get a name by reporting it: the host waits, and the operator gets the keys of that name', async () => {
    await using fleet = await servedFleet();
    const [honest, thief] = [await fleet.host('web-1'), await fleet.host('web-2')];
    await honest.report({ bundles: [bundleAt(41)] });
    await thief.report({ bundles: [bundleAt(41)] });
    const squat = await thief.report({ host: 'web-1', bundles: [bundleAt(42)] });
    assert.deepEqual([squat.status, await codeOf(squat)], [403, 'FLEET_KEY_WAITING']);
    const states = (await hostsOf(fleet)).map(({ key, host, state }) => [key, host, state]);
    assert.deepEqual(
      states.sort(),
      [
        [honest.key, 'web-1', 'accepted'],
        [thief.key, 'web-1', 'waiting'],
      ].sort(),
    );
    const log = await runWrit(['fleet', 'log', '--store', fleet.store]);
    assert.match(log.stdout, /server +host\.rename +[0-9a-f]{12} +web-2 -> web-1/);
    for (const connection of [['--store', fleet.store], await fleet.roleFlags('operate')]) {
      const several = await runWrit(['fleet', 'host', 'approve', 'web-1', ...connection, '--json']);
      assert.deepEqual([several.exitCode, jsonOf(several)['code']], [2, 'USAGE']);
      const hint = String(jsonOf(several)['hint']);
      assert.ok(hint.includes(`${honest.key} (accepted)`), hint);
      assert.ok(hint.includes(`${thief.key} (waiting)`), hint);
    }
    const approved = await runWrit([
      'fleet',
      'host',
      'approve',
      thief.key.slice(0, 12),
      '--store',
      fleet.store,
    ]);
    assert.equal(approved.exitCode, 0);
    assert.equal((await thief.report({ host: 'web-1', bundles: [bundleAt(42)] })).status, 200);
  });

  it('ends no wait by a false serial, unless the share needs its host', async () => {
    await using fleet = await servedFleet();
    const store = ['--store', fleet.store];
    const honest = [await fleet.host('web-1'), await fleet.host('web-2'), await fleet.host('web-3')];
    for (const host of honest) await host.report({ bundles: [bundleAt(42)] });
    const liar = await fleet.host('web-4');
    const other = { serial: 42, manifest: 'e'.repeat(64), sinceMs: 1, state: 'confirmed' } as const;
    for (const [bundle, exitCode] of [
      [bundleAt(43), 4],
      [bundleAt(42, { active: other }), 2],
    ] as const) {
      await liar.report({ bundles: [bundle] });
      assert.equal((await wait(...store, '--share', '75%')).exitCode, 0);
      assert.equal((await wait(...store)).exitCode, exitCode);
    }
  });

  it('learns from a thousand guesses as much as from one, and locks out no valid client', async () => {
    await using fleet = await servedFleet();
    const host = await fleet.host('web-1');
    await host.report();
    const view = await fleet.token('--for', 'people');
    assert.equal((await fleet.get('/v1/summary', view)).status, 200);
    const statuses: number[] = [];
    for (let at = 0; at < 300; at += 10) {
      const some = Array.from({ length: 10 }, (_, more) =>
        fleet.get('/v1/summary', `writ_people_${at + more}`),
      );
      for (const { status } of await Promise.all(some)) statuses.push(status);
    }
    assert.deepEqual([...new Set(statuses)].sort(), [401, 429]);
    const refused = await Promise.all(
      Array.from({ length: 50 }, (_, at) => fleet.get('/v1/summary', `writ_people_other_${at}`)),
    );
    const often = refused.find(({ status }) => status === 429) ?? assert.fail();
    assert.equal(often.headers.get('retry-after'), '5');
    assert.equal(await codeOf(often), 'FLEET_REFUSED_OFTEN');
    assert.equal((await fleet.get('/v1/summary', view)).status, 200);
    assert.equal((await host.report({ health: 'warning' })).status, 200);
    const strangers = await Promise.all(
      Array.from({ length: 150 }, (_, at) => signedHost(fleet.url, `stranger-${at}`).report()),
    );
    assert.deepEqual([...new Set(strangers.map(({ status }) => status))].sort(), [401, 429]);
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
    const signIns = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        fetch(`${fleet.url}/sign-in`, { method: 'POST', headers: form, body: `token=writ_people_${at}` }),
      ),
    );
    assert.ok(signIns.some(({ status, headers }) => status === 429 && headers.get('retry-after') === '5'));
  });

  it('sends a megabyte, ten thousand labels, a wrong clock and an old report, and the report of another host is stored', async () => {
    await using fleet = await servedFleet();
    const [attacker, honest] = [await fleet.host('web-1'), await fleet.host('web-2')];
    await attacker.report();
    const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`n${at}`, 'x']));
    const large = 'x'.repeat(1_000_000);
    const sent = Array.from({ length: 20 }, (_, at) => [
      attacker.post('/v1/reports', large),
      attacker.report({ labels }),
      attacker.post('/v1/reports', '{}', { counter: 1 }),
      honest.report({ generation: at, bundles: [bundleAt(42)] }),
    ]).flat();
    const other = await fleet.host('web-3');
    const created = new Date(Date.now() - 400 * 86_400_000);
    const wrongClock = JSON.stringify(reportOf('web-3', { bundles: [bundleAt(42)] }));
    assert.equal(
      (await other.post('/v1/reports', wrongClock, { created })).status,
      200,
      'a wrong clock is no reason to refuse a report',
    );
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    // 429 and 503: its rate and its memory are used up, those of the other host are not.
    const expected = [
      [413, 429],
      [400, 429, 503],
      [400, 429, 503],
      [200, 409],
    ];
    for (const [at, status] of statuses.entries())
      assert.ok(expected[at % 4]?.includes(status), `${at}: ${status}`);
    assert.equal((await honest.report({ bundles: [bundleAt(42)] })).status, 200);
    assert.equal(
      (await wait('--store', fleet.store, '--within', '10ms')).exitCode,
      1,
      'the attacker confirmed nothing',
    );
  });
});

describe('a client with a token', longCase, () => {
  it('receives nothing more on an open stream once the token is revoked', async () => {
    await using fleet = await servedFleet();
    const host = await fleet.host('web-1');
    const operate = await fleet.token('--for', 'people', '--role', 'operate');
    const revoked = await fleet.token('--for', 'people', '--role', 'detail');
    const stream = await fleet.get('/v1/events', revoked);
    const { tokens } = (await (await fleet.get('/v1/tokens', operate)).json()) as {
      tokens: readonly { id: string; role?: string }[];
    };
    const id = tokens.find(({ role }) => role === 'detail')?.id ?? assert.fail();
    const authorization = `Bearer ${operate}`;
    const gone = await fetch(`${fleet.url}/v1/tokens/${id}`, {
      method: 'DELETE',
      headers: { authorization },
    });
    assert.equal(gone.status, 200);
    await host.report({ bundles: [bundleAt(42)] });
    const text = await stream.text();
    assert.ok(!text.includes('"serial":42'), text);
  });

  it('has at most the newest hundred sessions of its token', async () => {
    await using fleet = await servedFleet();
    const [view, other] = [await fleet.token('--for', 'people'), await fleet.token('--for', 'people')];
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
    const signIn = async (token: string): Promise<string> => {
      const sent = { method: 'POST', headers: form, body: `token=${token}`, redirect: 'manual' } as const;
      const answer = await fetch(`${fleet.url}/sign-in`, sent);
      return answer.headers.get('set-cookie')?.split(';')[0] ?? assert.fail(`${answer.status}`);
    };
    const statusOf = async (cookie: string): Promise<number> =>
      (await fetch(`${fleet.url}/v1/summary`, { headers: { cookie } })).status;
    const otherSession = await signIn(other);
    const cookies: string[] = [];
    for (let at = 0; at < 105; at++) cookies.push(await signIn(view));
    assert.deepEqual(
      await Promise.all([cookies[0] ?? '', cookies.at(-1) ?? '', otherSession].map(statusOf)),
      [...[401, 200, 200]],
    );
  });

  it('gets an immediate answer to a HEAD of the stream, and USAGE for a malformed address', async () => {
    await using fleet = await servedFleet();
    const view = await fleet.token('--for', 'people');
    const head = { method: 'HEAD', headers: { authorization: `Bearer ${view}` } };
    assert.equal((await fetch(`${fleet.url}/v1/events`, head)).status, 200);
    const unread = await fleet.get('/v1/hosts/%', view);
    assert.deepEqual([unread.status, unread.headers.get('x-content-type-options')], [400, 'nosniff']);
    assert.equal(await codeOf(unread), 'USAGE');
  });
});

describe('a wait with a server that fails', () => {
  it('reports it at once, and at its end the last known numbers with their time', async () => {
    await using fleet = await servedFleet();
    const host = await fleet.host('web-1');
    await host.report({ bundles: [bundleAt(41)] });
    const connection = await fleet.roleFlags('view');
    const args = ['fleet', 'wait', 'dns', '42', '--within', '15s', '--verbose', ...connection];
    let begun = 0;
    const waitFor = (...more: readonly string[]) => {
      let isFirst = true;
      const clock = skippedPauses(2000, async (time) => {
        if (isFirst) begun += 1;
        isFirst = false;
        await until(() => begun === 2);
        fleet.server.child.kill('SIGKILL');
        await fleet.server.ended;
        await time.advance(2000);
      });
      return runWrit([...args, ...more], { clock });
    };
    const [text, ended] = await Promise.all([waitFor(), waitFor('--json')]);
    const { exitCode, stdout, stderr } = text;
    assert.equal(exitCode, 1);
    assert.match(stderr, /0 of 1 done/);
    assert.match(
      stderr,
      /warning: no answer from the fleet server since .+ \(FLEET_UNANSWERED\); then: 0 of 1 done/,
    );
    assert.equal(stderr.split('no answer from the fleet server').length, 2, 'once');
    assert.match(stdout, /^TIME OVER dns 42: 0 of 1 done/);
    assert.match(
      stdout,
      /^ {2}These numbers are old: no answer from the fleet server since .+ \(FLEET_UNANSWERED\)\.$/m,
    );
    const { outcome, unanswered, atMs, done } = jsonOf(ended);
    assert.deepEqual([ended.exitCode, outcome, unanswered, done], [1, 'time-over', 'FLEET_UNANSWERED', 0]);
    assert.equal(typeof atMs, 'number');
  });
});
