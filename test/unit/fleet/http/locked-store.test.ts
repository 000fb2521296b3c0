// Responses of the API while another process keeps the store locked. test/kit/fleet/cases/full-cases has a full disk.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';
import { listeningApp } from '../../../kit/fleet/listening-app.js';
import { signedHost } from '../../../kit/fleet/signed-host.js';

describe('a store that another process keeps locked', () => {
  it('answers each write with the time of a retry, and waits no longer than the lock', async () => {
    using directory = tempDir(memory());
    const location = directory.join('store');
    await using bench = await fleetBench(location, systemClock, { busyTimeoutMs: 1 });
    await using other = await fleetBench(location, systemClock);
    await using app = await listeningApp(bench.store);
    const [hosts, opas] = [await bench.token(), await bench.token({ kind: 'opa' })];
    const people = await bench.token({ kind: 'people', role: 'operate' });
    const host = signedHost(app.url, 'web-1');
    const post = (path: string, bearer: string, body: object) =>
      fetch(new URL(path, app.url), {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const writes = [
      () => host.enrol(hosts.token),
      () => post('/v1/tokens', people.token, { kind: 'hosts' }),
      () => post('/v1/opa/status', opas.token, { labels: { id: 'a' } }),
    ];
    await other.store.db.transaction().execute(async (trx) => {
      await trx.updateTable('leases').set({ until_ms: 1 }).execute();
      for (const write of writes) {
        const answer = await write();
        const { code, message } = (await answer.json()) as {
          readonly code: string;
          readonly message: string;
        };
        assert.equal(message, 'the server could not answer; its log has the reason');
        assert.deepEqual(
          [answer.status, answer.headers.get('retry-after'), code],
          [503, '5', 'FLEET_STORE_BUSY'],
        );
      }
    });
    for (const write of writes) assert.equal((await write()).status, 200);
  });
});
