// Mirrors that send wrong or old files, or withhold files, while another one is honest.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import type { Receive } from '../../../../src/trust/download.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { heldTimer } from '../../../kit/clock/held-timer.js';
import {
  isoTime,
  makeKey,
  type RepositorySimulator,
  signWith,
} from '../../../kit/repository/repository-simulator.js';
import { encodeEnvelope } from '../../../kit/repository/simulated-metadata.js';
import { down } from '../../../kit/repository/simulated-mirror.js';
import {
  type Bench,
  bench,
  dayMs,
  minuteMs,
  refreshed,
  startMs,
  version,
} from '../../../kit/trust/mirror-bench.js';

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
    it(`without effect when it ${what}: ${code}`, async () => {
      const it = await bench();
      it.repository.publish();
      it.upload(it.b);
      lie(it);
      assert.deepEqual(await refreshed(it.client), ['https://b/', `https://a/ ${code}`]);
      assert.equal(version(it.client, 'targets'), 3);
    });
  }

  it('without effect when its response causes an internal error', async () => {
    const { client, a, b, repository, upload } = await bench();
    repository.publish();
    upload(b);
    a.fetch = async () => {
      throw new TypeError('undefined is not a function');
    };
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ INTERNAL']);
  });

  it('without effect when it never ends: each mirror has its own deadline, a shorter one except for the last', async (t) => {
    const patienceMs = 61_001;
    const { client, a, b, repository, upload } = await bench({
      metadataTimeoutMs: patienceMs,
      refreshTimeoutMs: 120_000,
    });
    const deadline = heldTimer(t, patienceMs);
    repository.publish();
    upload(b);
    a.fetch = (_path, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(Object.assign(down(), { code: 'INTERRUPTED' })));
        void deadline.fire();
      });
    const { mirror, failures } = await client.refresh();
    assert.deepEqual(
      [mirror, failures.map(({ error }) => [error.code, error.facts.expected])],
      ['https://b/', [['DOWNLOAD_TIMEOUT', patienceMs]]],
    );
  });

  it('and cannot revert its files: the next mirror continues from them', async () => {
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

  it('and an old view that has not expired is accepted, as documented in configuration.md', async () => {
    const { client, b, repository, upload } = await bench();
    repository.publish();
    upload(b);
    assert.deepEqual(await refreshed(client), ['https://a/']);
    assert.equal(version(client, 'targets'), 2);
  });
});

describe('attack: a mirror that shows an old view and withholds files that no other mirror has', () => {
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

  it('is skipped at the next refresh after it withheld a delegated role', async () => {
    const { client, a } = await twoViews();
    a.files.delete('metadata/1.dns-team.json');
    assert.deepEqual(await refreshed(client), ['https://a/']);
    await rejectsCode('METADATA_MISSING', client.target('dns', 'stable'));
    assert.deepEqual(await refreshed(client), ['https://b/']);
    assert.equal((await client.target('dns', 'stable'))?.release.serial, 2);
  });

  it('is skipped at the next refresh after it withheld an archive', async () => {
    const { client } = await twoViews();
    await client.refresh();
    const target = await client.target('dns', 'stable');
    assert.equal(target?.release.serial, 1);
    const receive: Receive = async (open, signal) => {
      const start = { offset: 0, seen: undefined, onBegin: () => undefined };
      for await (const chunk of open(start, signal)) assert.ok(chunk.length > 0);
    };
    await rejectsCode('DOWNLOAD_TRUNCATED', client.download(target!, receive));
    assert.deepEqual(await refreshed(client), ['https://b/']);
    const next = await client.target('dns', 'stable');
    assert.equal(next?.release.serial, 2);
    await client.download(next!, receive);
  });

  it('is the first again later, and then its view is a rollback', async () => {
    const { client, a, clock } = await twoViews();
    a.files.delete('metadata/1.dns-team.json');
    await client.refresh();
    await rejectsCode('METADATA_MISSING', client.target('dns', 'stable'));
    await client.refresh();
    await clock.advance(21 * minuteMs);
    assert.deepEqual(await refreshed(client), ['https://b/', 'https://a/ METADATA_ROLLBACK']);
  });

  it('is not skipped for an error of this host', async () => {
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
  it('is not a failure of a mirror: none gets a request, and none counts as failed', async () => {
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
