// A thief of the online keys publishes a snapshot that lists older files: the files of older snapshots count as published.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { delegateRole, previewDelegation } from '../../../../src/publisher/teams/delegate.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { commit, keysAt } from '../../../kit/repository/ceremony.js';
import {
  complete,
  replacing,
  replacingOnlineKeys,
  versionsOf,
} from '../../../kit/repository/committed-root.js';
import {
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import { live } from '../../../kit/repository/delegating.js';
import {
  changeOptions,
  metadataPath,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';
import { forge, forgeOnline } from '../../../kit/trust/forged-metadata.js';

/** Serial 2 of the team was published, and the snapshot of a thief lists the file with serial 1. */
async function olderTeamFile(dir: TempDir) {
  const { repository, team } = await publishedByTeam(dir);
  await repository.publish({ file: 'two' }, { keys: team.keys });
  await repository.refresh();
  await forgeOnline(repository, 'dns-team', 1);
  return { repository, team: makeTeam(dir, 'dns-team', 'next') };
}

function planKeyChange(
  repository: SampleRepository,
  { publicKey }: ReturnType<typeof makeTeam>,
  keys = repository.keys,
) {
  const request = { role: 'dns-team', shouldHandOver: false, change: { keys: [publicKey] } } as const;
  const plan = previewDelegation(request, changeOptions(repository, { keys }));
  const serialsOf = (releases: readonly { release: { serial: number } }[] = []): number[] =>
    releases.map(({ release }) => release.serial);
  return { handedOver: serialsOf(plan?.handedOver), leftOut: serialsOf(plan?.leftOut) };
}

describe('a published file of a team that the snapshot of a thief no longer lists', () => {
  it('is handed over to the next key of the team, and its serial is not used again', async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    assert.deepEqual(planKeyChange(repository, team), { handedOver: [2], leftOut: [] });
    await delegateTo(repository, team);
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 dns-team']);
    assert.equal((await repository.publish({ file: 'three' }, { keys: team.keys })).release.serial, 3);
  });

  it('is listed by the next snapshots while the next key of the team has not signed', async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    await delegateTo(repository, team);
    await repository.refresh();
    await repository.refresh();
    const name = fs.readdirSync(metadataPath(repository, '.')).filter((one) => /snapshot/.test(one));
    const newest = Math.max(...name.map((one) => Number.parseInt(one, 10)));
    const text = fs.readFileSync(metadataPath(repository, `${newest}.snapshot.json`), 'utf8');
    assert.equal(JSON.parse(text).signed.meta['dns-team.json'].version, 2);
    const args = ['repo', 'check', '--repository', repository.directory];
    const { exitCode, stdout } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
    assert.deepEqual([exitCode, /METADATA_ROLLBACK/.test(stdout)], [0, false], stdout);
  });

  it('is listed by the next snapshots after the removal of the team', async () => {
    using dir = tempDir();
    const { repository } = await olderTeamFile(dir);
    const request = { role: 'dns-team', shouldHandOver: true, shouldIncludeWaiting: true } as const;
    await delegateRole(request, changeOptions(repository));
    await repository.refresh();
    const args = ['repo', 'check', '--repository', repository.directory];
    const { exitCode, stdout } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
    assert.deepEqual([exitCode, /METADATA_ROLLBACK/.test(stdout)], [0, false], stdout);
  });

  it('is handed over after repo gc, which keeps the snapshot that lists it', async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    for (let times = 0; times < 3; times += 1) await forgeOnline(repository, 'dns-team', 1);
    // Files have the time of the machine.
    const clock = fakeClock({ nowMs: Date.now() + 10 * 86_400_000 });
    const args = ['repo', 'gc', '--keep', '1', '--yes', '--repository', repository.directory];
    const { exitCode, stdout } = await runWrit(args, { cwd: dir.path, clock });
    assert.deepEqual([exitCode, /REMOVED/.test(stdout)], [0, true], stdout);
    assert.equal(fs.existsSync(metadataPath(repository, '3.snapshot.json')), false);
    assert.deepEqual(planKeyChange(repository, team), { handedOver: [2], leftOut: [] });
  });

  it('is handed over though the thief adds more snapshots than are read', async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    for (let version = 1000; version < 11_000; version += 1)
      fs.writeFileSync(metadataPath(repository, `${version}.snapshot.json`), '{}');
    assert.deepEqual(planKeyChange(repository, team), { handedOver: [2], leftOut: [] });
  });

  it('is handed over where the snapshot of the thief does not list the team', longCase, async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    const key = (role: string): string => `${repository.keys}/${role}.key`;
    const meta = { 'targets.json': { version: 2 } };
    const snapshot = { from: '4.snapshot.json', to: '9.snapshot.json', key: key('snapshot') };
    await forge(repository, { ...snapshot, members: { version: 9, meta } });
    const members = { version: 9, meta: { 'snapshot.json': { version: 9 } } };
    const timestamp = { from: 'timestamp.json', to: 'timestamp.json', key: key('timestamp') };
    await forge(repository, { ...timestamp, members });
    assert.deepEqual(planKeyChange(repository, team), { handedOver: [2], leftOut: [] });
  });

  it('makes repo check and repo status name both snapshots, until a refresh', longCase, async () => {
    using dir = tempDir();
    const { repository } = await olderTeamFile(dir);
    const writ = (...args: readonly string[]) =>
      runWrit([...args, '--repository', repository.directory], {
        cwd: dir.path,
        clock: repository.clock,
      });
    const named = /5\.snapshot\.json lists dns-team v1, and the older 4\.snapshot\.json lists v2/;
    const checked = await writ('repo', 'check');
    assert.deepEqual([checked.exitCode, /METADATA_ROLLBACK/.test(checked.stdout)], [1, true]);
    assert.match(checked.stdout, named);
    const { exitCode, stdout } = await writ('repo', 'status');
    assert.deepEqual([exitCode, named.test(stdout)], [2, true], stdout);
    assert.match(stdout, /^CRITICAL .*\[METADATA_ROLLBACK\]\n/);
    await repository.refresh();
    assert.equal((await writ('repo', 'check')).exitCode, 0);
    assert.equal((await writ('repo', 'status')).exitCode, 0);
  });
});

describe('the snapshot of a thief after a root that replaces only the timestamp key', () => {
  it('is replaced by the next signature of the timestamp, because hosts have forgotten the versions', async () => {
    using dir = tempDir();
    const { repository, team } = await olderTeamFile(dir);
    await delegateTo(repository, team);
    await forgeOnline(repository, 'dns-team', 1);
    const signed = await complete(repository, { replace: [replacing(dir, 'timestamp')] });
    await commit(repository, signed, { keys: keysAt(dir.join('none')), unsignedRoles: 'accepted' });
    await repository.refresh(['timestamp']);
    for (const command of ['check', 'status']) {
      const args = ['repo', command, '--repository', repository.directory];
      const { stdout } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
      assert.doesNotMatch(stdout, /METADATA_ROLLBACK/, stdout);
    }
  });
});

describe('a root with new online keys that the server has not signed yet', () => {
  it('makes a host answer METADATA_ROLLBACK with a hint that names this case', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const { url, clock, rootPath } = repository;
    const root = fs.readFileSync(rootPath);
    const store = { ...memoryTrustStore(root), loadEarlierRoot: () => root };
    const source = openRepositorySource(url, { clock, version: 'test' });
    const host = openRepositoryClient({ source, store, clock });
    await versionsOf(host);
    const signed = await complete(repository, replacingOnlineKeys(dir));
    await commit(repository, signed, { keys: keysAt(dir.join('none')), unsignedRoles: 'accepted' });
    const { hint } = await rejectsCode('METADATA_ROLLBACK', versionsOf(host));
    assert.match(hint, /the server has not signed since the root was committed: `writ refresh`/);
  });
});

describe('an export of a repository with the snapshot of a thief', () => {
  it('warns with the code of repo check where the snapshot lists an older file', async () => {
    using dir = tempDir();
    const { repository } = await olderTeamFile(dir);
    const args = ['repo', 'export', 'out', '--repository', repository.directory];
    const { stderr } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
    assert.match(stderr, /5\.snapshot\.json lists dns-team v1, .*\[METADATA_ROLLBACK\]/);
  });

  it('warns where the timestamp names an older snapshot than the newest one', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    fs.writeFileSync(metadataPath(repository, 'timestamp.json'), before);
    const args = ['repo', 'export', 'out', '--repository', repository.directory];
    const { stderr } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
    assert.match(stderr, /4\.snapshot\.json lists dns-team v2 and is newer than the published/);
  });
});

describe('a waiting file of a team', () => {
  it('does not count as published where only a replaced online key listed it', async () => {
    using dir = tempDir();
    const { repository, team: stolen } = await publishedByTeam(dir);
    // With the first root, under which the replaced key counts.
    const office = someKeys(dir, repository, 'targets.key', 'root.json');
    await commit(repository, await complete(repository, replacingOnlineKeys(dir)));
    await repository.publish({ file: 'of a thief' }, { keys: stolen.keys });
    const meta = { 'targets.json': { version: 2 }, 'dns-team.json': { version: 2 } };
    const key = `${repository.keys}/snapshot.key`;
    const files = { from: '3.snapshot.json', to: '5000.snapshot.json', key };
    await forge(repository, { ...files, members: { version: 5000, meta } });
    const team = makeTeam(dir, 'dns-team', 'next');
    assert.deepEqual(planKeyChange(repository, team, office), { handedOver: [1], leftOut: [2] });
  });

  it('is named with the newer snapshot of a killed signing by repo check and repo status, and is not a problem', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    fs.writeFileSync(metadataPath(repository, 'timestamp.json'), before);
    const args = ['repo', 'check', '--repository', repository.directory];
    const { exitCode, stdout, stderr } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
    assert.equal(exitCode, 0, stdout);
    // A thief who names the older snapshot leaves the same files.
    const named = /4\.snapshot\.json lists dns-team v2 and is newer than the published 3\.snapshot\.json/;
    assert.match(stderr, named);
    const status = ['repo', 'status', '--repository', repository.directory];
    assert.match((await runWrit(status, { cwd: dir.path, clock: repository.clock })).stdout, named);
  });
});

describe('a published file of a team that is lost', () => {
  it('makes a key change and a removal of the team fail, because its serials would be used again', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    fs.rmSync(metadataPath(repository, '1.dns-team.json'));
    const change = { keys: [makeTeam(dir, 'dns-team', 'next').publicKey] };
    for (const request of [{ change }, {}] as const) {
      const whole = { role: 'dns-team', shouldHandOver: true, ...request } as const;
      throwsCode('REPOSITORY_INVALID', () => previewDelegation(whole, changeOptions(repository)));
    }
  });
});

describe('published targets that the snapshot of a thief no longer lists', () => {
  it('are signed by the next targets key, and their serials are not used again', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await repository.publish({ a: 'b' });
    await forgeOnline(repository, 'targets', 2);
    const replace = [
      replacing(dir, 'targets', 'next'),
      replacing(dir, 'snapshot'),
      replacing(dir, 'timestamp'),
    ];
    const signed = await complete(repository, { replace });
    await commit(repository, signed, { keys: keysAt(dir.join('next')), unsignedRoles: 'accepted' });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 2 targets']);
  });

  it('are left out where no snapshot listed them', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    await repository.publish({ a: 'waits' }, { keys: someKeys(dir, repository, 'targets.key') });
    const signed = await complete(repository, { replace: [replacing(dir, 'targets', 'next')] });
    await commit(repository, signed, { keys: keysAt(dir.join('next')), unsignedRoles: 'accepted' });
    await repository.refresh();
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });
});
