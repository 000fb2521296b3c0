// A next root: what a change makes of the one before, what is a mistake, and what must be said on purpose.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { canonicalJson } from '../../../../src/core/text/canonical-json.js';
import { keyId } from '../../../../src/core/tuf/signature-schemes.js';
import { parseEnvelope, type RootSigned } from '../../../../src/core/tuf/tuf-metadata.js';
import { metadataKey } from '../../../../src/publisher/keys/signer.js';
import { signersOf } from '../../../../src/publisher/keys/signer-names.js';
import { changeRoot, noChange, type RootChange } from '../../../../src/publisher/root/root-change.js';
import { compareRoots } from '../../../../src/publisher/root/root-difference.js';
import { judgeRoot, requireAllowedChange } from '../../../../src/publisher/root/root-rules.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { newKey } from '../../../kit/repository/ceremony.js';
import { type SampleRepository, sampleRepository } from '../../../kit/repository/sample-repository.js';

const nowMs = Date.UTC(2027, 0, 1);

function rootOf({ rootPath }: SampleRepository): RootSigned {
  return parseEnvelope(readFileSync(rootPath), 'root').signed;
}

function startingPoint(dir: TempDir): RootSigned {
  return rootOf(sampleRepository(dir));
}

function change(base: RootSigned, given: Partial<RootChange>): RootSigned {
  return changeRoot(base, { ...noChange, ...given }, nowMs);
}

const root = 'root' as const;

describe('a change of the root', () => {
  it('of nothing is the next version with a new validity period', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const next = change(base, {});
    assert.equal(next.version, 2);
    assert.equal(next.expires, '2028-01-01T00:00:00Z');
    assert.equal(canonicalJson([next.keys, next.roles]), canonicalJson([base.keys, base.roles]));
    assert.deepEqual(judgeRoot(base, next), { mistakes: [], dangers: [] });
  });

  it('replaces one person by another, by name, and forgets the key that left', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const carol = newKey(dir, 'carol');
    const next = change(base, {
      remove: [{ role: root, which: 'root-3' }],
      add: [{ role: root, key: carol }],
    });
    const [, , gone = ''] = base.roles.root.keyids;
    assert.deepEqual(next.roles.root.keyids, [...base.roles.root.keyids.slice(0, 2), carol.keyId]);
    assert.ok(!(gone in next.keys) && !signersOf(next).has(gone));
    assert.equal(signersOf(next).get(carol.keyId), 'carol');
    assert.deepEqual(judgeRoot(base, next), { mistakes: [], dangers: [] });
  });

  it('removes a key by its id, replaces the key of a role, and changes validity periods and thresholds', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const [first = ''] = base.roles.root.keyids;
    const online = newKey(dir, 'timestamp-2');
    const next = change(base, {
      remove: [{ role: root, which: first.slice(0, 8).toUpperCase() }],
      replace: [{ role: 'timestamp', keys: [online] }],
      thresholds: { root: 1 },
      validity: { timestamp: 86_400_000 },
    });
    assert.ok(!next.roles.root.keyids.includes(first));
    assert.deepEqual(next.roles.timestamp.keyids, [online.keyId]);
    const { lives, roles } = compareRoots(base, next);
    assert.deepEqual(lives, [{ role: 'timestamp', beforeMs: 7 * 86_400_000, afterMs: 86_400_000 }]);
    assert.deepEqual(roles.find(({ role }) => role === root)?.threshold, { before: 2, after: 1 });
  });

  it('refuses to remove an unknown key, and to add a known one', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const carol = newKey(dir, 'carol');
    for (const which of ['nobody', '', '0000', base.roles.targets.keyids[0] ?? '']) {
      throwsCode('ROOT_CHANGE_REFUSED', () => change(base, { remove: [{ role: root, which }] }));
    }
    const add = [carol, carol].map((key) => ({ role: root, key }));
    throwsCode('ROOT_CHANGE_REFUSED', () => change(base, { add }));
  });

  it('keeps the members of another tool in the root, and changes no key id', () => {
    using dir = tempDir();
    const base = { ...startingPoint(dir), 'x-note': 'kept' };
    const next = change(base, {}) as RootSigned & { 'x-note': string };
    assert.equal(next['x-note'], 'kept');
    assert.deepEqual(judgeRoot(base, next).mistakes, []);
    const changed = { ...next, 'x-note': 'changed, and not shown to signers' };
    assert.match(
      judgeRoot(base, changed).mistakes.join(),
      /^it has a member that is not shown to signers, x-note$/,
    );
  });
});

type Bend = (next: RootSigned, keys: { readonly online: string; readonly root: string }) => object;

const mistakes: Readonly<Record<string, Bend>> = {
  'a threshold above the keys': (next) => ({ roles: withRole(next, root, { threshold: 4 }) }),
  'no key in a role': (next) => ({ roles: withRole(next, 'targets', { keyids: [] }) }),
  'a key that is not listed': (next) => ({ roles: withRole(next, root, { keyids: ['ab'.repeat(32)] }) }),
  'one key for online and offline': (next, { online }) => ({
    roles: withRole(next, root, { keyids: [...next.roles.root.keyids, online] }),
  }),
  'one key for root and targets': (next, keys) => ({
    roles: withRole(next, 'targets', { keyids: [keys.root] }),
  }),
  'a key under an id of its own making': (next) => {
    const [first = ''] = next.roles.root.keyids;
    const key = next.keys[first];
    const keyids = ['cd'.repeat(32), ...next.roles.root.keyids];
    return { keys: { ...next.keys, ['cd'.repeat(32)]: key }, roles: withRole(next, root, { keyids }) };
  },
  'the same public key twice': (next) => {
    const [first = ''] = next.roles.root.keyids;
    const key = { ...next.keys[first], note: 'another id' } as unknown as ReturnType<typeof metadataKey>;
    const id = keyId(key);
    return {
      keys: { ...next.keys, [id]: key },
      roles: withRole(next, root, { keyids: [...next.roles.root.keyids, id] }),
    };
  },
  'a key whose signatures never count': (next) => {
    const key = metadataKey('00');
    const keyids = [...next.roles.root.keyids, keyId(key)];
    return { keys: { ...next.keys, [keyId(key)]: key }, roles: withRole(next, root, { keyids }) };
  },
  'a key of no role': (next) => ({
    keys: { ...next.keys, [keyId(metadataKey('ab'.repeat(32)))]: metadataKey('ab'.repeat(32)) },
  }),
  'a version left out': (next) => ({ version: next.version + 1 }),
  'the same version again': (next) => ({ version: next.version - 1 }),
  'no consistent snapshots any more': () => ({ consistent_snapshot: false }),
  'a member that is not shown': () => ({ 'x-hidden': 'nobody sees this' }),
  'a member of ours that is not shown': (next) => ({
    writ: { ...(next as { writ?: object }).writ, hidden: 1 },
  }),
  'a role that is not shown': (next) => ({ roles: { ...next.roles, mirrors: { keyids: [], threshold: 1 } } }),
  'one name for two keys': (next) => {
    const signers = Object.fromEntries(next.roles.root.keyids.map((id) => [id, 'anna']));
    return { writ: { ...(next as { writ?: object }).writ, signers } };
  },
};

function withRole(next: RootSigned, role: keyof RootSigned['roles'], given: object): object {
  return { ...next.roles, [role]: { ...next.roles[role], ...given } };
}

describe('a mistake in a next root', () => {
  for (const [name, bend] of Object.entries(mistakes)) {
    it(`is refused with and without a confirmation: ${name}`, () => {
      using dir = tempDir();
      const base = startingPoint(dir);
      const next = change(base, {});
      const keys = { online: next.roles.timestamp.keyids[0] ?? '', root: next.roles.root.keyids[0] ?? '' };
      const bent = { ...next, ...bend(next, keys) } as RootSigned;
      const verdict = judgeRoot(base, bent);
      assert.notDeepEqual(verdict.mistakes, []);
      throwsCode('ROOT_CHANGE_REFUSED', () => requireAllowedChange(verdict, { danger: 'accepted' }));
    });
  }
});

it('a key that never counts is named by its id, which takes it away', () => {
  using dir = tempDir();
  const base = startingPoint(dir);
  const next = change(base, {});
  const id = 'cd'.repeat(32);
  const [first = '', ...others] = next.roles.root.keyids;
  const keys = Object.fromEntries(
    Object.entries(next.keys).map(([keyid, key]) => [keyid === first ? id : keyid, key]),
  );
  const bent = { ...next, keys, roles: withRole(next, root, { keyids: [id, ...others] }) } as RootSigned;
  assert.match(judgeRoot(base, bent).mistakes.join(), /never count, cdcdcdcd/);
  const mended = change(bent, { remove: [{ role: root, which: id }] });
  assert.deepEqual(judgeRoot(bent, mended).mistakes, []);
});

const dangers: Readonly<Record<string, Partial<RootChange>>> = {
  'no spare root key': { remove: [{ role: root, which: 'root-3' }] },
  'a threshold of all keys': { thresholds: { root: 3 } },
  'a lower threshold': { thresholds: { root: 1 } },
};

describe('a danger in a next root', () => {
  for (const [name, given] of Object.entries(dangers)) {
    it(`is refused without a confirmation: ${name}`, () => {
      using dir = tempDir();
      const base = startingPoint(dir);
      const verdict = judgeRoot(base, change(base, given));
      assert.deepEqual(verdict.mistakes, []);
      throwsCode('ROOT_CHANGE_REFUSED', () => requireAllowedChange(verdict, { danger: 'refused' }));
      requireAllowedChange(verdict, { danger: 'accepted' });
    });
  }

  it('is that the old threshold needs the removed signers, as with all of them at once', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const keys = ['x', 'y', 'z'].map((name) => newKey(dir, name));
    const { dangers: found } = judgeRoot(base, change(base, { replace: [{ role: root, keys }] }));
    assert.equal(found.length, 1);
    assert.match(found[0] ?? '', /2 of the removed keys/);
  });
});

describe('the difference of two roots', () => {
  it('names a known key as the old root does, and reports a new name', () => {
    using dir = tempDir();
    const base = startingPoint(dir);
    const next = change(base, {});
    const [first = ''] = base.roles.root.keyids;
    const { writ } = next as RootSigned & { writ: { signers: object } };
    const bent = { ...next, writ: { ...writ, signers: { ...writ.signers, [first]: 'mallory' } } };
    const difference = compareRoots(base, bent);
    assert.deepEqual(difference.renamed, [{ keyId: first, before: 'root-1', after: 'mallory' }]);
    assert.equal(difference.roles[0]?.kept[0]?.name, 'root-1');
  });
});
