import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../src/core/errors.js';
import { defaultTransportLimits, type TransportLimits } from '../../src/core/limits.js';
import { openRepositoryClient, type RepositoryClient } from '../../src/trust/repository-client.js';
import { memoryTrustStore, type TrustStore } from '../../src/trust/trust-store.js';
import { rejectsCode } from '../support/assert-code.js';
import { type FakeClock, fakeClock } from '../support/fake-clock.js';
import { isoTime, makeKey, RepositorySimulator, signWith } from '../support/repository-simulator.js';
import { encodeEnvelope } from '../support/simulated-metadata.js';
import { busy, down, type SimulatedMirror, simulatedMirror, upload } from '../support/simulated-mirror.js';

const startMs = Date.UTC(2026, 10, 1);
const dayMs = 86_400_000;
const minuteMs = 60_000;

interface Bench {
  readonly clock: FakeClock;
  readonly repository: RepositorySimulator;
  readonly store: TrustStore;
  readonly a: SimulatedMirror;
  readonly b: SimulatedMirror;
  readonly client: RepositoryClient;
  /** Both mirrors get what the repository has now. */
  upload(...mirrors: readonly SimulatedMirror[]): void;
}

/** Two mirrors of a repository that has published twice; the host trusts the second version. */
async function bench(transport: Partial<TransportLimits> = {}): Promise<Bench> {
  const clock = fakeClock({ nowMs: startMs });
  const repository = new RepositorySimulator({ nowMs: startMs });
  repository.publish();
  const store = memoryTrustStore(repository.bootstrapRoot);
  const a = simulatedMirror('https://a/', repository.files);
  const b = simulatedMirror('https://b/', repository.files);
  const limits = { ...defaultTransportLimits, ...transport };
  const client = openRepositoryClient({ source: a, mirrors: [b], store, clock, transport: limits });
  await client.refresh();
  a.takeRequests();
  return { clock, repository, store, a, b, client, upload: (...to) => upload(repository.files, to) };
}

function version(client: RepositoryClient, role: 'root' | 'timestamp' | 'targets'): number | undefined {
  return client.status()?.roles[role]?.version;
}

async function refreshed(client: RepositoryClient): Promise<readonly [string, ...string[]]> {
  const { mirror, failures } = await client.refresh();
  return [mirror, ...failures.map((one) => `${one.mirror} ${one.error.code}`)];
}

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

  it('goes on at the next one when the first is down, with the whole order of requests', async () => {
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

  it('remembers the ETag of each mirror apart', async () => {
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

/** What the first mirror does, and the code under which it is left; the second has the next version. */
const lies: Readonly<Record<string, readonly [code: string, lie: (it: Bench) => void]>> = {
  'answers with an error': [
    'SERVER_ERROR',
    ({ a }) => {
      a.fault = Object.assign(down(), { code: 'SERVER_ERROR' });
    },
  ],
  'has an older timestamp (rollback)': [
    'METADATA_ROLLBACK',
    ({ a, repository }) => a.files.set('metadata/timestamp.json', olderTimestamp(repository)),
  ],
  'serves a timestamp that only a stranger signed': [
    'SIGNATURE_WRONG_KEY',
    ({ a, repository }) => {
      const { timestamp } = repository;
      a.files.set('metadata/timestamp.json', encodeEnvelope(signWith([makeKey()], timestamp), timestamp));
    },
  ],
  'serves an expired timestamp (freeze)': [
    'METADATA_EXPIRED',
    ({ a, repository }) => {
      const expired = { ...repository.timestamp, version: 9, expires: isoTime(startMs) };
      a.files.set(
        'metadata/timestamp.json',
        encodeEnvelope(signWith(repository.keys.timestamp, expired), expired),
      );
    },
  ],
  'serves a snapshot of another version (mix-and-match)': [
    'METADATA_MIX',
    ({ a, repository, upload }) => {
      upload(a);
      a.files.set('metadata/3.snapshot.json', repository.file('2.snapshot.json'));
    },
  ],
  'withholds the snapshot': [
    'METADATA_MISSING',
    ({ a, upload }) => {
      upload(a);
      a.files.delete('metadata/3.snapshot.json');
    },
  ],
  'serves a timestamp without end': [
    'DOWNLOAD_TOO_LARGE',
    ({ a }) => a.files.set('metadata/timestamp.json', Buffer.alloc(16_001)),
  ],
  'serves what is no metadata': [
    'METADATA_MALFORMED',
    ({ a }) => a.files.set('metadata/timestamp.json', Buffer.from('<html>')),
  ],
  'forges the next root': [
    'SIGNATURE_WRONG_KEY',
    ({ a, repository }) => {
      const root = { ...repository.root, version: 2 };
      a.files.set('metadata/2.root.json', encodeEnvelope(signWith([makeKey(), makeKey()], root), root));
    },
  ],
};

function olderTimestamp(repository: RepositorySimulator): Buffer {
  const older = { ...repository.timestamp, version: 1 };
  return encodeEnvelope(signWith(repository.keys.timestamp, older), older);
}

describe('attack: a malicious mirror blocks updates', () => {
  for (const [what, [code, lie]] of Object.entries(lies)) {
    it(`in vain when it ${what}: ${code}`, async () => {
      const it = await bench();
      it.repository.publish();
      it.upload(it.b);
      lie(it);
      assert.deepEqual(await refreshed(it.client), ['https://b/', `https://a/ ${code}`]);
      assert.equal(version(it.client, 'targets'), 3);
    });
  }

  it('in vain when our own code stumbles over what it serves', async () => {
    const { client, a, b, repository, upload } = await bench();
    repository.publish();
    upload(b);
    a.fetch = async () => {
      throw new TypeError('undefined is not a function');
    };
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ INTERNAL']);
  });

  it('in vain when it never ends: each mirror has its own time, and less while another one is left', async () => {
    const { client, a, b, repository, upload } = await bench({
      metadataTimeoutMs: 30,
      refreshTimeoutMs: 60_000,
    });
    repository.publish();
    upload(b);
    a.fetch = (_path, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(Object.assign(down(), { code: 'INTERRUPTED' })));
      });
    const { mirror, failures } = await client.refresh();
    assert.deepEqual(
      [mirror, failures.map(({ error }) => [error.code, error.facts.expected])],
      ['https://b/', [['DOWNLOAD_TIMEOUT', 30]]],
    );
  });

  it('and cannot take back what it gave: the next mirror goes on from there', async () => {
    const { client, a, b, repository, upload, store } = await bench();
    repository.rotate('timestamp');
    repository.publish();
    upload(a, b);
    a.files.set('metadata/3.targets.json', Buffer.from('{}'));
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ METADATA_MALFORMED']);
    assert.deepEqual(b.takeRequests(), [
      'GET metadata/3.root.json',
      'GET metadata/timestamp.json',
      'GET metadata/3.targets.json',
    ]);
    assert.deepEqual(Buffer.from(store.loadFiles().targets ?? []), repository.file('3.targets.json'));
  });

  it('but holds the host at the newest timestamp: an older view of another mirror stays refused', async () => {
    const { client, a, b, repository, upload } = await bench();
    repository.publish();
    upload(a);
    a.files.delete('metadata/3.snapshot.json');
    const error = await rejectsCode('METADATA_ROLLBACK', client.refresh());
    assert.deepEqual(error.facts['mirrors'], [
      { mirror: 'https://a/', code: 'METADATA_MISSING' },
      { mirror: 'https://b/', code: 'METADATA_ROLLBACK' },
    ]);
    assert.equal(version(client, 'timestamp'), 3);
    upload(b);
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ METADATA_MISSING']);
  });

  it('and a true but old view that has not expired is no news, as the page on configuration says', async () => {
    const { client, b, repository, upload } = await bench();
    repository.publish();
    upload(b);
    assert.deepEqual(await refreshed(client), ['https://a/']);
    assert.equal(version(client, 'targets'), 2);
  });
});

describe('mirrors: when all fail', () => {
  it('the error says most, whatever the order, and names each', async () => {
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

  it('and all ask for quiet, the shortest time counts', async () => {
    const { client, a, b } = await bench();
    a.fault = busy(90_000);
    b.fault = busy(7000);
    const error = await rejectsCode('SERVER_BUSY', client.refresh());
    assert.equal(error.facts['retryAfterMs'], 7000);
  });

  it('and one asks for quiet, that does not keep the host from the others', async () => {
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
    await assert.rejects(single.refresh(), (error) => error === fault);
    assert.deepEqual(single.mirrors(), [
      { url: 'https://a/', state: 'failed', code: 'SERVER_UNREACHABLE', sinceMs: startMs },
    ]);
  });
});

describe('mirrors: what no other one can mend ends the refresh', () => {
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
  it('puts one that failed last for ten minutes, then the configured order holds again', async () => {
    const { client, a, clock } = await bench();
    a.fault = down();
    await client.refresh();
    a.fault = undefined;
    await clock.advance(9 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://b/']);
    await clock.advance(2 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://a/']);
  });

  it('asks one that rests all the same when the others fail', async () => {
    const { client, a, b } = await bench();
    a.fault = down();
    await client.refresh();
    a.fault = undefined;
    b.fault = down();
    assert.deepEqual(await refreshed(client), ['https://a/', 'https://b/ SERVER_UNREACHABLE']);
  });

  it('leaves one alone that asked for quiet, though the other one fails, until its time has passed', async () => {
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

  it('asks that one too when a person forces it', async () => {
    const { client, a, b } = await bench();
    a.fault = busy(20 * minuteMs);
    await client.refresh();
    a.fault = undefined;
    b.fault = down();
    const { mirror } = await client.refresh({ conditional: 'no' });
    assert.equal(mirror, 'https://a/');
  });

  it('counts a failure from its beginning, and forgets it when the mirror is good again', async () => {
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

describe('attack: a mirror that shows an old view and withholds what nobody else keeps any more', () => {
  /** The first mirror stays at a view whose role and archive the second one has collected since. */
  async function twoViews(): Promise<Bench> {
    const world = await bench();
    const { repository, a, b, upload } = world;
    repository.delegate('targets', { name: 'dns-team', paths: ['dns/*'] });
    const release = { bundle: 'dns', channel: 'stable' };
    repository.addRelease(release, Buffer.from('first'), { listedBy: 'dns-team' });
    repository.publish();
    upload(a);
    repository.withhold('1.dns-team.json');
    for (const path of [...repository.files.keys()].filter((one) => one.startsWith('targets/'))) {
      repository.files.delete(path);
      a.files.delete(path);
    }
    repository.signedOf('dns-team').version += 1;
    repository.addRelease({ ...release, serial: 2 }, Buffer.from('second'), { listedBy: 'dns-team' });
    repository.publish();
    upload(b);
    return world;
  }

  it('is left at the next refresh when it withheld a delegated role', async () => {
    const { client, a } = await twoViews();
    a.files.delete('metadata/1.dns-team.json');
    assert.deepEqual(await refreshed(client), ['https://a/']);
    await rejectsCode('METADATA_MISSING', client.target('dns', 'stable'));
    assert.deepEqual(await refreshed(client), ['https://b/']);
    assert.equal((await client.target('dns', 'stable'))?.release.serial, 2);
  });

  it('is left at the next refresh when it withheld an archive', async () => {
    const { client } = await twoViews();
    await client.refresh();
    const target = await client.target('dns', 'stable');
    assert.equal(target?.release.serial, 1);
    const receive = async (open: (offset: number, signal: AbortSignal) => AsyncIterable<Buffer>) => {
      for await (const chunk of open(0, new AbortController().signal)) assert.ok(chunk.length > 0);
    };
    await rejectsCode('DOWNLOAD_TRUNCATED', client.download(target!, receive));
    assert.deepEqual(await refreshed(client), ['https://b/']);
    const next = await client.target('dns', 'stable');
    assert.equal(next?.release.serial, 2);
    await client.download(next!, receive);
  });

  it('is asked first again later, and then its view is a rollback', async () => {
    const { client, a, clock } = await twoViews();
    a.files.delete('metadata/1.dns-team.json');
    await client.refresh();
    await rejectsCode('METADATA_MISSING', client.target('dns', 'stable'));
    await client.refresh();
    await clock.advance(21 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ METADATA_ROLLBACK']);
  });

  it('is not left for trouble of our own', async () => {
    const { client } = await twoViews();
    await client.refresh();
    const target = await client.target('dns', 'stable');
    const full = async () => {
      throw new WritError('DISK_FULL', 'full');
    };
    await rejectsCode('DISK_FULL', client.download(target!, full));
    assert.deepEqual(await refreshed(client), ['https://a/']);
  });
});

describe('mirrors: a delegated role that is kept and has expired', () => {
  it('is no fault of a mirror: none is asked, and none is said to fail', async () => {
    const { client, repository, a, b, upload, clock } = await bench();
    repository.delegate('targets', { name: 'dns-team', paths: ['dns/*'] });
    repository.signedOf('dns-team').expires = isoTime(startMs + 2 * dayMs);
    repository.publish();
    upload(a, b);
    await client.refresh();
    await client.target('dns', 'stable');
    clock.setWallTime(startMs + 3 * dayMs);
    await client.refresh();
    a.takeRequests();
    const error = await rejectsCode('METADATA_EXPIRED', client.target('dns', 'stable'));
    assert.deepEqual([error.facts['role'], error.facts['mirrors']], ['dns-team', undefined]);
    assert.deepEqual([...a.takeRequests(), ...b.takeRequests()], []);
    assert.deepEqual(
      client.mirrors().map((one) => one.state),
      ['used', 'idle'],
    );
  });
});

describe('mirrors: one trust state over time', () => {
  it('does not let a mirror that lags give up what another one has shown', async () => {
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
