// Tests of each kind of store: its disk is full, or another process keeps it locked.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { type FleetBench, fleetBench, type NewLocation } from '../fleet-bench.js';
import { listeningApp } from '../listening-app.js';
import { type SignedHost, signedHost } from '../signed-host.js';
import { fillStore } from './full-store.js';

type Write = readonly [name: string, ask: () => Promise<Response>, whenFreed: number];

async function writesOf(bench: FleetBench, url: string): Promise<readonly Write[]> {
  const { token: forHosts } = await bench.token({ uses: 3 });
  const { token: forOpas } = await bench.token({ kind: 'opa' });
  const { token } = await bench.token({ kind: 'people', role: 'operate' });
  const { id } = await bench.token();
  const known: SignedHost = signedHost(url, 'known');
  assert.equal((await known.enrol(forHosts)).status, 200);
  const waits = await bench.enrol(forHosts, 'known');
  const fresh = signedHost(url, 'fresh');
  const ask = (method: string, path: string, bearer: string, body?: object) => () =>
    fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify(body ?? {}),
    });
  const form = (path: string, cookie: string) => () =>
    fetch(new URL(path, url), {
      ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams({ token }) },
      headers: { 'sec-fetch-site': 'same-origin', cookie },
    });
  const signedIn = (await form('/sign-in', '')()).headers.get('set-cookie') ?? '';
  const remove = () =>
    fetch(new URL(`/v1/tokens/${id}`, url), {
      ...{ method: 'DELETE', headers: { authorization: `Bearer ${token}` } },
    });
  return [
    ['enrol', () => fresh.enrol(forHosts), 200],
    ['report', () => known.report(), 200],
    ['make a token', ask('POST', '/v1/tokens', token, { kind: 'hosts' }), 200],
    ['revoke a token', remove, 200],
    ['approve', ask('POST', `/v1/hosts/${waits.keyId}/approve`, token), 200],
    ['retire', ask('POST', `/v1/hosts/${waits.keyId}/retire`, token), 200],
    ['status of an OPA', ask('POST', '/v1/opa/status', forOpas, { labels: { id: 'a' } }), 200],
    ['sign in', form('/sign-in', ''), 303],
    ['sign out', form('/sign-out', signedIn.split(';')[0] ?? ''), 303],
  ];
}

/** Registers the cases for one kind of store. */
export function fullCases(newLocation: NewLocation): void {
  describe('a store that cannot be written', () => {
    it('answers every write with a time to retry, and accepts each once there is space', async () => {
      await using bench = await fleetBench(await newLocation(), systemClock);
      await using app = await listeningApp(bench.store);
      const writes = await writesOf(bench, app.url);
      const free = await fillStore(bench.store);
      for (const [name, ask] of writes) {
        const answer = await ask();
        const text = await answer.text();
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'], `${name}: ${text}`);
        assert.match(text, name === 'report' ? /FLEET_OVERLOADED/ : /FLEET_STORE_UNWRITABLE/, name);
        // Messages of a database may contain a row or a path.
        assert.doesNotMatch(text, /could not extend|53100|SQLITE|disk is full"/, name);
      }
      const { uses_left } = await bench.store.db
        .selectFrom('tokens')
        .select('uses_left')
        .where('uses_left', '>', 0)
        .executeTakeFirstOrThrow();
      assert.equal(uses_left, 1, 'what was not stored took no use');
      await free();
      for (const [name, ask, whenFreed] of writes) assert.equal((await ask()).status, whenFreed, name);
    });
  });
}
