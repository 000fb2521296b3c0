// Stolen online keys published the highest version of a role: the versions begin again, and the releases and serials that
// hosts saw stay known.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { maxVersion, maxVersionAfterGap } from '../../../src/core/tuf/metadata-version.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { resignRole } from '../../../src/publisher/signing/resign-role.js';
import { planCollection } from '../../../src/publisher/upkeep/collect-repository.js';
import { readRepositoryLog } from '../../../src/publisher/upkeep/repository-log.js';
import { createRepositoryView } from '../../../src/server/resign/repository-view.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { commit, keysAt } from '../../kit/repository/ceremony.js';
import {
  complete,
  hostOf,
  replacing,
  replacingOnlineKeys,
  versionsOf,
} from '../../kit/repository/committed-root.js';
import {
  type DelegatedRepository,
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../kit/repository/delegated-repository.js';
import { live } from '../../kit/repository/delegating.js';
import {
  changeOptions,
  metadataPath,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../kit/repository/sample-repository.js';
import { forge, forgeOnline, forgePublishedTargets } from '../../kit/trust/forged-metadata.js';

/** Hosts saw serials 1 and 2 of a team, and then serial 3 of a thief in the highest version. */
async function attackedTeam(dir: TempDir): Promise<DelegatedRepository> {
  const { repository, team } = await publishedByTeam(dir);
  await repository.publish({ file: 'two' }, { keys: team.keys });
  await repository.refresh();
  await repository.publish({ file: 'evil' }, { keys: team.keys, revision: 'evil' });
  const key = `${team.keys}/dns-team.key`;
  const to = `${maxVersion}.dns-team.json`;
  await forge(repository, { from: '3.dns-team.json', to, key, members: { version: maxVersion } });
  fs.rmSync(metadataPath(repository, '3.dns-team.json'));
  await forgeOnline(repository, 'dns-team', maxVersion);
  assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
  return { repository, team };
}

/** Acts of the log: `serial` with its marks. */
function loggedReleases({ directory, clock }: SampleRepository): string[] {
  return readRepositoryLog({ repository: directory, clock })
    .entries.flatMap(({ act, waiting, neverLive, version }) =>
      'toSerial' in act
        ? [
            `${act.kind} ${act.fromSerial ?? '-'} ${act.toSerial} v${version} ${waiting ?? neverLive ?? 'seen'}`,
          ]
        : [],
    )
    .reverse();
}

describe('a team with its highest version published', () => {
  it('is not listed after new online keys until it signs, and a new key receives what hosts saw', async () => {
    using dir = tempDir();
    const { repository } = await attackedTeam(dir);
    const host = hostOf(repository);
    await versionsOf(host);
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    assert.deepEqual(live(repository), []);
    await repository.refresh();
    assert.deepEqual(live(repository), [], 'an older file would be a rollback');
    assert.deepEqual(createRepositoryView(repository.directory).read().pending, []);
    const team = makeTeam(dir, 'dns-team', 'next');
    const delegated = await delegateTo(repository, team);
    assert.ok(delegated.kind !== 'nothing-new' && delegated.plan !== undefined);
    const { handedOver, leftOut } = delegated.plan;
    assert.deepEqual(
      handedOver.map(({ release, isLive }) => [release.serial, isLive]),
      [[3, true]],
    );
    assert.deepEqual(leftOut, []);
    assert.equal((await signByTeam(repository, team)).version, 3);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
    const good = await repository.publish({ file: 'good' }, { keys: team.keys });
    assert.equal(good.release.serial, 4, 'no serial that hosts saw is used again');
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 4 dns-team']);
    assert.equal((await versionsOf(host))['root'], 2);
  });

  it('keeps its key where it was not stolen, and signs and withdraws as before', async () => {
    using dir = tempDir();
    const { repository, team } = await attackedTeam(dir);
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    await withdrawRelease(
      { bundle: 'dns-edge', serials: [3], reason: 'stolen key' },
      changeOptions(repository, { keys: team.keys }),
    );
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    assert.equal((await repository.publish({ file: 'good' }, { keys: team.keys })).release.serial, 4);
  });

  it('signs nothing between the new root and the next snapshot, which would leave its file out', async () => {
    using dir = tempDir();
    const { repository, team } = await attackedTeam(dir);
    const signed = await complete(repository, replacingOnlineKeys(dir));
    const keys = keysAt(someKeys(dir, repository, 'targets.key'));
    await commit(repository, signed, { keys, unsignedRoles: 'accepted' });
    const error = await rejectsCode(
      'REPOSITORY_INVALID',
      resignRole('dns-team', changeOptions(repository, { keys: team.keys })),
    );
    assert.match(error.hint, /`writ refresh` with the new keys of snapshot and timestamp/);
    await repository.refresh();
    assert.equal((await signByTeam(repository, team)).version, 3);
    assert.deepEqual(createRepositoryView(repository.directory).read().pending, ['3.dns-team.json']);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
  });

  it('keeps the file with its releases in the repository until it signs', async () => {
    using dir = tempDir();
    const { repository, team } = await attackedTeam(dir);
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    const options = { repository: repository.directory, keep: 1, graceMs: 0, clock: repository.clock };
    const paths = planCollection(options).map(({ path }) => path);
    assert.ok(!paths.includes(`metadata/${maxVersion}.dns-team.json`), paths.join());
    fs.rmSync(metadataPath(repository, `${maxVersion}.dns-team.json`));
    await rejectsCode('REPOSITORY_INVALID', signByTeam(repository, team));
  });

  it('continues after new online keys where a version at the end of the gaps was published without them', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const to = `${maxVersionAfterGap}.dns-team.json`;
    const members = { version: maxVersionAfterGap };
    await forge(repository, { from: '1.dns-team.json', to, key: `${team.keys}/dns-team.key`, members });
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    assert.equal((await signByTeam(repository, team)).version, maxVersionAfterGap + 2);
    const log = readRepositoryLog({ repository: repository.directory, clock: repository.clock });
    assert.deepEqual(log.missing, [], 'the versions before the gap never existed');
  });

  it('is logged in the order of its signatures, and no release that hosts saw is called unpublished', async () => {
    using dir = tempDir();
    const { repository } = await attackedTeam(dir);
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    const team = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, team);
    await signByTeam(repository, team);
    await repository.publish({ file: 'good' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(loggedReleases(repository), [
      'publish - 1 v1 seen',
      'publish 1 2 v2 seen',
      `publish 2 3 v${maxVersion} seen`,
      'publish 3 4 v4 seen',
    ]);
    const log = readRepositoryLog({ repository: repository.directory, clock: repository.clock });
    assert.deepEqual([log.missing, log.problems], [[], []]);
  });
});

describe('targets with their highest version published', () => {
  it('begin again where the keys of targets and of the online roles are in different places', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const host = hostOf(repository);
    await forgePublishedTargets(repository, maxVersion);
    assert.equal((await versionsOf(host))['targets'], maxVersion);
    const replace = [replacing(dir, 'targets'), replacing(dir, 'snapshot'), replacing(dir, 'timestamp')];
    const signed = await complete(repository, { replace });
    const office = keysAt(someKeys(dir, repository, 'targets-2.key'));
    await commit(repository, signed, { keys: office, unsignedRoles: 'accepted' });
    assert.deepEqual(createRepositoryView(repository.directory).read().pending, ['3.targets.json']);
    await repository.publish({ a: 'b' }, { keys: office.path });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 targets']);
    assert.equal((await versionsOf(host))['targets'], 4);
    assert.deepEqual(loggedReleases(repository), ['publish - 1 v2 seen', 'publish 1 2 v4 seen']);
  });

  it('do not begin again where the root keeps their key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await forgePublishedTargets(repository, maxVersion);
    const office = keysAt(someKeys(dir, repository, 'targets.key'));
    const signed = await complete(repository, replacingOnlineKeys(dir));
    await commit(repository, signed, { keys: office, unsignedRoles: 'accepted' });
    await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'b' }, { keys: office.path }));
    await repository.refresh();
    const error = await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'b' }));
    assert.match(error.hint, /--replace targets=NEW.pub --replace snapshot=NEW.pub/);
  });
});
