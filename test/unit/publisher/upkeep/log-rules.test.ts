import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../../../src/core/release/release.js';
import type {
  DelegatedRole,
  RootSigned,
  TargetFile,
  TargetsSigned,
} from '../../../../src/core/tuf/tuf-metadata.js';
import { delegationActs, releaseActs, rootAct, toMoves } from '../../../../src/publisher/upkeep/log-rules.js';

const digestOf = (serial: number): Digest => digestFromHex(String(serial).repeat(64).slice(0, 64)) as Digest;

function release(serial: number, more: Partial<ReleaseInfo> = {}): ReleaseInfo {
  return {
    bundle: 'dns-edge',
    channel: 'stable',
    serial,
    revision: `r${serial}`,
    createdAtMs: 1_700_000_000_000,
    manifest: { digest: digestOf(serial), length: 10 },
    withdrawn: [],
    ...more,
  };
}

function listed(...releases: readonly ReleaseInfo[]): Record<string, TargetFile> {
  const entries = releases.map((one): [string, TargetFile] => {
    const custom = { writ: encodeReleaseInfo(one) };
    return [`${one.bundle}/${one.channel}.tar.br`, { length: 1, hashes: { sha256: '00' }, custom }];
  });
  return Object.fromEntries(entries);
}

const canary = { channel: 'canary' };

describe('#releaseActs', () => {
  it('is nothing for the same list', () => {
    const same = listed(release(1), release(2, canary));
    assert.deepEqual(releaseActs(same, same), []);
  });

  it('is a publish for a serial above all that were listed, with what it replaces', () => {
    assert.deepEqual(releaseActs({}, listed(release(1))), [
      { kind: 'publish', bundle: 'dns-edge', channel: 'stable', toSerial: 1, revision: 'r1' },
    ]);
    assert.deepEqual(
      releaseActs(listed(release(1), release(4, canary)), listed(release(5), release(4, canary))),
      [
        {
          kind: 'publish',
          bundle: 'dns-edge',
          channel: 'stable',
          fromSerial: 1,
          toSerial: 5,
          revision: 'r5',
        },
      ],
    );
  });

  it('is a promotion for the release of another channel, and no publish', () => {
    const [act] = releaseActs(listed(release(1), release(2, canary)), listed(release(2), release(2, canary)));
    assert.deepEqual(
      [act?.kind, act?.fromChannel, act?.fromSerial, act?.toSerial],
      ['promote', 'canary', 1, 2],
    );
  });

  it('is no promotion where only the serial is that of another channel', () => {
    const other = release(2, { manifest: { digest: digestOf(9), length: 10 } });
    const [act] = releaseActs(listed(release(1), release(2, canary)), listed(other, release(2, canary)));
    assert.deepEqual([act?.kind, act?.fromChannel], ['change', undefined]);
  });

  it('is a publish where another bundle, or an older release of a channel, has the same tree', () => {
    const other = release(1, { bundle: 'web' });
    const [ofTheOther] = releaseActs(listed(other), listed(other, release(1)));
    assert.deepEqual([ofTheOther?.kind, ofTheOther?.fromChannel], ['publish', undefined]);
    const again = release(2, { manifest: release(1).manifest });
    const before = listed(release(1, canary));
    const [ofTheOlder] = releaseActs(before, { ...before, ...listed(again) });
    assert.deepEqual([ofTheOlder?.kind, ofTheOlder?.fromChannel], ['publish', undefined]);
  });

  it('is no publish for a serial that is not above all', () => {
    const [act] = releaseActs(listed(release(1), release(4, canary)), listed(release(3), release(4, canary)));
    assert.equal(act?.kind, 'change');
  });

  it('is a withdrawal with its serials and reason, once', () => {
    const withdrawal = { serials: [2], atMs: 1_700_000_001_000, reason: 'too much' };
    const after = listed(release(1, { withdrawn: [2], withdrawal }));
    const [act] = releaseActs(listed(release(2)), after);
    assert.deepEqual(act, {
      kind: 'withdraw',
      bundle: 'dns-edge',
      channel: 'stable',
      fromSerial: 2,
      toSerial: 1,
      revision: 'r1',
      withdrawn: [2],
      reason: 'too much',
    });
    const next = listed(release(3, { withdrawn: [2], withdrawal }));
    assert.deepEqual(
      releaseActs(after, next).map(({ kind }) => kind),
      ['publish'],
    );
  });

  it('is a withdrawal again with other serials, or at another time', () => {
    const withdrawal = { serials: [2], atMs: 1_700_000_001_000, reason: '' };
    const before = listed(release(1, { withdrawn: [2], withdrawal }));
    for (const next of [
      { ...withdrawal, serials: [3] },
      { ...withdrawal, atMs: 1_700_000_002_000 },
    ]) {
      const [act] = releaseActs(before, listed(release(1, { withdrawn: [2, 3], withdrawal: next })));
      assert.deepEqual([act?.kind, act?.withdrawn], ['withdraw', next.serials]);
    }
  });

  it('omits the reason where none was given', () => {
    const withdrawal = { serials: [2], atMs: 1_700_000_001_000, reason: '' };
    const [act] = releaseActs(listed(release(2)), listed(release(1, { withdrawn: [2], withdrawal })));
    assert.equal(act !== undefined && 'reason' in act, false);
  });

  it('is a change for the same release with other content around it', () => {
    const [act] = releaseActs(listed(release(1)), listed(release(1, { withdrawn: [7] })));
    assert.deepEqual([act?.kind, act?.fromSerial, act?.toSerial], ['change', 1, 1]);
  });

  it('is a removal for a channel that is listed no more', () => {
    assert.deepEqual(releaseActs(listed(release(1), release(2, canary)), listed(release(1))), [
      { kind: 'remove', bundle: 'dns-edge', channel: 'canary', fromSerial: 2 },
    ]);
  });

  it('describes no target of another publisher', () => {
    const foreign: TargetFile = { length: 1, hashes: { sha256: '00' }, custom: { writ: { bundle: 7 } } };
    assert.deepEqual(releaseActs({}, { 'other/file': foreign, bare: { length: 1, hashes: {} } }), []);
  });
});

describe('#asMoves', () => {
  it('makes moves of what a delegation lists, and leaves removals and promotions', () => {
    const kinds = ['publish', 'change', 'withdraw', 'remove', 'promote'] as const;
    const acts = kinds.map((kind) => ({ kind, bundle: 'b', channel: 'c' }));
    assert.deepEqual(
      toMoves(acts, () => true).map(({ kind }) => kind),
      ['move', 'move', 'move', 'remove', 'promote'],
    );
  });

  it('leaves the withdrawal of a release that the role listed before', () => {
    const act = { kind: 'withdraw', bundle: 'b', channel: 'c', fromSerial: 2, withdrawn: [2] } as const;
    assert.deepEqual(
      toMoves([act], () => true),
      [act],
    );
  });
});

const team = (more: Partial<DelegatedRole> = {}): DelegatedRole => ({
  name: 'dns-team',
  keyids: ['aaaaaaaa1', 'bbbbbbbb2'],
  threshold: 1,
  paths: ['dns-*/*'],
  ...more,
});

const targets = (...roles: readonly DelegatedRole[]): TargetsSigned =>
  ({ targets: {}, delegations: { keys: {}, roles } }) as unknown as TargetsSigned;

describe('#delegationActs', () => {
  it('is a created team with its keys, threshold and paths', () => {
    const created = {
      kind: 'delegate',
      team: 'dns-team',
      change: 'created',
      threshold: 1,
      paths: ['dns-*/*'],
    };
    const keys = { addedKeys: ['aaaaaaaa', 'bbbbbbbb'], removedKeys: [] };
    const ids = { addedKeyIds: team().keyids, removedKeyIds: [] };
    assert.deepEqual(delegationActs(undefined, targets(team())), [{ ...created, ...keys, ...ids }]);
  });

  it('is a change with the keys that came and went', () => {
    const [act] = delegationActs(
      targets(team()),
      targets(team({ keyids: ['bbbbbbbb2', 'cccccccc3'], threshold: 2 })),
    );
    assert.deepEqual(
      [act?.change, act?.addedKeys, act?.removedKeys, act?.threshold],
      ['changed', ['cccccccc'], ['aaaaaaaa'], 2],
    );
  });

  it('is a removal, and nothing for a team that stays as it is', () => {
    const other = team({ name: 'web-team' });
    const acts = delegationActs(targets(team(), other), targets(other));
    assert.deepEqual(
      acts.map((act) => [act.team, act.change, act.removedKeys.length, act.threshold]),
      [['dns-team', 'removed', 2, undefined]],
    );
  });

  it('shows paths that are given by digest as such', () => {
    const { paths: _paths, ...byDigest } = team({ path_hash_prefixes: ['a1', 'b2'] });
    assert.deepEqual(delegationActs(undefined, targets(byDigest))[0]?.paths, ['digest a1', 'digest b2']);
  });
});

type Roles = Partial<Record<'root' | 'targets', { keyids: readonly string[]; threshold: number }>>;

const root = (roles: Roles, signers: Readonly<Record<string, string>> = {}): RootSigned =>
  ({ roles, writ: { signers } }) as unknown as RootSigned;

describe('#rootAct', () => {
  const before = root({
    root: { keyids: ['anna0001', 'ben00002'], threshold: 2 },
    targets: { keyids: ['dora0004'], threshold: 1 },
  });

  it('is everything of the first root', () => {
    const act = rootAct(undefined, before);
    assert.equal(act.kind, 'init');
    assert.deepEqual(
      act.roles.map(({ role, addedKeys, threshold }) => [role, addedKeys.length, threshold]),
      [
        ['root', 2, 2],
        ['targets', 1, 1],
      ],
    );
    assert.ok(act.roles.every((one) => !('thresholdBefore' in one)));
  });

  it('is the keys that came and went, of the roles that changed alone', () => {
    const after = root({
      root: { keyids: ['ben00002', 'carol003'], threshold: 2 },
      targets: { keyids: ['dora0004'], threshold: 1 },
    });
    const keys = { addedKeys: ['carol003'], removedKeys: ['anna0001'] };
    const ids = { addedKeyIds: ['carol003'], removedKeyIds: ['anna0001'] };
    assert.deepEqual(rootAct(before, after), {
      kind: 'root',
      roles: [{ role: 'root', ...keys, ...ids, threshold: 2 }],
    });
  });

  it('is a removal of a key alone, too', () => {
    const after = root({
      root: { keyids: ['ben00002'], threshold: 2 },
      targets: { keyids: ['dora0004'], threshold: 1 },
    });
    const [act] = rootAct(before, after).roles;
    assert.deepEqual([act?.addedKeys, act?.removedKeys, act?.threshold], [[], ['anna0001'], 2]);
  });

  it('is a threshold that changed, with the one before', () => {
    const after = root({
      root: { keyids: ['anna0001', 'ben00002'], threshold: 1 },
      targets: { keyids: ['dora0004'], threshold: 1 },
    });
    const [act] = rootAct(before, after).roles;
    assert.deepEqual([act?.addedKeys, act?.threshold, act?.thresholdBefore], [[], 1, 2]);
  });

  it('has no role for a root that was only signed again', () => {
    assert.deepEqual(rootAct(before, before), { kind: 'root', roles: [] });
  });
});
