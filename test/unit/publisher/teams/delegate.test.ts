import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { resignRole } from '../../../../src/publisher/signing/resign-role.js';
import { delegateRole, previewDelegation } from '../../../../src/publisher/teams/delegate.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import {
  delegatedRepository,
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import { dayMs, live, stateOf } from '../../../kit/repository/delegating.js';
import { changeOptions, sampleRepository } from '../../../kit/repository/sample-repository.js';

describe('delegateRole', () => {
  it('lets a team publish its bundles with nothing but its own key', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const team = makeTeam(dir, 'dns-team');
    const result = await delegateTo(repository, team);
    assert.ok(result.kind === 'live' && result.waitsForRole);
    const published = await repository.publish({ file: 'one' }, { keys: team.keys });
    assert.deepEqual(published.kind === 'waiting' && [published.role, published.version, published.missing], [
      'dns-team',
      1,
      ['snapshot', 'timestamp'],
    ]);
    assert.deepEqual(live(repository), []);
    const refreshed = await repository.refresh();
    assert.deepEqual(refreshed.wentLive, [{ role: 'dns-team', version: 1 }]);
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    await repository.publish({ rule: '' }, { bundle: 'access' });
    assert.deepEqual(live(repository), ['access 1 targets', 'dns-edge 1 dns-team']);
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(live(repository), ['access 1 targets', 'dns-edge 2 dns-team']);
  });

  it('asks the publisher for no team key, and the team for no other', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const error = await rejectsCode('KEYS_MISSING', repository.publish({ file: 'one' }));
    assert.match(error.message, /it contains root-1\.key, /);
    await rejectsCode(
      'KEYS_MISSING',
      repository.publish({ rule: '' }, { bundle: 'access', keys: team.keys }),
    );
  });

  it(
    'is carried on by every later version of the targets, with the names of the keys',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      const team = makeTeam(dir, 'dns-team');
      await delegateTo(repository, team, { validityMs: 10 * dayMs });
      await repository.publish({ rule: '' }, { bundle: 'access' });
      await resignRole('targets', changeOptions(repository));
      const { signed } = stateOf(repository).live.targets;
      assert.deepEqual(JSON.parse(JSON.stringify(signed.delegations?.roles)), [
        {
          name: 'dns-team',
          keyids: [team.publicKey.keyId],
          threshold: 1,
          paths: ['dns-*/*'],
          terminating: true,
        },
      ]);
      const { writ } = signed as unknown as { writ: { signers: object } };
      assert.deepEqual({ ...writ.signers }, { [team.publicKey.keyId]: 'dns-team' });
      const signedByTeam = await signByTeam(repository, team);
      assert.equal(signedByTeam.expiresMs, repository.clock.nowMs() + 10 * dayMs);
    },
  );

  it('reports nothing new, and writes nothing, without a change', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const before = directoryState(repository.directory);
    assert.equal((await delegateTo(repository, team)).kind, 'nothing-new');
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('changes the validity period alone, and writes nothing when it is the same', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    assert.equal((await delegateTo(repository, team, { validityMs: 10 * dayMs })).kind, 'live');
    assert.equal((await delegateTo(repository, team, { validityMs: 10 * dayMs })).kind, 'nothing-new');
    const signedByTeam = await signByTeam(repository, team);
    assert.equal(signedByTeam.expiresMs, repository.clock.nowMs() + 10 * dayMs);
  });

  it('publishes what waits for the online keys when nothing else is new', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    assert.deepEqual(live(repository), []);
    assert.equal((await delegateTo(repository, team)).kind, 'live');
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });

  it('refuses paths that another team has, that no release can have, or names that are no team’s', async () => {
    using dir = tempDir();
    const { repository } = await delegatedRepository(dir);
    const before = directoryState(repository.directory);
    const other = makeTeam(dir, 'edge-team');
    const overlapping = await rejectsCode(
      'DELEGATION_REFUSED',
      delegateTo(repository, other, { paths: ['*-edge/*'] }),
    );
    assert.deepEqual([overlapping.facts['other'], overlapping.facts['theirs']], ['dns-team', 'dns-*/*']);
    for (const paths of [
      ['dns-x'],
      ['a/b/c'],
      ['x/stable.tar.gz'],
      [`${'x'.repeat(200)}/*`],
      ['../*'],
      ['x/.*'],
    ])
      await rejectsCode('DELEGATION_REFUSED', delegateTo(repository, other, { paths }));
    for (const role of ['root', 'targets', 'snapshot', 'timestamp', '../x', 'Team', '1.root', 'a.b', ''])
      await rejectsCode('DELEGATION_REFUSED', delegateTo(repository, { ...other, role }, { paths: ['x/*'] }));
    await rejectsCode('USAGE', delegateTo(repository, other, { paths: [] }));
    await rejectsCode('USAGE', delegateTo(repository, other, { keys: [], paths: ['x/*'] }));
    for (const threshold of [0, 2])
      await rejectsCode('USAGE', delegateTo(repository, other, { threshold, paths: ['x/*'] }));
    const none = { role: 'none', shouldHandOver: false } as const;
    await rejectsCode('ROLE_UNKNOWN', delegateRole(none, changeOptions(repository)));
    await rejectsCode('ROLE_UNKNOWN', resignRole('none', changeOptions(repository)));
    assert.deepEqual(directoryState(repository.directory), before);
  });

  for (const role of ['root', 'snapshot', 'timestamp'] as const) {
    it(`refuses a key of the role ${role} as a key of a team`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      const other = makeTeam(dir, 'edge-team');
      const { roles } = stateOf(repository).live.root.signed;
      const [keyId = ''] = roles[role].keyids;
      const holders = Object.values(roles).filter((one) => one.keyids.includes(keyId));
      assert.equal(holders.length, 1);
      const keys = [{ ...other.publicKey, keyId }];
      const error = await rejectsCode('DELEGATION_REFUSED', delegateTo(repository, other, { keys }));
      assert.equal(error.facts['keyId'], keyId);
    });
  }

  it('can be previewed without a key and without a write', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const { publicKey, role } = makeTeam(dir, 'dns-team');
    const before = directoryState(repository.directory);
    const request = {
      role,
      shouldHandOver: false,
      change: { paths: ['dns-*/*'], keys: [publicKey] },
    } as const;
    const plan = previewDelegation(request, changeOptions(repository, { keys: dir.join('none') }));
    assert.deepEqual([plan?.kind, plan?.needsSignature], ['created', true]);
    assert.deepEqual(directoryState(repository.directory), before);
  });
});

describe('releases that change hands', () => {
  it('are never hidden: without --hand-over the delegation is refused, with it the team signs them', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const team = makeTeam(dir, 'dns-team');
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' });
    const error = await rejectsCode('DELEGATION_REFUSED', delegateTo(repository, team));
    assert.deepEqual(error.facts['targets'], ['dns-edge/stable.tar.br']);
    await delegateTo(repository, team, { shouldHandOver: true });
    assert.deepEqual(live(repository), []);
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    await repository.publish({ file: 'three' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
    const options = changeOptions(repository, { keys: team.keys });
    // Serial 1 is of the time before: the team takes its own releases back as far as that.
    await withdrawRelease({ bundle: 'dns-edge', serials: [2, 3], reason: '' }, options);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    assert.equal((await repository.publish({ file: 'four' }, { keys: team.keys })).release.serial, 4);
  });

  it('wait for the team also where it has signed a file already', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ file: 'one' }, { bundle: 'access' });
    const result = await delegateTo(repository, team, {
      paths: ['dns-*/*', 'access/*'],
      shouldHandOver: true,
    });
    assert.ok(result.kind === 'live' && result.waitsForRole);
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(live(repository), ['access 1 dns-team', 'dns-edge 1 dns-team']);
  });

  it('go at once when the team’s key is at hand: hosts never miss one', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const team = makeTeam(dir, 'dns-team');
    await repository.publish({ file: 'one' });
    fs.copyFileSync(`${team.keys}/dns-team.key`, `${repository.keys}/dns-team.key`);
    const result = await delegateTo(repository, team, { shouldHandOver: true });
    assert.ok(result.kind === 'live' && !result.waitsForRole);
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
  });

  it(
    'go on with their serials when the team publishes before it has signed what it was given',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      const team = makeTeam(dir, 'dns-team');
      await repository.publish({ file: 'one' });
      await repository.publish({ file: 'one' }, { bundle: 'dns-core' });
      await delegateTo(repository, team, { shouldHandOver: true });
      const published = await repository.publish({ file: 'two' }, { keys: team.keys });
      assert.equal(published.release.serial, 2);
      await repository.refresh();
      assert.deepEqual(live(repository), ['dns-core 1 dns-team', 'dns-edge 2 dns-team']);
    },
  );

  it(
    'return to the targets when the role is removed, and its file stays in the snapshot',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository, team } = await publishedByTeam(dir);
      const options = changeOptions(repository);
      await rejectsCode(
        'DELEGATION_REFUSED',
        delegateRole({ role: 'dns-team', shouldHandOver: false }, options),
      );
      await delegateRole({ role: 'dns-team', shouldHandOver: true }, options);
      assert.deepEqual(live(repository), ['dns-edge 1 targets']);
      assert.ok(stateOf(repository).live.snapshot.signed.meta['dns-team.json']);
      assert.equal((await repository.publish({ file: 'two' })).release.serial, 2);
      await rejectsCode('KEYS_MISSING', repository.publish({ file: 'three' }, { keys: team.keys }));
    },
  );
});
