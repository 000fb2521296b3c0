// What counts as a signer: types of keys, thresholds, twins, and signatures that are none.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keyId } from '../../../../src/core/tuf/signature-schemes.js';
import type { MetadataSignature } from '../../../../src/core/tuf/tuf-metadata.js';
import type { KeyType } from '../../../kit/repository/key-pairs.js';
import {
  type Loose,
  makeKey,
  type RepositorySimulator,
  signWith,
} from '../../../kit/repository/repository-simulator.js';
import { makeKeys, type SimulatedKey } from '../../../kit/repository/simulated-keys.js';
import { trustBench, type Verdict } from '../../../kit/trust/trust-bench.js';

describe('keys of every type', () => {
  for (const type of ['ed25519', 'ecdsa', 'rsa'] satisfies KeyType[]) {
    it(`${type} signs every role, and one wrong bit makes the signature invalid`, async () => {
      using bench = trustBench();
      const { repository } = bench;
      const [rootKey, onlineKey] = makeKeys(2, type);
      if (rootKey === undefined || onlineKey === undefined) return assert.fail('no keys');
      repository.setKeys('root', [rootKey], 1);
      for (const role of ['timestamp', 'snapshot', 'targets'] as const)
        repository.setKeys(role, [onlineKey], 1);
      repository.writeRoot();
      repository.writeTargets();
      bench.restart({ trustedRoot: repository.bootstrapRoot });
      assert.equal(await bench.refresh(), 'trusted');
      repository.bumpTimestamp();
      const { signatures, signed } = JSON.parse(repository.file('timestamp.json').toString());
      signatures[0].sig = flipBit(signatures[0].sig);
      repository.serve('timestamp.json', Buffer.from(JSON.stringify({ signatures, signed })));
      assert.equal(await bench.refresh(), 'SIGNATURE_THRESHOLD');
      assert.equal(bench.stored()['timestamp'], 1);
    });
  }

  it('count together, whatever their types', async () => {
    using bench = trustBench();
    const keys = [makeKey('ed25519'), makeKey('ecdsa'), makeKey('rsa')];
    bench.repository.setKeys('targets', keys, 3);
    bench.repository.bumpRoot();
    bench.repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
  });

  it('count for nothing where type and scheme do not belong together, or are not known', async () => {
    const key = makeKey();
    for (const change of [
      { scheme: 'ecdsa-sha2-nistp256' },
      { keytype: 'rsa' },
      { keytype: 'sphincs', scheme: 'sphincs-shake-128s' },
      { keyval: { public: '' } },
      { keyval: { public: 'é'.repeat(64) } },
    ]) {
      using bench = trustBench();
      const bent = { ...key.key, ...change };
      bench.repository.setKeys('timestamp', [{ ...key, key: bent, id: keyId(bent) }], 1);
      bench.repository.bumpRoot();
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'SIGNATURE_THRESHOLD', JSON.stringify(change));
    }
  });
});

/** One arrangement of keys and signatures of the snapshot, in root 2 and publish 2. */
interface Row {
  readonly name: string;
  arrange(repository: RepositorySimulator, keys: readonly [SimulatedKey, SimulatedKey]): void;
  readonly code: Verdict;
}

const signature = (repository: RepositorySimulator, key: SimulatedKey): MetadataSignature => {
  const [one] = signWith([key], repository.snapshot);
  return one ?? assert.fail('not signed');
};

const rows: readonly Row[] = [
  {
    name: 'one signature of two that are asked for',
    arrange: (repository, keys) => {
      repository.setKeys('snapshot', keys, 2);
      repository.signers.set('snapshot', [keys[0]]);
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a threshold above the number of keys',
    arrange: (repository, keys) => repository.setKeys('snapshot', keys, 3),
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a key id that the role lists twice counts once',
    arrange: (repository, [key]) => repository.setKeys('snapshot', [key, key], 2),
    code: 'SIGNATURE_DUPLICATE',
  },
  {
    name: 'a key id that the role lists twice, and that signs once, counts once',
    arrange: (repository, [key]) => {
      repository.setKeys('snapshot', [key, key], 2);
      repository.signers.set('snapshot', [key]);
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a key id that the role lists twice does no harm by itself',
    arrange: (repository, [key]) => {
      repository.setKeys('snapshot', [key, key], 1);
      repository.signers.set('snapshot', [key]);
    },
    code: 'trusted',
  },
  {
    name: 'a key id that signs twice, even where the threshold is reached without it',
    arrange: (repository, keys) => {
      repository.setKeys('snapshot', keys, 1);
      repository.signers.set('snapshot', [keys[0], keys[1], keys[0]]);
    },
    code: 'SIGNATURE_DUPLICATE',
  },
  {
    name: 'the same public key under two key ids',
    arrange: (repository, [key]) => repository.setKeys('snapshot', [key, twinOf(key)], 2),
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'the same public key under two key ids, and a second key: two signers',
    arrange: (repository, [key, other]) => repository.setKeys('snapshot', [key, twinOf(key), other], 2),
    code: 'trusted',
  },
  {
    name: 'a key under an id that is not its digest',
    arrange: (repository, [key]) => repository.setKeys('snapshot', [{ ...key, id: 'ab'.repeat(32) }], 1),
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'two keys under the ids of one another',
    arrange: (repository, [a, b]) =>
      repository.setKeys(
        'snapshot',
        [
          { ...a, id: b.id },
          { ...b, id: a.id },
        ],
        1,
      ),
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a listed key that the root does not have',
    arrange: (repository, [key]) => {
      repository.setKeys('snapshot', [key], 1);
      delete repository.root.keys[key.id];
    },
    code: 'SIGNATURE_THRESHOLD',
  },
  {
    name: 'a key of the root that is another role’s',
    arrange: (repository) => {
      repository.signers.set('snapshot', [...repository.keys.timestamp, ...repository.keys.targets]);
    },
    code: 'SIGNATURE_WRONG_KEY',
  },
  ...[
    ['empty', ''],
    ['of no hex digits', 'zz'],
    ['of an odd number of digits', 'abc'],
    ['of another key', 'ab'.repeat(64)],
    ['as long as a book', 'ab'.repeat(100_000)],
  ].map(
    ([name, sig]): Row => ({
      name: `a further signature that is ${name}`,
      arrange: (repository, keys) => {
        repository.setKeys('snapshot', keys, 1);
        repository.signers.set('snapshot', [keys[0]]);
        repository.extraSignatures.set('snapshot', [{ keyid: keys[1].id, sig: sig ?? '' }]);
      },
      code: 'trusted',
    }),
  ),
  {
    name: 'a further signature under an odd key id',
    arrange: (repository) => {
      const sig = 'ab'.repeat(64);
      repository.extraSignatures.set(
        'snapshot',
        ['', '__proto__', 'constructor', 'toString', '\u{1f511}'].map((keyid) => ({ keyid, sig })),
      );
    },
    code: 'trusted',
  },
  {
    name: 'key ids that are names of every object',
    arrange: (repository) => {
      const names = ['__proto__', 'constructor', 'toString'];
      repository.root.roles.snapshot = { keyids: names, threshold: 1 };
      repository.extraSignatures.set(
        'snapshot',
        names.map((keyid) => ({ keyid, sig: 'ab'.repeat(64) })),
      );
    },
    code: 'SIGNATURE_THRESHOLD',
  },
];

describe('signers of a role', () => {
  const keys = [makeKey(), makeKey()] as const;
  for (const { name, arrange, code } of rows) {
    it(`${name}: ${code}`, async () => {
      using bench = trustBench();
      await bench.refresh();
      arrange(bench.repository, keys);
      bench.repository.bumpRoot();
      bench.repository.publish();
      assert.equal(await bench.refresh(), code);
      assert.equal(bench.stored()['snapshot'], code === 'trusted' ? 2 : 1);
    });
  }

  it('takes a signature over the bytes as they stand, not over some other file of the role', async () => {
    using bench = trustBench();
    const old = signature(bench.repository, bench.repository.keys.snapshot[0] ?? makeKey());
    bench.repository.publish();
    const { signed } = JSON.parse(bench.repository.file('2.snapshot.json').toString());
    bench.repository.serve('2.snapshot.json', Buffer.from(JSON.stringify({ signatures: [old], signed })));
    assert.equal(await bench.refresh(), 'SIGNATURE_THRESHOLD');
  });
});

/** The same public key, written differently, so that it has another id. */
function twinOf(key: SimulatedKey): SimulatedKey {
  const twin: Loose = { ...key.key, 'x-note': 'the same key again' };
  return { ...key, key: twin, id: keyId(twin) };
}

function flipBit(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  const at = bytes.length - 1;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString('hex');
}
