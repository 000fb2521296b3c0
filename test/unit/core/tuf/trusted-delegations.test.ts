import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../../../src/core/error-codes.js';
import type { WantedRole } from '../../../../src/core/tuf/target-search.js';
import {
  delegatedMetaOf,
  keptDelegated,
  maxHeldBytes,
  requireFreshDelegated,
  trustDelegated,
  withDelegated,
} from '../../../../src/core/tuf/trusted-delegations.js';
import {
  settleRoot,
  type TrustedSet,
  trustFirstRoot,
  trustSnapshot,
  trustTargets,
  trustTimestamp,
} from '../../../../src/core/tuf/trusted-set.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';
import { makeKeys } from '../../../kit/repository/simulated-keys.js';
import { dayMs, isoTime } from '../../../kit/repository/simulated-metadata.js';

const nowMs = Date.UTC(2026, 10, 1);

/** A trusted set whose targets delegate to `team` (two of three keys), and what the search wants of it. */
function given(change: (repository: RepositorySimulator) => unknown = () => undefined) {
  const repository = new RepositorySimulator({ nowMs });
  repository.pinned = true;
  const keys = makeKeys(3);
  repository.delegate('targets', { name: 'team', keys, threshold: 2 });
  change(repository);
  repository.writeTargets();
  let set: TrustedSet = trustFirstRoot(repository.bootstrapRoot);
  set = trustTimestamp(set, repository.file('timestamp.json'), nowMs);
  set = trustSnapshot(set, repository.file('1.snapshot.json'), nowMs);
  set = trustTargets(set, repository.file('1.targets.json'), nowMs);
  const targets = set.targets!;
  const wanted: WantedRole = { delegator: targets, role: targets.signed.delegations!.roles[0]! };
  const bytes = repository.file('1.team.json');
  const judge = (one: Uint8Array = bytes, atMs = nowMs) =>
    trustDelegated(set, wanted.delegator, wanted.role, one, atMs);
  return { repository, keys, set, wanted, bytes, judge };
}

describe('withDelegated', () => {
  it('holds at most the bound, and always the last file', () => {
    const { set, judge } = given();
    const file = (name: string, length: number) => ({ ...judge(), name, bytes: new Uint8Array(length) });
    const names = (held: TrustedSet) => [...(held.delegated?.keys() ?? [])];
    const half = withDelegated(set, file('a', maxHeldBytes / 2));
    const whole = withDelegated(half, file('b', maxHeldBytes / 2));
    assert.deepEqual(names(whole), ['a', 'b']);
    assert.deepEqual(names(withDelegated(whole, file('a', maxHeldBytes / 2))), ['a', 'b']);
    assert.deepEqual(names(withDelegated(whole, file('c', 1))), ['c']);
    assert.deepEqual(names(withDelegated(half, file('d', 10 * maxHeldBytes))), ['d']);
  });
});

describe('trustDelegated', () => {
  it('accepts a file that the snapshot lists and keys of the delegator sign, by the name of the role', () => {
    const { set, judge, bytes } = given();
    const file = judge();
    assert.deepEqual([file.name, file.role, file.signed.version], ['team', 'targets', 1]);
    assert.equal(file.bytes, bytes);
    assert.equal(set.delegated, undefined, 'a set never changes');
    assert.equal(withDelegated(set, file).delegated?.get('team'), file);
  });

  it('names the role that has to sign in the hint for another key, and not the root of the host', () => {
    const { judge } = given((r) => r.signers.set('team', makeKeys(2)));
    assert.throws(judge, {
      code: 'SIGNATURE_WRONG_KEY',
      hint: /^team has not signed with its current keys yet/,
    });
  });

  const refused: [string, ErrorCode, (repository: RepositorySimulator) => unknown][] = [
    [
      'a signer too few',
      'SIGNATURE_THRESHOLD',
      (r) => r.signers.set('team', r.delegated.get('team')!.keys.slice(0, 1)),
    ],
    ['no signature', 'SIGNATURE_THRESHOLD', (r) => r.signers.set('team', [])],
    ['strangers', 'SIGNATURE_WRONG_KEY', (r) => r.signers.set('team', makeKeys(2))],
    [
      'the keys of the top-level targets',
      'SIGNATURE_WRONG_KEY',
      (r) => r.signers.set('team', r.keys.targets),
    ],
    [
      'one signer twice',
      'SIGNATURE_DUPLICATE',
      (r) => {
        const [key] = r.delegated.get('team')!.keys;
        r.signers.set('team', [key!, key!]);
      },
    ],
    [
      'an end in the past',
      'METADATA_EXPIRED',
      (r) => Object.assign(r.signedOf('team'), { expires: isoTime(nowMs) }),
    ],
    ['another type', 'METADATA_MALFORMED', (r) => Object.assign(r.signedOf('team'), { _type: 'snapshot' })],
    [
      'targets that are none',
      'METADATA_MALFORMED',
      (r) => Object.assign(r.signedOf('team'), { targets: [] }),
    ],
  ];
  for (const [name, code, change] of refused) {
    it(`refuses ${name}`, () => {
      const it = given((repository) => change(repository));
      const { facts } = throwsCode(code, () => it.judge());
      assert.equal(facts['role'], 'team');
    });
  }

  it('checks digest and length before it parses, and the version after the signatures', () => {
    const pinned = given();
    throwsCode('METADATA_MIX', () => pinned.judge(Buffer.from('{')));
    throwsCode('METADATA_MIX', () => pinned.judge(Buffer.concat([pinned.bytes, Buffer.from('\n')])));
    const named = given((repository) => {
      repository.pinned = false;
    });
    const { repository } = named;
    repository.alter('team', (signed) => Object.assign(signed, { version: 2 }));
    const { facts } = throwsCode('METADATA_MIX', () => named.judge(repository.file('1.team.json')));
    assert.deepEqual([facts['expected'], facts['actual']], [1, 2]);
    const forged = repository.file('1.team.json').toString().replace('"version":2', '"version":1');
    throwsCode('SIGNATURE_THRESHOLD', () => named.judge(Buffer.from(forged)));
  });

  it('checks expiry by the clock floor if the clock is behind it', () => {
    const { judge } = given((repository) => {
      repository.signedOf('team').expires = isoTime(nowMs - dayMs / 2);
      repository.timestamp.writ = { signedAt: isoTime(nowMs) };
    });
    throwsCode('METADATA_EXPIRED', () => judge(undefined, nowMs - 10 * dayMs));
  });
});

describe('delegatedMetaOf', () => {
  it('rejects a role that the snapshot does not list by its exact name', () => {
    const { set, wanted } = given();
    assert.equal(delegatedMetaOf(set, wanted.role).version, 1);
    for (const name of ['toString', 'Team', '__proto__', 'targets.json/../team']) {
      throwsCode('METADATA_MIX', () => delegatedMetaOf(set, { ...wanted.role, name }));
    }
  });

  it('names the command of the team if the team has not signed', () => {
    const { set, wanted } = given();
    const { hint } = throwsCode('METADATA_MIX', () =>
      delegatedMetaOf(set, { ...wanted.role, name: 'dns-team' }),
    );
    assert.match(hint, /`writ sign --role dns-team`, then `writ refresh`/);
  });
});

describe('keptDelegated', () => {
  const never = (): undefined => undefined;

  it('finds the file in the set or in the store, whether or not it has expired', () => {
    const { set, wanted, bytes, judge } = given();
    assert.equal(keptDelegated(set, wanted, never), undefined);
    assert.equal(keptDelegated(set, wanted, () => bytes)?.name, 'team');
    const file = judge();
    const known = withDelegated(set, file);
    assert.equal(
      keptDelegated(known, wanted, () => assert.fail('the store is not asked')),
      file,
    );
    assert.equal(settleRoot(known).delegated?.get('team'), file, 'the set outlives a root');
    requireFreshDelegated(set, file, nowMs);
    throwsCode('METADATA_EXPIRED', () => requireFreshDelegated(set, file, nowMs + 366 * dayMs));
  });

  it('ignores a file that is damaged, of another version, or of another delegator', () => {
    const { set, wanted, bytes, repository, judge } = given();
    const known = withDelegated(set, judge());
    const strangers = { ...wanted.role, keyids: ['00'], threshold: 1 };
    assert.equal(
      keptDelegated(known, { ...wanted, role: strangers }, () => bytes),
      undefined,
    );
    const stricter = { ...wanted.role, threshold: 4 };
    assert.equal(
      keptDelegated(known, { ...wanted, role: stricter }, () => bytes),
      undefined,
    );
    for (const damaged of [
      Buffer.alloc(0),
      Buffer.from('{'),
      bytes.subarray(1),
      repository.file('1.targets.json'),
    ]) {
      assert.equal(
        keptDelegated(set, wanted, () => damaged),
        undefined,
      );
    }
  });
});
