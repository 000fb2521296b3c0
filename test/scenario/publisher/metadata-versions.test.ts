// A stolen key signs a version number that is far above the published one: the documented recovery works for each role
// and each number.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import { maxVersion, maxVersionAfterGap } from '../../../src/core/tuf/metadata-version.js';
import { checkRepository } from '../../../src/publisher/upkeep/check-repository.js';
import { planCollection } from '../../../src/publisher/upkeep/collect-repository.js';
import { parseRequestPath } from '../../../src/server/files/request-path.js';
import { createRepositoryView } from '../../../src/server/resign/repository-view.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { commit } from '../../kit/repository/ceremony.js';
import { complete, hostOf, replacing, versionsOf } from '../../kit/repository/committed-root.js';
import {
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../kit/repository/delegated-repository.js';
import { live } from '../../kit/repository/delegating.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../kit/repository/sample-repository.js';
import { forge, forgeOnline, forgePublishedTargets } from '../../kit/trust/forged-metadata.js';

function check(repository: SampleRepository) {
  const report = { begin: () => undefined, progress: () => undefined };
  const { directory, keys, clock } = repository;
  return checkRepository({
    repository: directory,
    keysDirectory: keys,
    limits: defaultArchiveLimits,
    clock,
    report,
  });
}

const highVersions = [maxVersionAfterGap + 1, maxVersionAfterGap + 10, maxVersion];

describe('a version that no key of today can reach', () => {
  for (const version of highVersions) {
    it(`is not published as ${version} of a team, and a new key signs the next version`, async () => {
      using dir = tempDir();
      const { repository, team: stolen } = await publishedByTeam(dir);
      const to = `${version}.dns-team.json`;
      const key = `${stolen.keys}/dns-team.key`;
      await forge(repository, { from: '1.dns-team.json', to, key, members: { version } });
      assert.deepEqual(createRepositoryView(repository.directory).read().pending, []);
      await repository.refresh();
      const { notes } = await check(repository);
      assert.match(notes.join('\n'), new RegExp(`metadata/${version}.dns-team.json is above 1000000000000`));
      const team = makeTeam(dir, 'dns-team', 'next');
      await delegateTo(repository, team);
      assert.equal((await signByTeam(repository, team)).version, 2);
      await repository.refresh();
      await repository.publish({ file: 'two' }, { keys: team.keys });
      await repository.refresh();
      assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
      assert.equal((await versionsOf(hostOf(repository)))['root'], 1);
      const options = { repository: repository.directory, keep: 1, graceMs: 0, clock: repository.clock };
      const paths = planCollection(options).map(({ path }) => path);
      assert.ok(paths.includes(`metadata/${to}`));
    });

    it(`is not published as ${version} of the targets, and the publisher goes on`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish({ a: 'a' });
      const key = `${repository.keys}/targets.key`;
      await forge(repository, {
        from: '2.targets.json',
        to: `${version}.targets.json`,
        key,
        members: { version },
      });
      assert.deepEqual(createRepositoryView(repository.directory).read().pending, []);
      await repository.publish({ a: 'b' });
      await commit(repository, await complete(repository, { replace: [replacing(dir, 'targets')] }));
      assert.deepEqual(await versionsOf(hostOf(repository)), {
        root: 2,
        timestamp: 4,
        snapshot: 4,
        targets: 4,
      });
    });
  }

  it('is not published either once the published version has grown', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const key = `${repository.keys}/targets.key`;
    for (const version of [maxVersionAfterGap, maxVersionAfterGap + 3]) {
      const to = `${version}.targets.json`;
      await forge(repository, { from: '2.targets.json', to, key, members: { version } });
    }
    await repository.publish({ a: 'b' });
    assert.equal((await versionsOf(hostOf(repository)))['targets'], maxVersionAfterGap + 1);
    const error = await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'c' }));
    assert.match(error.message, /1000000000003.targets.json is above the next version/);
    assert.match(error.hint, /`writ repo gc` removes it/);
    const options = { repository: repository.directory, keep: 1, graceMs: 0, clock: repository.clock };
    for (const { path } of planCollection(options)) fs.rmSync(`${repository.directory}/${path}`);
    await repository.publish({ a: 'c' });
    assert.deepEqual(live(repository), ['dns-edge 3 targets']);
  });

  it('is followed by a version that is served, counted and checked where 9999999999 is published', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const version = 9_999_999_999;
    const to = `${version}.dns-team.json`;
    await forge(repository, {
      from: '1.dns-team.json',
      to,
      key: `${team.keys}/dns-team.key`,
      members: { version },
    });
    await forgeOnline(repository, 'dns-team', version);
    await repository.publish({ file: 'two' }, { keys: team.keys });
    const next = '10000000000.dns-team.json';
    assert.deepEqual(createRepositoryView(repository.directory).read().pending, [next]);
    assert.equal(parseRequestPath(`/metadata/${next}`).kind, 'metadata');
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    await repository.publish({ file: 'three' }, { keys: team.keys });
    assert.deepEqual((await check(repository)).problems, []);
  });
});

describe('a version far above the published one', () => {
  for (const version of [64, 9_999_999_999, maxVersionAfterGap]) {
    it(
      `is published as ${version} like any other file, and a new key of the team signs the next version after it`,
      longCase,
      async () => {
        using dir = tempDir();
        const { repository, team: stolen } = await publishedByTeam(dir);
        const to = `${version}.dns-team.json`;
        const key = `${stolen.keys}/dns-team.key`;
        await forge(repository, { from: '1.dns-team.json', to, key, members: { version } });
        assert.deepEqual(createRepositoryView(repository.directory).read().pending, [to]);
        await repository.publish({ file: 'two' }, { keys: stolen.keys });
        const next = `${version + 1}.dns-team.json`;
        assert.deepEqual(createRepositoryView(repository.directory).read().pending, [next]);
        const team = makeTeam(dir, 'dns-team', 'next');
        await delegateTo(repository, team);
        assert.equal((await signByTeam(repository, team)).version, version + 2);
        await repository.refresh();
        await repository.publish({ file: 'good' }, { keys: team.keys });
        await repository.refresh();
        assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
        assert.deepEqual((await check(repository)).problems, []);
      },
    );
  }

  it('of 65 files that do not verify is passed over by the next version', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const last = maxVersionAfterGap - 1;
    for (let version = last; version > last - 65; version -= 1)
      fs.writeFileSync(metadataPath(repository, `${version}.dns-team.json`), '{}');
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    assert.ok(fs.existsSync(metadataPath(repository, `${last + 1}.dns-team.json`)));
  });

  it('of the targets is followed by a release, and does not take its place later', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const key = `${repository.keys}/targets.key`;
    const members = { version: 1_000_003 };
    await forge(repository, { from: '2.targets.json', to: '1000003.targets.json', key, members });
    for (const a of ['b', 'c', 'd']) await repository.publish({ a });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 4 targets']);
    assert.equal((await versionsOf(hostOf(repository)))['targets'], 1_000_006);
  });
});

describe('the highest version that is published by stolen online keys', () => {
  it('of a team begins again after a new snapshot key, and hosts follow', async () => {
    using dir = tempDir();
    const { repository, team: stolen } = await publishedByTeam(dir);
    const host = hostOf(repository);
    const to = `${maxVersion}.dns-team.json`;
    const members = { version: maxVersion };
    await forge(repository, { from: '1.dns-team.json', to, key: `${stolen.keys}/dns-team.key`, members });
    await forgeOnline(repository, 'dns-team', maxVersion);
    await versionsOf(host);
    const team = makeTeam(dir, 'dns-team', 'next');
    await delegateTo(repository, team);
    const error = await rejectsCode('REPOSITORY_INVALID', signByTeam(repository, team));
    assert.match(error.hint, /`writ root rotate --replace snapshot=NEW.pub`/);
    const replace = [replacing(dir, 'snapshot'), replacing(dir, 'timestamp')];
    await commit(repository, await complete(repository, { replace }));
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 1 dns-team']);
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.equal((await repository.publish({ file: 'three' }, { keys: team.keys })).release.serial, 3);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 3 dns-team']);
    assert.equal((await versionsOf(host))['root'], 2);
    assert.deepEqual((await check(repository)).problems, []);
  });

  it('of the targets begins again where one root replaces their key and that of the snapshot', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const host = hostOf(repository);
    await forgePublishedTargets(repository, maxVersion);
    assert.equal((await versionsOf(host))['targets'], maxVersion);
    const error = await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'b' }));
    assert.match(error.hint, /--replace targets=NEW.pub --replace snapshot=NEW.pub/);
    const replace = [replacing(dir, 'targets'), replacing(dir, 'snapshot')];
    await commit(repository, await complete(repository, { replace }));
    assert.deepEqual((await versionsOf(host))['targets'], 3);
    await repository.publish({ a: 'b' });
    assert.deepEqual((await versionsOf(host))['targets'], 4);
  });

  it('of the snapshot leaves versions that a server serves', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await forgeOnline(repository, 'snapshot', maxVersion);
    const host = hostOf(repository);
    assert.equal((await versionsOf(host))['snapshot'], maxVersion);
    await commit(repository, await complete(repository, { replace: [replacing(dir, 'snapshot')] }));
    assert.equal((await versionsOf(host))['snapshot'], 1003);
  });
});
