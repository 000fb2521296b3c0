// The requests and stored files of a refresh, and the files that it rejects.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  type Loose,
  makeKey,
  type RepositorySimulator,
} from '../../../kit/repository/repository-simulator.js';
import { dayMs, encodeEnvelope } from '../../../kit/repository/simulated-metadata.js';
import {
  firstRequests,
  firstVersions,
  type TrustBench,
  trustBench,
  type Verdict,
} from '../../../kit/trust/trust-bench.js';

describe('a refresh', () => {
  it('requests four files in their order, and stores each byte for byte', async () => {
    using bench = trustBench();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.asked(), firstRequests);
    assert.deepEqual(bench.stored(), firstVersions);
    for (const role of ['timestamp', 'snapshot', 'targets']) {
      assert.deepEqual(bench.storedBytes(role), bench.repository.file(bench.repository.nameOf(role)), role);
    }
  });

  it('requests only new files afterwards', async () => {
    using bench = trustBench();
    await bench.refresh();
    bench.asked();
    const steps: readonly [() => void, string[]][] = [
      [() => undefined, ['2.root.json', 'timestamp.json?']],
      [() => bench.repository.bumpTimestamp(), ['2.root.json', 'timestamp.json?']],
      [() => bench.repository.bumpSnapshot(), ['2.root.json', 'timestamp.json?', '2.snapshot.json']],
      [
        () => bench.repository.publish(),
        ['2.root.json', 'timestamp.json?', '3.snapshot.json', '2.targets.json'],
      ],
      [() => bench.repository.bumpRoot(), ['2.root.json', '3.root.json', 'timestamp.json?']],
    ];
    for (const [change, expected] of steps) {
      change();
      assert.equal(await bench.refresh(), 'trusted');
      assert.deepEqual(bench.asked(), expected);
    }
    assert.deepEqual(bench.stored(), { root: 2, snapshot: 3, targets: 2, timestamp: 4 });
  });

  it('reads the trusted metadata from the store after a restart', async () => {
    using bench = trustBench();
    await bench.refresh();
    bench.asked();
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.asked(), ['2.root.json', 'timestamp.json']);
  });

  it('stores bytes as received, with their white space and order of members', async () => {
    using bench = trustBench();
    for (const role of ['timestamp', 'snapshot', 'targets']) {
      const { signatures, signed } = JSON.parse(bench.repository.seal(role).toString());
      const reversed = Object.fromEntries(Object.entries(signed).reverse());
      const bytes = Buffer.from(`${JSON.stringify({ signed: reversed, signatures }, null, 3)}\n`);
      bench.repository.serve(bench.repository.nameOf(role), bytes);
    }
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.storedBytes('targets'), bench.repository.file('1.targets.json'));
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.stored(), firstVersions);
  });

  it('ignores another timestamp of the stored version, whatever it names', async () => {
    using bench = trustBench();
    await bench.refresh();
    const kept = bench.storedBytes('timestamp');
    bench.repository.alter('timestamp', (signed) => {
      signed.meta['snapshot.json'].version = 7;
      signed.note = 'same version, other content';
    });
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.storedBytes('timestamp'), kept);
    assert.deepEqual(bench.asked().slice(-2), ['2.root.json', 'timestamp.json']);
  });

  it('accepts members it does not know in every file, and in keys', async () => {
    using bench = trustBench();
    const { repository } = bench;
    const odd = {
      'x-unknown': { deep: [1, 'two', null, true], '\u{1f511}': 'beyond the BMP', '\uffff': 'before it' },
    };
    for (const role of ['timestamp', 'snapshot', 'targets', 'root'])
      Object.assign(repository.signedOf(role), odd);
    for (const key of Object.values<Loose>(repository.root.keys))
      key.keyid_hash_algorithms = ['sha256', 'md5'];
    repository.root.roles.mirrors = { keyids: [], threshold: 1 };
    repository.bumpRoot();
    repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.stored(), { root: 2, snapshot: 2, targets: 2, timestamp: 2 });
  });
});

describe('the shipped root', () => {
  const roots: readonly [string, (repository: RepositorySimulator) => Uint8Array][] = [
    ['is no metadata', () => Buffer.from('{"signed": 1}')],
    ['has no signature', ({ root }) => encodeEnvelope([], root)],
    ['is a timestamp', (repository) => repository.file('timestamp.json')],
    ['is cut short', (repository) => repository.bootstrapRoot.subarray(0, 400)],
  ];
  for (const [name, root] of roots) {
    it(`stops everything before the first request when it ${name}`, async () => {
      using bench = trustBench();
      bench.restart({ trustedRoot: root(bench.repository) });
      assert.equal(await bench.refresh(), 'ROOT_UNUSABLE');
      assert.deepEqual(bench.asked(), []);
      assert.equal(existsSync(bench.trust), false);
    });
  }
});

/** One bent file on a host that has trusted version 1 of everything; a publish offers version 2. */
interface Row {
  readonly name: string;
  bend(repository: RepositorySimulator, bench: TrustBench): void;
  readonly code: Verdict;
  /** The last request made. */
  readonly last: string;
  readonly stored: Record<string, number>;
}

const beforeTimestamp = firstVersions;
const beforeSnapshot = { ...firstVersions, timestamp: 2 };
const beforeTargets = { ...firstVersions, timestamp: 2, snapshot: 2 };

const steps = [
  { role: 'root', last: '2.root.json', stored: beforeTimestamp },
  { role: 'timestamp', last: 'timestamp.json?', stored: beforeTimestamp },
  { role: 'snapshot', last: '2.snapshot.json', stored: beforeSnapshot },
  { role: 'targets', last: '2.targets.json', stored: beforeTargets },
] as const;

const unsigned = steps.map(
  ({ role, last, stored }): Row => ({
    name: `${role} that nobody signed`,
    bend: (repository) => {
      repository.serve(repository.nameOf(role), encodeEnvelope([], repository.signedOf(role)));
    },
    code: 'SIGNATURE_THRESHOLD',
    last,
    stored,
  }),
);

const strange = steps.map(
  ({ role, last, stored }): Row => ({
    name: `${role} that only a stranger signed`,
    bend: (repository) => {
      repository.signers.set(role, [makeKey()]);
      repository.alter(role, () => undefined);
    },
    code: 'SIGNATURE_WRONG_KEY',
    last,
    stored,
  }),
);

const otherType = steps.map(
  ({ role, last, stored }): Row => ({
    name: `${role} of another type, signed by the right keys`,
    bend: (repository) =>
      repository.alter(role, (signed) => {
        signed._type = role === 'snapshot' ? 'timestamp' : 'snapshot';
      }),
    code: 'METADATA_MALFORMED',
    last,
    stored,
  }),
);

const absent = steps.slice(1).map(
  ({ role, last, stored }): Row => ({
    name: `no ${role}`,
    bend: (repository) => repository.withhold(repository.nameOf(role)),
    code: 'METADATA_MISSING',
    last,
    stored,
  }),
);

const otherVersion: Row[] = [
  { role: 'root', version: 3, code: 'METADATA_MIX' },
  { role: 'root', version: 1, code: 'METADATA_ROLLBACK' },
  { role: 'snapshot', version: 3, code: 'METADATA_MIX' },
  { role: 'snapshot', version: 1, code: 'METADATA_MIX' },
  { role: 'targets', version: 3, code: 'METADATA_MIX' },
  { role: 'targets', version: 1, code: 'METADATA_MIX' },
].map(({ role, version, code }) => {
  const step = steps.find((one) => one.role === role) ?? steps[0];
  return {
    name: `${role} of version ${version} under the name of version 2`,
    bend: (repository: RepositorySimulator) => repository.alter(role, (signed) => (signed.version = version)),
    code: code as Verdict,
    last: step.last,
    stored: step.stored,
  };
});

describe('a refresh refuses, stops there and keeps what it had', () => {
  for (const row of [...unsigned, ...strange, ...otherType, ...absent, ...otherVersion]) {
    it(row.name, async () => {
      using bench = trustBench();
      await bench.refresh();
      if (row.last === '2.root.json') bench.repository.bumpRoot();
      bench.repository.publish();
      row.bend(bench.repository, bench);
      assert.equal(await bench.refresh(), row.code);
      assert.equal(bench.asked().at(-1), row.last);
      assert.deepEqual(bench.stored(), row.stored);
    });
  }
});

describe('digests of snapshot and targets in the file that names them', () => {
  it('hold for a publish that is as it was written, of both kinds', async () => {
    for (const digests of [['sha256'], ['sha512'], ['sha256', 'sha512'], ['sha256', 'blake9']]) {
      using bench = trustBench();
      Object.assign(bench.repository, { pinned: true, digests });
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'trusted', digests.join());
    }
  });

  const changes: readonly [string, Verdict, (signed: Loose) => void][] = [
    ['of other bytes', 'METADATA_MIX', (signed) => (signed.spec_version = '1.0.33')],
    ['that is shorter', 'METADATA_MIX', (signed) => (signed.spec_version = '1.0')],
    // The signed length is the bound of the download: what is longer is never read to its end.
    ['that is longer', 'DOWNLOAD_TOO_LARGE', (signed) => (signed.note = 'longer')],
  ];
  for (const role of ['snapshot', 'targets']) {
    for (const [name, code, change] of changes) {
      it(`refuse a well-signed ${role} of the same version ${name}`, async () => {
        using bench = trustBench();
        bench.repository.pinned = true;
        bench.repository.publish();
        bench.repository.alter(role, change);
        assert.equal(await bench.refresh(), code);
        assert.equal(Object.hasOwn(bench.stored(), role), false);
      });
    }

    it(`refuse a ${role} with a digest of an unknown algorithm`, async () => {
      using bench = trustBench();
      bench.repository.publish();
      const { snapshot, timestamp } = bench.repository;
      const hashes = { blake9: '00'.repeat(32) };
      if (role === 'targets') snapshot.meta['targets.json'].hashes = hashes;
      bench.repository.writeSnapshot();
      if (role === 'snapshot') timestamp.meta['snapshot.json'].hashes = hashes;
      bench.repository.writeTimestamp();
      assert.equal(await bench.refresh(), 'METADATA_MIX');
      assert.equal(Object.hasOwn(bench.stored(), role), false);
    });
  }
});

describe('the time of a refresh', () => {
  it('is read once from the host, so that a slow server does not change it', async () => {
    using bench = trustBench({
      source: (source) => ({
        ...source,
        fetch: async (path, options) => {
          const verdict = await source.fetch(path, options);
          await bench.clock.advance(3 * dayMs);
          return verdict;
        },
      }),
    });
    // Twelve days pass while four files arrive; the timestamp is valid for seven.
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(await bench.refresh(), 'METADATA_EXPIRED');
  });
});
