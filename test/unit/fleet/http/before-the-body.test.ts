// Responses of a fleet server to headers alone: each request here announces a body, and sends none or a part of it.
import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { type FleetBench, fleetBench, reportOf } from '../../../kit/fleet/fleet-bench.js';
import { type ListeningApp, listeningApp } from '../../../kit/fleet/listening-app.js';
import { type SignedHost, signedHost } from '../../../kit/fleet/signed-host.js';
import { type OpenRequest, openRequest } from '../../../kit/net/open-request.js';

describe('a fleet server reads no body of a sender that its headers do not prove', () => {
  const directory = tempDir(memory());
  let bench: FleetBench;
  let app: ListeningApp;
  before(async () => {
    bench = await fleetBench(directory.join('store'), systemClock);
    // The clock does not move, so that no rate recovers on a slow machine.
    const clock = { ...systemClock, monotonicMs: () => 0 };
    app = await listeningApp(bench.store, { clock, shared: new BlockList() });
  });
  after(async () => {
    await app[Symbol.asyncDispose]();
    await bench[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const answerTo = async (path: string, headers: Record<string, string>) => {
    await using request = openRequest(app.url, path, headers);
    return await request.answer;
  };
  const enrolled = async (name: string): Promise<SignedHost> => {
    const host = signedHost(app.url, name);
    assert.equal((await host.enrol((await bench.token()).token)).status, 200);
    return host;
  };
  const large = { 'content-length': '250000' };

  it(
    'answers a report of an unknown key, without a signature, or of another fleet at once',
    longCase,
    async () => {
      const stranger = signedHost(app.url, 'stranger');
      assert.deepEqual(await answerTo('/v1/reports', large), [401, 'FLEET_SIGNATURE_REFUSED']);
      const signed = { ...(await stranger.headersOf('{}')), ...large };
      assert.deepEqual(await answerTo('/v1/reports', signed), [401, 'FLEET_KEY_UNKNOWN']);
      const host = await enrolled('other-fleet');
      const elsewhere = { ...(await host.headersOf('{}', { fleet: 'another' })), ...large };
      assert.deepEqual(await answerTo('/v1/reports', elsewhere), [401, 'FLEET_SIGNATURE_REFUSED']);
    },
  );

  it('answers a status of an OPA without a token, or with one of another kind, at once', async () => {
    assert.deepEqual(await answerTo('/v1/opa/status', large), [401, 'FLEET_TOKEN_REFUSED']);
    const { token } = await bench.token();
    assert.deepEqual(await answerTo('/v1/opa/status', { ...large, ...bearer(token) }), [
      401,
      'FLEET_TOKEN_REFUSED',
    ]);
  });

  it('answers an enrolment without a good token in its headers that is large or of unknown length at once', async () => {
    const used = await bench.token({ uses: 1 });
    assert.equal((await signedHost(app.url, 'last-use').enrol(used.token)).status, 200);
    for (const headers of [large, { 'transfer-encoding': 'chunked' }, { ...large, ...bearer(used.token) }])
      assert.deepEqual(await answerTo('/v1/enrol', headers), [413, 'USAGE']);
    const unknown = { ...large, ...bearer('writ_host_unknown') };
    assert.deepEqual(await answerTo('/v1/enrol', unknown), [401, 'FLEET_TOKEN_REFUSED']);
  });

  it('answers a body where nothing reads one, and a form that is large, at once', async () => {
    assert.deepEqual(await answerTo('/nowhere', large), [413, 'USAGE']);
    const form = { ...large, 'content-type': 'application/x-www-form-urlencoded' };
    assert.deepEqual(await answerTo('/sign-in', form), [413, '']);
  });

  it('refuses a report with a body that its headers were not signed for', async () => {
    const host = await enrolled('bent');
    const body = JSON.stringify(reportOf('bent'));
    const bent = body.replace('fresh', 'FRESH');
    await using request = openRequest(app.url, '/v1/reports', {
      ...(await host.headersOf(body)),
      'content-length': String(body.length),
    });
    request.send(bent);
    assert.deepEqual(await request.answer, [401, 'FLEET_SIGNATURE_REFUSED']);
  });

  it('takes sixty reports of a key at once, and repeated heads use up none of them', async () => {
    const host = await enrolled('often');
    const states: [number, string][] = [];
    const report = async (more: Parameters<SignedHost['post']>[2] = {}) => {
      const body = JSON.stringify(reportOf('often', { generation: states.length }));
      const answer = await host.post('/v1/reports', body, more);
      const { code = '' } = (await answer.json()) as { readonly code?: string };
      states.push([answer.status, code]);
    };
    await report();
    for (let at = 0; at < 12; at++) await report({ counter: 1 });
    for (let at = 0; at < 60; at++) await report();
    const often = [429, 'FLEET_REPORTS_OFTEN'];
    assert.deepEqual(states[0], [200, '']);
    assert.deepEqual(states.slice(1, 13), [...Array(10).fill([409, '']), often, often]);
    assert.deepEqual(states.slice(13), [...Array(59).fill([200, '']), often]);
  });

  /** Sends requests without their bodies. Those with reserved memory wait; the others are answered. */
  const answersOf = async (requests: readonly OpenRequest[], count: number) => {
    const answers: (readonly [number, string])[] = [];
    for (const { answer } of requests)
      answer.then(
        (one) => answers.push(one),
        () => undefined,
      );
    await until(() => answers.length === count);
    return answers;
  };
  const overloaded = [503, 'FLEET_OVERLOADED'];

  it('reserves memory for four large bodies of a key with an accepted report, and for other hosts meanwhile', async () => {
    const [host, other] = [await enrolled('four'), await enrolled('five')];
    assert.equal((await host.report()).status, 200);
    const heads = await Promise.all(Array.from({ length: 8 }, () => host.headersOf('{}')));
    const requests = heads.map((head) => openRequest(app.url, '/v1/reports', { ...head, ...large }));
    assert.deepEqual(await answersOf(requests, 4), Array(4).fill(overloaded));
    assert.equal((await other.report()).status, 200);
    for (const request of requests) await request[Symbol.asyncDispose]();
    await until(async () => (await host.report()).status === 200);
  });

  it('counts a key that reported nothing yet for its address, which has an eighth of the memory', async () => {
    const [host, other] = [await enrolled('first-report'), await enrolled('same-address')];
    assert.equal((await other.report()).status, 200);
    const heads = await Promise.all(Array.from({ length: 36 }, () => host.headersOf('{}')));
    const requests = heads.map((head) => openRequest(app.url, '/v1/reports', { ...head, ...large }));
    assert.deepEqual(await answersOf(requests, 3), Array(3).fill(overloaded));
    assert.equal((await host.report()).status, 200, 'a small one has memory');
    assert.equal((await other.report()).status, 200);
    for (const request of requests) await request[Symbol.asyncDispose]();
  });

  it('keeps memory for four unfinished enrolments of one address, and for hosts with a token in their headers', async () => {
    const requests = Array.from({ length: 8 }, () =>
      openRequest(app.url, '/v1/enrol', { 'content-length': '100' }),
    );
    assert.deepEqual(await answersOf(requests, 4), Array(4).fill(overloaded));
    const { token } = await bench.token();
    const host = signedHost(app.url, 'beside');
    assert.equal((await host.enrol(token)).status, 503);
    assert.equal((await host.enrol(token, {}, { authorization: `Bearer ${token}` })).status, 200);
    for (const request of requests) await request[Symbol.asyncDispose]();
    await until(async () => (await signedHost(app.url, 'after').enrol(token)).status === 200);
  });

  it('takes as many enrolments of an address that many hosts share as its memory has', async () => {
    await using behind = await listeningApp(bench.store);
    const requests = Array.from({ length: 60 }, () =>
      openRequest(behind.url, '/v1/enrol', { 'content-length': '100' }),
    );
    const { token } = await bench.token();
    assert.equal((await signedHost(behind.url, 'shared').enrol(token)).status, 200);
    for (const request of requests) await request[Symbol.asyncDispose]();
  });

  it('waits ten seconds for an enrolment without a token in its headers, and for no other one', async () => {
    const time = fakeClock();
    await using timed = await listeningApp(bench.store, { clock: { ...systemClock, sleep: time.sleep } });
    const { token } = await bench.token();
    const announced = { 'content-length': '100' };
    await using slow = openRequest(timed.url, '/v1/enrol', announced);
    await using known = openRequest(timed.url, '/v1/enrol', { ...announced, ...bearer(token) });
    await until(() => time.sleeping() === 1);
    await time.advance(10_000);
    await assert.rejects(slow.answer, /closed without an answer/);
    known.send('x'.repeat(100));
    assert.deepEqual(await known.answer, [400, 'FLEET_REPORT_INVALID']);
  });

  it('counts the values of a body before it parses them', async () => {
    const host = await enrolled('values');
    const report = JSON.stringify(reportOf('values')).slice(0, -1);
    const many = `${report},"x":[${'{},'.repeat(80_000)}{}]}`;
    const answer = await host.post('/v1/reports', many);
    assert.equal(answer.status, 400);
    assert.match(((await answer.json()) as { message: string }).message, /too many values/);
    const { token } = await bench.token({ kind: 'opa' });
    const status = await fetch(new URL('/v1/opa/status', app.url), {
      method: 'POST',
      headers: { ...bearer(token), 'content-type': 'application/json' },
      body: `{"labels": {"id": "a"}, "x": [${'1,'.repeat(70_000)}1]}`,
    });
    assert.equal(status.status, 400);
  });
});
