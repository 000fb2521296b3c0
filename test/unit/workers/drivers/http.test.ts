import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Answer, Driver, Liveness } from '../../../../src/workers/contract/driver.js';
import { http } from '../../../../src/workers/drivers/http.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { rawServer } from '../../../kit/net/raw-server.js';
import { freePort } from '../../../kit/programs/free-port.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import {
  type FakeHttpAnswer,
  type FakeHttpRequest,
  startFakeHttpWorker,
} from '../../../kit/workers/fake-http-worker.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';

const target = { generation: 7, path: '/policy/$&/generations/7' };

function driverOf(place: unknown, options: object = {}): Driver {
  return http.create({ http: place, ...options }, driverContext());
}

/** Checks the liveness, with a clock that does not wait for a socket to come back. */
async function livenessOf(place: unknown, worker: string): Promise<Liveness | undefined> {
  const context = driverContext({ clock: fakeClock({ mode: 'skip' }) });
  return http.create({ http: place }, context).liveness?.(worker);
}

async function ask(
  said: FakeHttpAnswer,
  options: object = {},
  timeoutMs = 60_000,
): Promise<{ readonly answer: Answer; readonly requests: readonly FakeHttpRequest[] }> {
  const worker = await startFakeHttpWorker(() => said);
  try {
    const driver = driverOf(`${worker.url}/-/reload`, options);
    const [member = ''] = await driver.members();
    return { answer: await driver.reset(member, { target, timeoutMs }), requests: worker.requests };
  } finally {
    await worker.close();
  }
}

describe('the http driver', () => {
  it('notifies by one POST, and confirms only if the configuration defines the answer', async () => {
    const { answer, requests } = await ask({ body: 'reloaded\n' });
    assert.deepEqual(answer, { kind: 'notified', text: 'status 200: reloaded' });
    assert.deepEqual(
      requests.map((one) => one.line),
      ['POST /-/reload'],
    );
    assert.deepEqual((await ask({}, { confirms: true })).answer, { kind: 'confirmed', text: 'status 200' });
    assert.equal(driverOf('http://a/').verdictClass, 'early');
    assert.equal(driverOf('http://a/', { confirms: true }).verdictClass, 'true');
  });

  it('sends the configured request, with the generation in the body and never in a header', async () => {
    const { requests } = await ask(
      {},
      {
        method: 'PUT',
        headers: { 'content-type': 'application/json', 'x-a': '{current}' },
        body: '{"directory":"{current}","number":{generation}}',
      },
    );
    const [request] = requests;
    assert.equal(request?.line, 'PUT /-/reload');
    assert.equal(request?.body, '{"directory":"/policy/$&/generations/7","number":7}');
    assert.equal(request?.headers['content-type'], 'application/json');
    assert.equal(request?.headers['x-a'], '{current}');
    assert.equal(request?.headers['accept-encoding'], 'identity');
  });

  it('expects a status and a body, exactly or by a pattern', longCase, async () => {
    assert.equal((await ask({ status: 204 }, { status: 204 })).answer.kind, 'notified');
    assert.equal((await ask({ status: 200 }, { status: 204 })).answer.kind, 'refused');
    assert.equal((await ask({ body: 'ok\n' }, { expect: 'ok' })).answer.kind, 'notified');
    assert.equal((await ask({ body: 'not ok' }, { expect: 'ok' })).answer.kind, 'refused');
    assert.equal(
      (await ask({ body: '{"version":7}' }, { expectMatch: '"version":7\\b' })).answer.kind,
      'notified',
    );
    assert.equal(
      (await ask({ body: '{"version":6}' }, { expectMatch: '"version":7\\b' })).answer.kind,
      'refused',
    );
    const names = { expect: 'generation {generation} of {current}' };
    const body = `generation 7 of ${target.path}`;
    assert.equal((await ask({ body }, names)).answer.kind, 'notified');
    assert.equal((await ask({ body: body.replaceAll('7', '6') }, names)).answer.kind, 'refused');
    const slow = await ask({ body: `${'a'.repeat(60)}b` }, { expectMatch: '^(a+)+$' });
    assert.equal(slow.answer.kind, 'unreachable');
  });

  for (const status of [400, 412, 422, 500, 501]) {
    it(`takes status ${status} for a refusal, with the text of the response`, async () => {
      const { answer } = await ask({ status, body: 'block.yaml: line 3' });
      assert.deepEqual(answer, { kind: 'refused', text: `status ${status}: block.yaml: line 3` });
    });
  }

  for (const status of [401, 403, 404, 405, 429, 502, 503, 504]) {
    it(`takes status ${status} for no verdict on the policy`, async () => {
      assert.equal((await ask({ status })).answer.kind, 'unreachable');
    });
  }

  it('never follows a redirect', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const { answer, requests } = await ask({ status, headers: { location: '/elsewhere' } });
      assert.equal(answer.kind, 'unreachable');
      assert.equal(requests.length, 1);
    }
  });

  it('cannot reach a daemon that hangs, is cut off, talks without end, or speaks something else', async () => {
    const hanging = await ask('hang', {}, 50);
    assert.match(hanging.answer.text, /no answer in 50 ms/);
    assert.equal(hanging.answer.kind, 'unreachable');
    assert.equal((await ask('cut')).answer.kind, 'unreachable');
    const endless = await ask({ body: 'x'.repeat(70_000) });
    assert.equal(endless.answer.kind, 'unreachable');
    assert.match(endless.answer.text, /longer than 64000 bytes/);
    await using raw = await rawServer((socket) => void socket.end('SSH-2.0-x\r\n'));
    const other = await driverOf(raw.url).reset('a', { target, timeoutMs: 60_000 });
    assert.equal(other.kind, 'unreachable');
    assert.match(other.text, /does not speak HTTP/);
  });

  it('cannot reach a daemon that died, or after an abort', async () => {
    const port = await freePort();
    const driver = driverOf(`http://127.0.0.1:${port}/`);
    const dead = await driver.reset('a', { target, timeoutMs: 60_000 });
    assert.deepEqual(dead, { kind: 'unreachable', text: 'a: ECONNREFUSED' });
    const worker = await startFakeHttpWorker(() => 'hang', { port });
    const stop = new AbortController();
    const asked = driver.reset('a', { target, timeoutMs: 60_000, signal: stop.signal });
    stop.abort();
    assert.equal((await asked).text, 'a: aborted');
    assert.equal(await livenessOf(`http://127.0.0.1:${port}/`, 'a'), 'alive');
    await worker.close();
    assert.equal(await livenessOf(`http://127.0.0.1:${port}/`, 'a'), 'dead');
  });

  it('speaks over unix sockets, one worker a socket', async () => {
    using dir = tempDir();
    const one = await startFakeHttpWorker(() => ({}), { path: dir.join('1.sock') });
    const two = await startFakeHttpWorker(() => ({ status: 500 }), { path: dir.join('2.sock') });
    await leaveStaleSocket(dir.join('3.sock'));
    const place = { unix: dir.join('*.sock'), path: '/reload?worker={worker}' };
    const driver = driverOf(place);
    const members = await driver.members();
    assert.deepEqual(members, ['1.sock', '2.sock', '3.sock']);
    const answers = await Promise.all(members.map((id) => driver.reset(id, { target, timeoutMs: 60_000 })));
    assert.deepEqual(
      answers.map((answer) => answer.kind),
      ['notified', 'refused', 'unreachable'],
    );
    assert.deepEqual(
      one.requests.map((request) => request.line),
      ['POST /reload?worker=1.sock'],
    );
    assert.deepEqual(await Promise.all(members.map((id) => livenessOf(place, id))), [
      'alive',
      'alive',
      'dead',
    ]);
    mkdirSync(dir.join('set'));
    const elsewhere = driverOf({ unix: dir.join('set/*.sock'), path: '/' });
    assert.equal((await elsewhere.reset('../1.sock', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    assert.equal(await elsewhere.liveness?.('../1.sock'), 'unknown');
    assert.equal(one.requests.length, 1);
    await one.close();
    await two.close();
  });

  it('does not reveal the secret that it sends', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('token'), 'Bearer s3cret\n');
    const { answer, requests } = await ask({ status: 401 }, { authorizationFile: dir.join('token') });
    assert.equal(requests[0]?.headers.authorization, 'Bearer s3cret');
    assert.ok(!answer.text.includes('s3cret'));
    const none = await ask({}, { authorizationFile: dir.join('none') });
    assert.equal(none.answer.kind, 'unreachable');
    assert.deepEqual(none.requests, []);
  });
});

describe('the members of an http group', () => {
  it('are those that a command names, each with a URL of its own', async () => {
    const worker = await startFakeHttpWorker(() => ({}));
    const { host } = new URL(worker.url);
    const driver = driverOf('http://{worker}/reload', {
      members: { run: ['printf', `${host}\\n${host}\\n`] },
    });
    const members = await driver.members();
    assert.deepEqual(members, [host]);
    assert.equal((await driver.reset(host, { target, timeoutMs: 60_000 })).kind, 'notified');
    assert.equal(await driver.liveness?.(host), 'alive');
    await worker.close();
  });

  it('cannot make the path of a socket so long that another one is meant', async () => {
    using dir = tempDir();
    const name = 'a'.repeat(108);
    const place = { unix: dir.join('{worker}'), path: '/' };
    const driver = driverOf(place, { members: { run: ['echo', name] } });
    const answer = await driver.reset(name, { target, timeoutMs: 60_000 });
    assert.deepEqual(answer, { kind: 'unreachable', text: `${name}: the path is too long for a socket` });
    assert.equal(await driver.liveness?.(name), 'unknown');
  });

  it('may be ports of one host', async () => {
    const worker = await startFakeHttpWorker(() => ({}));
    const { port } = new URL(worker.url);
    const driver = driverOf('http://127.0.0.1:{worker}/reload', { members: { run: ['echo', port] } });
    assert.equal((await driver.reset(port, { target, timeoutMs: 60_000 })).kind, 'notified');
    assert.equal((await driver.reset('web', { target, timeoutMs: 60_000 })).kind, 'unreachable');
    await worker.close();
  });

  it('cannot lead elsewhere by their name', async () => {
    const driver = driverOf('http://{worker}.example.net/reload', { members: { run: ['true'] } });
    for (const name of ['user@evil', 'evil/x', 'evil#', 'evil?', '..', 'a b', '-a'])
      assert.equal((await driver.reset(name, { target, timeoutMs: 60_000 })).kind, 'unreachable', name);
  });

  it('are the one of a URL, by its host and port', async () => {
    assert.deepEqual(await driverOf('http://127.0.0.1:9090/-/reload').members(), ['127.0.0.1:9090']);
    assert.deepEqual(await driverOf({ unix: '/run/a.sock', path: '/' }).members(), ['a.sock']);
  });
});

describe('the options of the http driver', () => {
  const validate = compileOptions(http);

  it('take a URL or a unix socket', () => {
    assert.ok(validate({ http: 'http://127.0.0.1:9090/-/reload', headers: { 'x-a': 'b' }, status: 204 }));
    assert.ok(validate({ http: { unix: '/run/a.sock', path: '/reload' }, body: 'a\nb' }));
    assert.ok(validate({ http: 'https://{worker}/', members: { run: ['list'], timeout: '2s' } }));
  });

  for (const bad of [
    { http: 'ftp://a/' },
    { http: 'http://a b/' },
    { http: { unix: '/run/a.sock' } },
    { http: { unix: '/run/a.sock', path: 'reload' } },
    { http: { unix: '/run/*/a.sock', path: '/' } },
    { http: 'http://a/', method: 'TRACE' },
    { http: 'http://a/', headers: { host: 'b' } },
    { http: 'http://a/', headers: { authorization: 'Bearer x' } },
    { http: 'http://a/', headers: { cookie: 'x' } },
    { http: 'http://a/', headers: { 'x-a': 'b\r\nx-c: d' } },
    { http: 'http://a/', status: 100 },
    { http: 'http://a/', members: { run: [] } },
    { http: 'http://a/', members: { run: ['list'], timeout: '2 s' } },
  ]) {
    it(`refuse ${JSON.stringify(bad)}`, () => assert.equal(validate(bad), false));
  }

  const contradictions: readonly (readonly [string, unknown, object])[] = [
    ['a name and password in the URL', 'http://a:b@c/', {}],
    ['a password in the URL', 'http://:c@d/', {}],
    ['a name in the URL', 'http://a@c/', {}],
    ['another protocol', 'ftp://a/', {}],
    ['a URL that is none', 'http://[a/', {}],
    ['a fragment', 'http://a/#b', {}],
    ['an unknown placeholder', 'http://a/{bundle}', {}],
    ['an unknown placeholder in the body', 'http://a/', { body: '{bundle}' }],
    ['a body of GET', 'http://a/', { method: 'GET', body: 'x' }],
    ['{worker} without members', 'http://{worker}/', {}],
    ['members without {worker}', 'http://a/', { members: { run: ['list'] } }],
    ['members of one socket', { unix: '/run/a.sock', path: '/' }, { members: { run: ['list'] } }],
  ];
  for (const [what, place, options] of contradictions) {
    it(`refuse ${what}`, () => {
      throwsCode('CONFIG_INVALID', () => driverOf(place, options));
    });
  }
});
