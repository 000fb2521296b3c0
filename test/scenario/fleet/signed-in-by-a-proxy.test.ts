// `writ fleet serve` as a process behind a proxy that authenticates people: the server accepts the header of this proxy only.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';

const fromHere = ['--identity-header', 'X-Remote-User', '--identity-from', '127.0.0.1'];

/** By node:http, which can send a header twice. */
function ask(url: string, headers: Record<string, string | string[]>, method = 'GET', body = '') {
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const asked = request(url, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.on('error', reject).end(body);
  });
}

const alice = { 'x-remote-user': 'alice@example.net' };
const json = { 'content-type': 'application/json' };

describe('a person that a proxy authenticated', () => {
  it('is in pages and in the log, and the header from another address is ignored', longCase, async () => {
    await using fleet = await servedFleet(...fromHere, '--identity-role', 'operate');
    const made = await ask(
      `${fleet.url}/v1/tokens`,
      { ...alice, ...json, 'sec-fetch-site': 'same-origin' },
      'POST',
      '{"kind":"opa"}',
    );
    assert.equal(made.status, 200, made.text);
    const log = await ask(`${fleet.url}/v1/log`, alice);
    assert.match(log.text, /"who":"person alice@example\.net","what":"token\.create"/);
    const page = await ask(`${fleet.url}/`, alice);
    assert.equal(page.status, 200);
    assert.match(page.text, /alice@example\.net<\/bdi> \(operate\)/);
    assert.doesNotMatch(page.text, /Sign out/);
    await using other = await servedFleet(
      '--identity-header',
      'X-Remote-User',
      '--identity-from',
      '192.0.2.1',
    );
    assert.equal((await ask(`${other.url}/v1/summary`, alice)).status, 401);
    const token = await other.token('--for', 'people');
    const both = { ...alice, authorization: `Bearer ${token}` };
    assert.equal((await ask(`${other.url}/v1/summary`, both)).status, 200);
  });

  it('cannot change anything by a page of another site', async () => {
    await using fleet = await servedFleet(...fromHere, '--identity-role', 'operate');
    for (const site of ['cross-site', 'same-site', 'none', undefined]) {
      const headers = { ...alice, ...json, ...(site === undefined ? {} : { 'sec-fetch-site': site }) };
      const made = await ask(`${fleet.url}/v1/tokens`, headers, 'POST', '{"kind":"people","role":"operate"}');
      assert.equal(made.status, 403, site);
      assert.equal(JSON.parse(made.text).code, 'FLEET_FORBIDDEN');
    }
    assert.deepEqual(JSON.parse((await ask(`${fleet.url}/v1/log`, alice)).text).entries, []);
  });

  it(
    'sees only what its role permits, and is refused with two names, with a token, and with a session',
    longCase,
    async () => {
      await using fleet = await servedFleet(...fromHere);
      const url = `${fleet.url}/v1/summary`;
      const codeOf = async (headers: Record<string, string | string[]>) => {
        const { status, text } = await ask(url, headers);
        return [status, JSON.parse(text).code];
      };
      assert.equal((await ask(url, alice)).status, 200);
      assert.deepEqual((await ask(`${fleet.url}/v1/tokens`, alice)).status, 403);
      const refused = [401, 'FLEET_IDENTITY_REFUSED'];
      const token = await fleet.token('--for', 'people', '--role', 'operate');
      assert.deepEqual(await codeOf({ 'x-remote-user': ['alice', 'bob'] }), refused);
      assert.deepEqual(await codeOf({ 'x-remote-user': 'alice, bob' }), refused);
      assert.deepEqual(await codeOf({ ...alice, authorization: `Bearer ${token}` }), refused);
      assert.deepEqual(await codeOf({ ...alice, cookie: `writ_session=${'a'.repeat(43)}` }), refused);
      const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
      const signIn = await ask(`${fleet.url}/sign-in`, { ...alice, ...form }, 'POST', `token=${token}`);
      assert.equal(signIn.status, 401);
      assert.match(signIn.text, /FLEET_IDENTITY_REFUSED/);
      assert.equal((await ask(url, { authorization: `Bearer ${token}` })).status, 200);
    },
  );

  it('is accepted only from configured addresses, without which no server starts', longCase, async () => {
    const serve = (...flags: string[]) => runWrit(['fleet', 'serve', '--store', '/nonexistent', ...flags]);
    for (const flags of [
      ['--identity-header', 'X-Remote-User'],
      ['--identity-from', '10.0.0.2'],
      ['--identity-role', 'operate'],
      ['--identity-header', 'Cookie', '--identity-from', '10.0.0.2'],
      ['--identity-header', 'X-Remote-User', '--identity-from', '0.0.0.0/0'],
      [...fromHere, '--identity-role', 'owner'],
      [...fromHere, ...Array<string[]>(32).fill(['--identity-from', '10.0.0.2']).flat()],
    ])
      assert.equal((await serve(...flags)).exitCode, 2, flags.join(' '));
  });
});
