import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { makeKey, signWith } from '../../../kit/repository/repository-simulator.js';
import { encodeEnvelope } from '../../../kit/repository/simulated-metadata.js';
import { busy, down } from '../../../kit/repository/simulated-mirror.js';
import { bench, dayMs, minuteMs, refreshed, startMs, version } from '../../../kit/trust/mirror-bench.js';

describe('mirrors: a refresh', () => {
  it('asks the first one alone while it is good, in the order of a single repository', async () => {
    const { client, a, b, repository, upload } = await bench();
    repository.publish();
    upload(a, b);
    assert.deepEqual(await refreshed(client), ['https://a/']);
    assert.deepEqual(a.takeRequests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json if-none-match',
      'GET metadata/3.snapshot.json',
      'GET metadata/3.targets.json',
    ]);
    assert.deepEqual(b.takeRequests(), []);
    assert.deepEqual(client.mirrors(), [
      { url: 'https://a/', state: 'used' },
      { url: 'https://b/', state: 'idle' },
    ]);
  });

  it('continues at the next one when the first is down, with all requests in order', async () => {
    const { client, a, b, repository, upload } = await bench();
    repository.publish();
    upload(b);
    a.fault = down();
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ SERVER_UNREACHABLE']);
    assert.deepEqual(b.takeRequests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json',
      'GET metadata/3.snapshot.json',
      'GET metadata/3.targets.json',
    ]);
    assert.equal(version(client, 'targets'), 3);
    assert.deepEqual(client.mirrors(), [
      { url: 'https://a/', state: 'failed', code: 'SERVER_UNREACHABLE', sinceMs: startMs },
      { url: 'https://b/', state: 'used' },
    ]);
  });

  it('stores the ETag of each mirror separately', async () => {
    const { client, a, b, clock } = await bench();
    a.fault = down();
    await client.refresh();
    a.fault = undefined;
    b.takeRequests();
    await client.refresh();
    assert.ok(b.takeRequests().includes('GET metadata/timestamp.json if-none-match'));
    await clock.advance(11 * minuteMs);
    a.takeRequests();
    await client.refresh();
    assert.ok(a.takeRequests().includes('GET metadata/timestamp.json if-none-match'));
  });
});

describe('mirrors: when all fail', () => {
  it('the error is the most specific one, whatever the order, and names each mirror', async () => {
    for (const swapped of [false, true]) {
      const { client, a, b, repository } = await bench();
      const [liar, dead] = swapped ? [b, a] : [a, b];
      dead.fault = down();
      const { timestamp } = repository;
      liar.files.set('metadata/timestamp.json', encodeEnvelope(signWith([makeKey()], timestamp), timestamp));
      const error = await rejectsCode('SIGNATURE_WRONG_KEY', client.refresh());
      assert.equal(error.facts['mirror'], liar.location);
      assert.ok(error.message.includes('https://a/') && error.message.includes('https://b/'));
      assert.deepEqual(error.facts['mirrors'], [
        { mirror: 'https://a/', code: swapped ? 'SERVER_UNREACHABLE' : 'SIGNATURE_WRONG_KEY' },
        { mirror: 'https://b/', code: swapped ? 'SIGNATURE_WRONG_KEY' : 'SERVER_UNREACHABLE' },
      ]);
    }
  });

  it('and all return Retry-After, the shortest time counts', async () => {
    const { client, a, b } = await bench();
    a.fault = busy(90_000);
    b.fault = busy(7000);
    const error = await rejectsCode('SERVER_BUSY', client.refresh());
    assert.equal(error.facts['retryAfterMs'], 7000);
  });

  it('and one returns Retry-After, the host uses the others', async () => {
    const { client, a, b, clock } = await bench();
    a.fault = busy(3_600_000);
    b.fault = down();
    const error = await rejectsCode('SERVER_UNREACHABLE', client.refresh());
    assert.equal(error.facts['retryAfterMs'], undefined);
    a.takeRequests();
    b.fault = undefined;
    await clock.advance(30 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://b/']);
    assert.deepEqual(a.takeRequests(), []);
  });

  it('the error of a single repository is the plain one', async () => {
    const { store, clock, a } = await bench();
    const fault = down();
    a.fault = fault;
    const single = openRepositoryClient({ source: a, store, clock });
    await assert.rejects(single.refresh(), { code: fault.code });
    assert.deepEqual(single.mirrors(), [
      { url: 'https://a/', state: 'failed', code: 'SERVER_UNREACHABLE', sinceMs: startMs },
    ]);
  });
});

describe('mirrors: an error that no other mirror can change ends the refresh', () => {
  for (const code of ['DISK_FULL', 'TRUST_STORE_DAMAGED'] as const) {
    it(code, async () => {
      const { store, clock, repository, a, b, upload } = await bench();
      repository.publish();
      upload(a, b);
      const saveFile = (): void => {
        throw Object.assign(down(), { code });
      };
      const source = { source: a, mirrors: [b] };
      const client = openRepositoryClient({ ...source, store: { ...store, saveFile }, clock });
      await rejectsCode(code, client.refresh());
      assert.deepEqual(b.takeRequests(), []);
    });
  }

  it('INTERRUPTED by the caller', async () => {
    const { client, a, b } = await bench();
    const abort = new AbortController();
    a.fetch = (_path, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        abort.abort();
      });
    await rejectsCode('INTERRUPTED', client.refresh({ signal: abort.signal }));
    assert.deepEqual(b.takeRequests(), []);
  });

  it('ROOT_CHAIN_TOO_LONG: every root was signed by those who may', async () => {
    const { store, clock, repository, a, b, upload } = await bench();
    for (let count = 0; count < 4; count += 1) repository.bumpRoot();
    upload(a, b);
    const limits = { maxRootBytes: 9e5, maxTimestampBytes: 9e5, maxSnapshotBytes: 9e5, maxTargetsBytes: 9e5 };
    const client = openRepositoryClient({
      source: a,
      mirrors: [b],
      store,
      clock,
      limits: { ...limits, maxRootRotations: 2 },
    });
    await rejectsCode('ROOT_CHAIN_TOO_LONG', client.refresh());
    assert.deepEqual(b.takeRequests(), []);
    assert.equal(version(client, 'root'), 3);
  });
});

describe('mirrors: their order', () => {
  it('tries a failed mirror last for ten minutes, then in the configured order again', async () => {
    const { client, a, clock } = await bench();
    a.fault = down();
    await client.refresh();
    a.fault = undefined;
    await clock.advance(9 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://b/']);
    await clock.advance(2 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://a/']);
  });

  it('uses a mirror in backoff when the others fail', async () => {
    const { client, a, b } = await bench();
    a.fault = down();
    await client.refresh();
    a.fault = undefined;
    b.fault = down();
    assert.deepEqual(await refreshed(client), ['https://a/', 'https://b/ SERVER_UNREACHABLE']);
  });

  it('does not use a mirror before its Retry-After, even when the other one fails', async () => {
    const { client, a, b, clock } = await bench();
    a.fault = busy(20 * minuteMs);
    await client.refresh();
    a.fault = undefined;
    a.takeRequests();
    b.fault = down();
    const error = await rejectsCode('SERVER_UNREACHABLE', client.refresh());
    assert.deepEqual(error.facts['mirrors'], [
      { mirror: 'https://b/', code: 'SERVER_UNREACHABLE' },
      { mirror: 'https://a/', code: 'SERVER_BUSY' },
    ]);
    assert.deepEqual(a.takeRequests(), []);
    await clock.advance(21 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://a/']);
  });

  it('uses that mirror too when an operator forces it', async () => {
    const { client, a, b } = await bench();
    a.fault = busy(20 * minuteMs);
    await client.refresh();
    a.fault = undefined;
    b.fault = down();
    const { mirror } = await client.refresh({ conditional: 'no' });
    assert.equal(mirror, 'https://a/');
  });

  it('reports a failure since its beginning, and clears it when the mirror succeeds', async () => {
    const { client, a, clock } = await bench();
    a.fault = down();
    await client.refresh();
    await clock.advance(20 * minuteMs);
    await client.refresh();
    assert.equal(client.mirrors()[0]?.sinceMs, startMs);
    a.fault = undefined;
    await clock.advance(20 * minuteMs);
    await client.refresh();
    assert.deepEqual(client.mirrors()[0], { url: 'https://a/', state: 'used' });
  });
});

describe('mirrors: a delegated role', () => {
  it('comes from the next one when the first withholds or forges it', async () => {
    const { client, repository, a, b, upload } = await bench();
    repository.delegate('targets', { name: 'dns-team', paths: ['dns/*'] });
    repository.publish();
    upload(a, b);
    a.files.set('metadata/1.dns-team.json', Buffer.from('{}'));
    await client.refresh();
    const failed: string[] = [];
    await client.target('dns', 'stable', {
      onMirrorFailed: ({ mirror, error }) => failed.push(`${mirror} ${error.code}`),
    });
    assert.deepEqual(failed, ['https://a/ METADATA_MALFORMED']);
    assert.ok(b.takeRequests().includes('GET metadata/1.dns-team.json'));
    a.takeRequests();
    assert.equal(await client.target('dns', 'stable'), undefined);
    assert.deepEqual([...a.takeRequests(), ...b.takeRequests()], []);
  });
});

describe('mirrors: one trust state over time', () => {
  it('does not accept an older view of a mirror that lags', async () => {
    const { client, repository, a, upload, clock } = await bench();
    repository.moveTime(dayMs);
    repository.publish();
    upload(a);
    await client.refresh();
    a.fault = down();
    const error = await rejectsCode('METADATA_ROLLBACK', client.refresh());
    assert.equal(error.facts['mirror'], 'https://b/');
    assert.equal(version(client, 'targets'), 3);
    await clock.advance(11 * minuteMs);
    a.fault = undefined;
    assert.deepEqual(await refreshed(client), ['https://a/']);
  });
});
