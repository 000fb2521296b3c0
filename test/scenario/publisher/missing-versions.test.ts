// Stolen online keys published versions that never existed: new online keys lead back to the newest files that exist.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { maxVersion } from '../../../src/core/tuf/metadata-version.js';
import { onlineRoles } from '../../../src/core/tuf/tuf-metadata.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { encodeProposal, proposalCode } from '../../../src/publisher/root/proposal-file.js';
import { openOnlineSigners } from '../../../src/publisher/signing/online-signing.js';
import { resignOnline } from '../../../src/publisher/signing/resign-online.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { commit, keysAt } from '../../kit/repository/ceremony.js';
import {
  complete,
  hostOf,
  replacing,
  replacingOnlineKeys,
  versionsOf,
} from '../../kit/repository/committed-root.js';
import {
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../kit/repository/delegated-repository.js';
import { live, stateOf } from '../../kit/repository/delegating.js';
import {
  changeOptions,
  metadataPath,
  sampleRepository,
  someKeys,
} from '../../kit/repository/sample-repository.js';
import { forgeOnline } from '../../kit/trust/forged-metadata.js';

describe('a published version that does not exist', () => {
  for (const version of [500, maxVersion]) {
    it(
      `of the targets (${version}) is passed over by new online keys where an operator accepts it, and hosts follow`,
      longCase,
      async () => {
        using dir = tempDir();
        const repository = sampleRepository(dir);
        await repository.publish({ a: 'a' });
        const host = hostOf(repository);
        await versionsOf(host);
        await forgeOnline(repository, 'targets', version);
        await rejectsCode('METADATA_MISSING', versionsOf(host));
        await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'b' }));
        const keys = keysAt(someKeys(dir, repository, 'targets.key'));
        const signed = await complete(repository, replacingOnlineKeys(dir));
        const error = await rejectsCode(
          'REPOSITORY_INVALID',
          commit(repository, signed, { keys, unsignedRoles: 'accepted' }),
        );
        assert.match(error.hint, /Restore the file from another copy.*`--accept-missing`/);
        const accepting = { missingFiles: 'accepted' } as const;
        await commit(repository, signed, { keys, unsignedRoles: 'accepted', ...accepting });
        await rejectsCode('REPOSITORY_INVALID', repository.refresh());
        const options = changeOptions(repository);
        const signers = await openOnlineSigners(repository.directory, options.keys);
        const online = { signers, roles: onlineRoles, keysDirectory: repository.keys };
        await resignOnline({ ...options, ...online, ...accepting });
        await repository.refresh();
        assert.deepEqual(live(repository), ['dns-edge 1 targets']);
        assert.equal((await versionsOf(host))['targets'], 2);
        assert.equal((await repository.publish({ a: 'b' })).release.serial, 2);
        assert.equal((await versionsOf(host))['targets'], 3);
      },
    );

    it(`of a team (${version}) is passed over by new online keys where an operator accepts it, and the team goes on`, async () => {
      using dir = tempDir();
      const { repository, team } = await publishedByTeam(dir);
      await forgeOnline(repository, 'dns-team', version);
      const signed = await complete(repository, replacingOnlineKeys(dir));
      const error = await rejectsCode('REPOSITORY_INVALID', commit(repository, signed));
      assert.match(error.message, /a file that the snapshot lists for a team is missing/);
      await commit(repository, signed, { missingFiles: 'accepted' });
      assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
      assert.equal((await repository.publish({ file: 'two' }, { keys: team.keys })).release.serial, 2);
      await repository.refresh();
      assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
      await versionsOf(hostOf(repository));
    });
  }

  it('is passed over by the flag of both commands, which name the snapshot', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await forgeOnline(repository, 'targets', 500);
    const signed = await complete(repository, replacingOnlineKeys(dir));
    fs.writeFileSync(dir.join('p'), encodeProposal(signed));
    const writ = (...args: readonly string[]) =>
      runWrit([...args, '--repository', repository.directory, '--clock-is-right'], { cwd: dir.path });
    const office = someKeys(dir, repository, 'root.json', 'targets.key');
    const commitArgs = [
      'root',
      'commit',
      'p',
      '--keys',
      office,
      '--leave-unsigned',
      '--confirm',
      proposalCode(signed),
    ];
    for (const command of [commitArgs, ['refresh', '--keys', repository.keys]]) {
      const refused = await writ(...command);
      assert.deepEqual(
        [refused.exitCode, /REPOSITORY_INVALID/.test(refused.stderr)],
        [1, true],
        refused.stderr,
      );
      const { exitCode, stderr } = await writ(...command, '--accept-missing');
      assert.deepEqual([exitCode, /snapshot v3 lists missing files/.test(stderr)], [0, true], stderr);
      assert.match(stderr, /500\.targets\.json is missing: its releases are unknown, and are left out/);
    }
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });

  it('of the snapshot is passed over by new online keys where an operator accepts it', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    await forgeOnline(repository, 'snapshot', 500);
    fs.rmSync(metadataPath(repository, '500.snapshot.json'));
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    const signed = await complete(repository, replacingOnlineKeys(dir));
    await rejectsCode('REPOSITORY_INVALID', commit(repository, signed));
    await commit(repository, signed, { missingFiles: 'accepted' });
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    await versionsOf(hostOf(repository));
  });

  it('is no file of a team that only a replaced key has signed', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    await delegateTo(repository, makeTeam(dir, 'dns-team', 'next'));
    const { targets } = await versionsOf(hostOf(repository));
    const signed = await complete(repository, replacingOnlineKeys(dir));
    await commit(repository, signed, { keys: keysAt(dir.join('none')), unsignedRoles: 'accepted' });
    assert.equal(stateOf(repository).live.targets.signed.version, targets);
    await repository.refresh();
    assert.equal((await versionsOf(hostOf(repository)))['targets'], targets);
  });

  it('is an error as before where the online keys stay, because a lost file would be forgotten', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await repository.publish({ a: 'b' });
    fs.rmSync(metadataPath(repository, '3.targets.json'));
    const signed = await complete(repository, { replace: [replacing(dir, 'targets')] });
    await rejectsCode('REPOSITORY_INVALID', commit(repository, signed, { missingFiles: 'accepted' }));
  });
});

describe('a repository that was restored from a copy', () => {
  it('gives the next snapshot a number that the lost server has not used, after new online keys', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    const { snapshot } = await versionsOf(hostOf(repository));
    assert.equal(snapshot, 1003);
    await repository.refresh();
    assert.equal((await versionsOf(hostOf(repository)))['snapshot'], 1004);
  });
});

describe('a release by a replaced key of a team, after new online keys', () => {
  it('is not returned to, and the error names the way to its files', async () => {
    using dir = tempDir();
    const { repository, team: stolen } = await publishedByTeam(dir);
    await repository.publish({ file: 'evil' }, { keys: stolen.keys });
    await repository.refresh();
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    const team = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, team);
    await signByTeam(repository, team);
    await repository.refresh();
    const request = { bundle: 'dns-edge', serials: [2], reason: 'stolen key' };
    const options = changeOptions(repository, { keys: team.keys });
    const error = await rejectsCode('RELEASE_UNKNOWN', withdrawRelease({ ...request, to: 1 }, options));
    assert.match(error.hint, /Only replaced keys signed it. Publish its files again/);
    await repository.publish({ file: 'file one again' }, { keys: team.keys });
    await withdrawRelease(request, options);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
  });
});
