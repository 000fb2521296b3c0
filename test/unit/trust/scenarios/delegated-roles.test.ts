// A delegated role is verified like the targets, with the keys of the delegator in the current search. Its failure affects only the
// bundles that need it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keyId } from '../../../../src/core/tuf/signature-schemes.js';
import {
  type Loose,
  makeKey,
  type RepositorySimulator,
} from '../../../kit/repository/repository-simulator.js';
import { dayMs, encodeEnvelope, isoTime } from '../../../kit/repository/simulated-metadata.js';
import { addTeamRelease, benchWithTeams } from '../../../kit/trust/bench-with-teams.js';
import { startMs, type TrustBench, trustBench, type Verdict } from '../../../kit/trust/trust-bench.js';

interface Row {
  readonly name: string;
  bend(repository: RepositorySimulator): void;
  readonly code: Verdict;
  /** `no` where the role is not even asked for. */
  readonly asked?: 'no';
}

const rows: readonly Row[] = [
  {
    name: 'without a signature',
    bend: (repository) => repository.serve('1.dns.json', encodeEnvelope([], repository.signedOf('dns'))),
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'signed by a stranger',
    bend: (repository) => {
      repository.signers.set('dns', [makeKey()]);
      repository.publish();
    },
    code: 'SIGNATURE_WRONG_KEY',
  },
  {
    name: 'signed by another team',
    bend: (repository) => {
      repository.signers.set('dns', repository.signersOf('web'));
      repository.publish();
    },
    code: 'SIGNATURE_WRONG_KEY',
  },
  {
    name: 'signed by the key of the top-level targets, which it is not listed with',
    bend: (repository) => {
      repository.signers.set('dns', repository.keys.targets);
      repository.publish();
    },
    code: 'SIGNATURE_WRONG_KEY',
  },
  {
    name: 'the file of another team, well signed',
    bend: (repository) => repository.serve('1.dns.json', repository.file('1.web.json')),
    code: 'SIGNATURE_WRONG_KEY',
  },
  {
    name: 'below its threshold',
    bend: (repository) => {
      repository.targets.delegations.roles[0].threshold = 2;
      repository.publish();
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'one public key under two ids for two signers',
    bend: (repository) => {
      const [key] = repository.signersOf('dns');
      if (key === undefined) return assert.fail('no key');
      const twin: Loose = { ...key.key, 'x-note': 'twin' };
      const { delegations } = repository.targets;
      delegations.keys[keyId(twin)] = twin;
      Object.assign(delegations.roles[0], { keyids: [key.id, keyId(twin)], threshold: 2 });
      repository.signers.set('dns', [key, { ...key, key: twin, id: keyId(twin) }]);
      repository.publish();
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a key with an id that is not its digest',
    bend: (repository) => {
      const [key] = repository.signersOf('dns');
      if (key === undefined) return assert.fail('no key');
      const id = 'cd'.repeat(32);
      const { delegations } = repository.targets;
      delegations.keys[id] = key.key;
      delegations.roles[0].keyids = [id];
      repository.signers.set('dns', [{ ...key, id }]);
      repository.publish();
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'signed twice by one key',
    bend: (repository) => {
      repository.signers.set('dns', [...repository.signersOf('dns'), ...repository.signersOf('dns')]);
      repository.publish();
    },
    code: 'SIGNATURE_DUPLICATE',
  },
  {
    name: 'expired',
    bend: (repository) => {
      repository.signedOf('dns').expires = isoTime(startMs - dayMs);
      repository.publish();
    },
    code: 'METADATA_EXPIRED',
  },
  {
    name: 'of a version other than the snapshot names',
    bend: (repository) => repository.alter('dns', (signed) => (signed.version = 2)),
    code: 'METADATA_MIX',
  },
  {
    name: 'of other bytes than the snapshot names',
    bend: (repository) => {
      repository.pinned = true;
      repository.publish();
      repository.alter('dns', (signed) => (signed.spec_version = '1.0.33'));
    },
    code: 'METADATA_MIX',
  },
  {
    name: 'longer than the length in the snapshot',
    bend: (repository) => {
      repository.pinned = true;
      repository.publish();
      repository.alter('dns', (signed) => (signed.note = 'longer'));
    },
    code: 'DOWNLOAD_TOO_LARGE',
  },
  {
    name: 'larger than any role may be',
    bend: (repository) => repository.serve('1.dns.json', Buffer.alloc(5_000_001, ' ')),
    code: 'DOWNLOAD_TOO_LARGE',
  },
  {
    name: 'of another type',
    bend: (repository) => repository.alter('dns', (signed) => (signed._type = 'dns')),
    code: 'METADATA_MALFORMED',
  },
  {
    name: 'of another specification',
    bend: (repository) => repository.alter('dns', (signed) => (signed.spec_version = '2.0.0')),
    code: 'METADATA_MALFORMED',
  },
  {
    name: 'withheld',
    bend: (repository) => repository.withhold('1.dns.json'),
    code: 'METADATA_MISSING',
  },
  {
    name: 'not in the snapshot',
    bend: (repository) => {
      delete repository.snapshot.meta['dns.json'];
      repository.bumpSnapshot();
    },
    code: 'METADATA_MIX',
    asked: 'no',
  },
];

describe('a delegated role is refused', () => {
  for (const { name, bend, code, asked } of rows) {
    it(`${name}: ${code}, and the other team is not affected`, async () => {
      using bench = benchWithTeams();
      bend(bench.repository);
      assert.equal(await bench.refresh(), 'trusted');
      bench.asked();
      assert.equal(await bench.find('dns'), code);
      assert.deepEqual(bench.asked(), asked === 'no' ? [] : ['1.dns.json']);
      assert.equal(Object.hasOwn(bench.stored(), 'dns'), false);
      assert.equal(await bench.find('web'), 'trusted');
      assert.equal(bench.stored()['web'], 1);
    });
  }
});

describe('a delegated role that was trusted', () => {
  it('expires like any other: its own bundles freeze, and a newer file ends that', async () => {
    using bench = benchWithTeams();
    const { repository, clock } = bench;
    repository.signedOf('dns').expires = isoTime(startMs + 2 * dayMs);
    repository.publish();
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'trusted');
    await clock.advance(3 * dayMs);
    for (const restarted of [false, true]) {
      if (restarted) bench.restart();
      assert.equal(await bench.refresh(), 'trusted');
      assert.equal(await bench.find('dns'), 'METADATA_EXPIRED');
      assert.equal(await bench.find('web'), 'trusted');
    }
    Object.assign(repository.signedOf('dns'), { version: 2, expires: isoTime(startMs + 9 * dayMs) });
    repository.publish();
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'trusted');
  });

  it('is refused after the delegator removed its key or the delegation', async () => {
    using bench = benchWithTeams();
    const { repository } = bench;
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'trusted');
    const [, web] = repository.targets.delegations.roles;
    const stranger = makeKey();
    repository.targets.delegations.keys[stranger.id] = stranger.key;
    repository.targets.delegations.roles[0].keyids = [stranger.id];
    repository.publish();
    for (const restarted of [false, true]) {
      if (restarted) bench.restart();
      await bench.refresh();
      assert.equal(await bench.find('dns'), 'SIGNATURE_WRONG_KEY');
    }
    repository.targets.delegations.roles = [web];
    repository.publish();
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'unknown');
  });

  it('is not overwritten by a newer one that is refused', async () => {
    using bench = benchWithTeams();
    await bench.refresh();
    await bench.find('dns');
    const before = bench.storedBytes('dns');
    bench.repository.signedOf('dns').version = 2;
    bench.repository.signers.set('dns', [makeKey()]);
    bench.repository.publish();
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'SIGNATURE_WRONG_KEY');
    assert.deepEqual(bench.storedBytes('dns'), before);
  });
});

describe('one role name below two delegators', () => {
  /** `release` below a and b, each with keys of its own for it; what is served is signed for a alone. */
  function diamond(): TrustBench {
    const bench = trustBench();
    const { repository } = bench;
    for (const parent of ['a', 'b']) repository.delegate('targets', { name: parent, paths: [`${parent}/*`] });
    repository.delegate('a', { name: 'release', paths: ['a/*'], keys: [makeKey()] });
    repository.delegate('b', { name: 'release', paths: ['b/*'], keys: [makeKey()] });
    for (const bundle of ['a', 'b']) addTeamRelease(repository, bundle, 'release');
    repository.publish();
    return bench;
  }

  it('is trusted only by the delegator that named its keys, in any order of requests', async () => {
    for (const order of [
      ['a', 'b', 'a'],
      ['b', 'a', 'b'],
    ]) {
      using bench = diamond();
      await bench.refresh();
      for (const bundle of order) {
        const expected = bundle === 'a' ? 'trusted' : 'SIGNATURE_WRONG_KEY';
        assert.equal(await bench.find(bundle), expected, order.join());
      }
      assert.equal(bench.stored()['release'], 1);
    }
  });

  it('is not trusted by the other delegator after a restart either', async () => {
    using bench = diamond();
    await bench.refresh();
    assert.equal(await bench.find('a'), 'trusted');
    bench.restart();
    await bench.refresh();
    assert.equal(await bench.find('b'), 'SIGNATURE_WRONG_KEY');
    assert.equal(bench.client.knownTarget('b', 'stable'), undefined);
    assert.equal(bench.client.knownTarget('a', 'stable')?.vouchedBy.role, 'release');
  });
});
