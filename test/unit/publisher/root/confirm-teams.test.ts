// A root that removes a targets key: the next targets vouch only for delegations to keys that the operator gave.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { TeamKeys } from '../../../../src/publisher/root/confirm-teams.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { commit, keysAt, newKey } from '../../../kit/repository/ceremony.js';
import { complete, replacing } from '../../../kit/repository/committed-root.js';
import {
  delegatedRepository,
  delegateTo,
  makeTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import { live, stateOf } from '../../../kit/repository/delegating.js';
import { someKeys } from '../../../kit/repository/sample-repository.js';

const given = (...teams: readonly { role: string; publicKey: { keyId: string } }[]): TeamKeys =>
  new Map(teams.map(({ role, publicKey }) => [role, [publicKey.keyId]]));

/** @returns a repository with a published release of a team, and a signed root with another targets key */
async function replacedTargetsKey(dir: TempDir) {
  const { repository, team } = await delegatedRepository(dir);
  await repository.publish({ file: 'one' }, { keys: team.keys });
  await repository.refresh();
  const signed = await complete(repository, { replace: [replacing(dir, 'targets')] });
  return { repository, team, signed };
}

describe('a root that replaces the targets key', () => {
  it('is committed only with the key of each team', async () => {
    using dir = tempDir();
    const { repository, team, signed } = await replacedTargetsKey(dir);
    const before = directoryState(`${repository.directory}/metadata`);
    const missing = await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed));
    assert.deepEqual([missing.facts['roles'], missing.message.includes('dns-team')], [['dns-team'], true]);
    assert.doesNotMatch(missing.message, /[0-9a-f]{8}/);
    for (const ids of [[], [team.publicKey.keyId, 'ab'.repeat(32)], ['ab'.repeat(32)]])
      await rejectsCode(
        'TEAM_KEY_UNCONFIRMED',
        commit(repository, signed, { teamKeys: new Map([['dns-team', ids]]) }),
      );
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
    assert.equal((await commit(repository, signed, { teamKeys: given(team) })).kind, 'committed');
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    assert.equal((await commit(repository, signed)).kind, 'unchanged');
  });

  it(
    'is refused while a thief has replaced the key of a team or delegated to a further role',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository, team, signed } = await replacedTargetsKey(dir);
      await delegateTo(repository, makeTeam(dir, 'dns-team', 'thief'));
      const error = await rejectsCode(
        'TEAM_KEY_UNCONFIRMED',
        commit(repository, signed, { teamKeys: given(team) }),
      );
      assert.match(error.message, /not the keys that you gave/);
      await delegateTo(repository, makeTeam(dir, 'evil-team'), { paths: ['evil/*'] });
      const further = await rejectsCode(
        'TEAM_KEY_UNCONFIRMED',
        commit(repository, signed, { teamKeys: given(team) }),
      );
      assert.deepEqual(further.facts['roles'], ['dns-team', 'evil-team']);
    },
  );

  it('is refused while a thief has replaced a key of two', async () => {
    using dir = tempDir();
    const { repository, team, signed } = await replacedTargetsKey(dir);
    const thief = makeTeam(dir, 'dns-team', 'thief');
    await delegateTo(repository, team, { keys: [team.publicKey, thief.publicKey] });
    await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed, { teamKeys: given(team) }));
  });

  it(
    'is committed after the old targets key has delegated to the key of the team again',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository, team, signed } = await replacedTargetsKey(dir);
      await delegateTo(repository, makeTeam(dir, 'dns-team', 'thief'));
      await delegateTo(repository, team, {
        keysDirectory: someKeys(dir, repository, 'targets.key', 'root.json'),
      });
      await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed, { teamKeys: given(team) }));
      await commit(repository, signed, { teamKeys: given(team), shouldIncludeWaiting: true });
      await signByTeam(repository, team);
      await repository.refresh();
      assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    },
  );

  it('needs the keys of the teams in the later run that signs the targets', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const signed = await complete(repository, { replace: [replacing(dir, 'targets', 'anna')] });
    await commit(repository, signed, { unsignedRoles: 'accepted', teamKeys: given(team) });
    fs.cpSync(dir.join('anna'), repository.keys, { recursive: true });
    await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed));
    assert.equal((await commit(repository, signed, { teamKeys: given(team) })).kind, 'completed');
  });
});

describe('a root that replaces the targets key by a key on another computer', () => {
  it('is committed only with the key of each team, because the old key cannot correct a delegation later', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    await delegateTo(repository, makeTeam(dir, 'dns-team', 'thief'));
    const signed = await complete(repository, { replace: [replacing(dir, 'targets', 'anna')] });
    const before = directoryState(`${repository.directory}/metadata`);
    for (const teamKeys of [undefined, given(team)])
      await rejectsCode(
        'TEAM_KEY_UNCONFIRMED',
        commit(repository, signed, { unsignedRoles: 'accepted', teamKeys }),
      );
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
  });

  it('is corrected by the new key where it is committed with the key of a thief', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const thief = makeTeam(dir, 'dns-team', 'thief');
    await delegateTo(repository, thief);
    const signed = await complete(repository, { replace: [replacing(dir, 'targets', 'anna')] });
    // As a version without the check left it.
    fs.writeFileSync(`${repository.directory}/metadata/2.root.json`, signed.root.bytes);
    fs.copyFileSync(`${repository.keys}/root.json`, dir.join('anna', 'root.json'));
    const keys = keysAt(dir.join('anna'));
    const later = { keys, unsignedRoles: 'accepted', teamKeys: given(team) } as const;
    const error = await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed, later));
    assert.match(error.hint, /only the new targets key can correct another key\. Give the whole id/);
    const early = delegateTo(repository, team, { keysDirectory: keys.path });
    assert.match((await rejectsCode('REPOSITORY_INVALID', early)).hint, /is corrected after that/);
    await commit(repository, signed, { ...later, teamKeys: given(thief) });
    await delegateTo(repository, team, { keysDirectory: keys.path });
    await repository.refresh();
    const [role] = stateOf(repository).live.targets.signed.delegations?.roles ?? [];
    assert.deepEqual(role?.keyids, [team.publicKey.keyId]);
  });
});

describe('a root that keeps the key of the published targets', () => {
  it('needs no key of a team where it adds a targets key, and needs it where it removes one', async () => {
    using dir = tempDir();
    const { repository, team } = await delegatedRepository(dir);
    const [first] = stateOf(repository).live.root.signed.roles.targets.keyids;
    const add = [{ role: 'targets' as const, key: newKey(dir, 'spare') }];
    await commit(repository, await complete(repository, { add }));
    const remove = [{ role: 'targets' as const, which: 'spare' }];
    const signed = await complete(repository, { remove });
    await rejectsCode('TEAM_KEY_UNCONFIRMED', commit(repository, signed));
    const result = await commit(repository, signed, { teamKeys: given(team) });
    assert.deepEqual([result.kind, result.signed], ['committed', {}]);
    assert.deepEqual(stateOf(repository).live.root.signed.roles.targets.keyids, [first]);
  });

  it('needs no key of a team where it replaces the timestamp key', async () => {
    using dir = tempDir();
    const { repository } = await delegatedRepository(dir);
    const signed = await complete(repository, { replace: [replacing(dir, 'timestamp')] });
    assert.equal((await commit(repository, signed)).kind, 'committed');
  });
});
