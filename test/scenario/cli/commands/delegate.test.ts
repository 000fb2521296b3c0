import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { delegateTo, makeTeam, signByTeam } from '../../../kit/repository/delegated-repository.js';
import { sampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

function writ(dir: TempDir, ...args: readonly string[]): Promise<WritRun> {
  return runWrit([...args, '--repository', 'repo'], { cwd: dir.path });
}

function prepareDelegation(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
  const team = makeTeam(dir, 'dns-team');
  const delegate = [
    'delegate',
    'dns-team',
    '--keys',
    'keys',
    '--paths',
    'dns-*/*',
    '--key',
    `${team.keys}/dns-team.key`,
  ];
  return { repository, delegate };
}

describe('writ delegate', () => {
  it(
    'hands over a bundle, which the team then signs and publishes, and a refresh publishes its release',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository, delegate } = prepareDelegation(dir);
      await repository.publish({ file: 'one' });
      const refused = await writ(dir, ...delegate, '--yes', '--json');
      assert.deepEqual([refused.exitCode, jsonOf(refused)['code']], [2, 'DELEGATION_REFUSED']);
      const unasked = await writ(dir, ...delegate, '--hand-over', '--json');
      assert.deepEqual([unasked.exitCode, jsonOf(unasked)['code']], [2, 'USAGE']);
      const dry = await writ(dir, ...delegate, '--hand-over', '--dry-run');
      assert.match(dry.stdout, /^WOULD DELEGATE TO dns-team\n {2}dns-team {2}dns-\*\/\*\n/);
      assert.match(
        dry.stdout,
        /\n {2}moves {2}dns-edge\/stable\.tar\.br\n {2}hands over {2}dns-edge stable serial 1 r1 sha256:[0-9a-f]{12}\nNothing was written\n$/,
      );
      const run = await writ(dir, ...delegate, '--hand-over', '--yes');
      assert.equal(run.exitCode, 0, run.stderr);
      assert.match(run.stdout, /^DELEGATED dns-team\n/);
      assert.match(run.stdout, /until its keys have signed\. Hosts keep their 1 release until then\.\n/);
      assert.match(
        run.stdout,
        /\nNext: writ sign --role dns-team --repository repo --keys DIR {3}\(holder of dns-team\)\n$/,
      );
      const sign = await writ(dir, 'sign', '--role', 'dns-team', '--keys', 'team-dns-team');
      assert.equal(sign.exitCode, 0, sign.stderr);
      assert.match(
        sign.stdout,
        /^SIGNED dns-team v1: 1 release, until .*; hosts see it when snapshot and timestamp are signed\n/,
      );
      writeTree(dir.join('source'), { file: 'two' });
      const publish = await writ(dir, 'publish', 'source', '--keys', 'team-dns-team', '--bundle', 'dns-edge');
      assert.match(publish.stdout, /^SIGNED dns-edge stable serial 1 -> 2; /, publish.stderr);
      const refresh = await writ(dir, 'refresh', '--keys', 'keys');
      assert.match(
        refresh.stdout,
        /; dns-team v2 published\n {2}publishes {2}dns-edge stable serial 2 sha256:[0-9a-f]{12}\n$/,
      );
      assert.equal((await writ(dir, 'repo', 'check')).exitCode, 0);
      const status = await writ(dir, 'repo', 'status');
      assert.match(status.stdout, /\n {4}dns-team +2 +1 +1 /);
      assert.match(status.stdout, /\n {2}dns-edge {2}stable {3}2 /);
    },
  );

  it('prints releases that return to the targets apart from those that no snapshot lists', async () => {
    using dir = tempDir();
    const { repository, team } = await unsignedTeam(dir);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    await repository.refresh();
    await repository.publish({ file: 'two' }, { keys: team.keys });
    const change = ['delegate', 'dns-team', '--keys', 'keys', '--paths', 'acl-*/*', '--hand-over', '--yes'];
    const run = await writ(dir, ...change);
    const serial = (number: number) => `dns-edge stable serial ${number}( r\\d)? sha256:[0-9a-f]{12}`;
    assert.match(run.stdout, new RegExp(`\\n {2}returns to the targets {2}${serial(1)}\\n`), run.stderr);
    assert.match(
      run.stdout,
      new RegExp(`\\n {2}leaves out {2}${serial(2)}\\n {2}No snapshot in the repository lists these`),
    );
    assert.match(run.stdout, /\n {2}dns-team lists nothing new until its keys have signed\.\n/);
    assert.doesNotMatch(run.stdout, /Hosts keep/);
  });

  it('prints a release as kept when only its role or its keys change', async () => {
    using dir = tempDir();
    const { repository, team } = await unsignedTeam(dir);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    await repository.refresh();
    const release = 'dns-edge stable serial 1( r\\d)? sha256:[0-9a-f]{12}';
    const next = makeTeam(dir, 'dns-team', 'next');
    const key = `${next.keys}/dns-team.key`;
    await writ(dir, 'delegate', 'dns-team', '--keys', 'keys', '--key', key, '--yes');
    await writ(dir, 'sign', '--role', 'dns-team', '--keys', next.keys);
    const refresh = await writ(dir, 'refresh', '--keys', 'keys');
    const byKeys = new RegExp(`\\n {2}keeps {2}${release}; signed by new keys of dns-team\\n$`);
    assert.match(refresh.stdout, byKeys, refresh.stderr);
    const run = await writ(dir, 'delegate', 'dns-team', '--keys', 'keys', '--remove', '--hand-over', '--yes');
    const byRole = new RegExp(`\\n {2}keeps {2}${release}; signed by targets, before by dns-team\\n`);
    assert.match(run.stdout, byRole, run.stderr);
    assert.doesNotMatch(run.stdout + refresh.stdout, /publishes/);
  });

  it('reports NOTHING NEW for the same delegation, and removes the role with --remove', async () => {
    using dir = tempDir();
    const { delegate } = prepareDelegation(dir);
    await writ(dir, ...delegate, '--yes');
    const again = await writ(dir, ...delegate, '--yes');
    assert.equal(again.stdout, 'NOTHING NEW dns-team is already like this\n');
    const both = await writ(dir, ...delegate, '--remove', '--yes', '--json');
    assert.deepEqual([both.exitCode, jsonOf(both)['code']], [2, 'USAGE']);
    const removed = await writ(dir, 'delegate', 'dns-team', '--keys', 'keys', '--remove', '--yes');
    assert.match(removed.stdout, /^REMOVED dns-team\n/);
  });
});

describe('writ sign --role', () => {
  it('signs the targets for another validity period', async () => {
    using dir = tempDir();
    const { repository } = prepareDelegation(dir);
    const run = await writ(dir, 'sign', '--role', 'targets', '--keys', 'keys');
    assert.match(run.stdout, /^SIGNED targets v2: 0 releases, until /, run.stderr);
    assert.ok(fs.existsSync(`${repository.directory}/metadata/2.targets.json`));
    const unknown = await writ(dir, 'sign', '--role', 'none', '--keys', 'keys', '--json');
    assert.deepEqual([unknown.exitCode, jsonOf(unknown)['code']], [2, 'ROLE_UNKNOWN']);
    const dry = ['sign', '--role', 'targets', '--keys', 'keys', '--dry-run'];
    const preview = await writ(dir, ...dry);
    assert.match(
      preview.stdout,
      /^WOULD SIGN targets v3: 0 releases, until .*\nNothing was written\n$/,
      preview.stderr,
    );
    const json = jsonOf(await writ(dir, ...dry, '--json'));
    assert.deepEqual([json['type'], json['version'], json['changed']], ['sign.preview', 3, false]);
    assert.ok(!fs.existsSync(`${repository.directory}/metadata/3.targets.json`));
    const half = await writ(dir, 'sign', '--role', 'targets', '--json');
    assert.deepEqual([half.exitCode, jsonOf(half)['code']], [2, 'USAGE']);
  });
});

describe('a team role with threshold 2', () => {
  it('is signed by one command with both keys, and the error for a single key names that command', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const [one, two] = [makeTeam(dir, 'dns-team', 'one'), makeTeam(dir, 'dns-team', 'two')];
    await delegateTo(repository, one, { keys: [one.publicKey, two.publicKey], threshold: 2 });
    const status = await writ(dir, 'repo', 'status');
    assert.match(status.stdout, /\nNext: writ sign --role dns-team .* \(one command with 2 keys of /);
    for (const flags of [[], ['--dry-run']]) {
      const run = await writ(dir, 'sign', '--role', 'dns-team', '--keys', one.keys, ...flags, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [1, 'KEYS_MISSING']);
      assert.match(
        String(jsonOf(run)['hint']),
        /^One command makes all 2 signatures: .*--signer 'dns-team=CMD'/,
      );
    }
    fs.copyFileSync(`${two.keys}/dns-team.key`, `${one.keys}/dns-team-2.key`);
    const both = await writ(dir, 'sign', '--role', 'dns-team', '--keys', one.keys);
    assert.match(both.stdout, /^SIGNED dns-team v1: /, both.stderr);
  });
});

async function unsignedTeam(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock });
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team);
  return { repository, team };
}

describe('writ repo status', () => {
  it('names `writ sign` while a team has not signed, and `writ refresh` after it signed', async () => {
    using dir = tempDir();
    const { repository, team } = await unsignedTeam(dir);
    const unsigned = await writ(dir, 'repo', 'status');
    assert.match(unsigned.stdout, /^WARNING dns-team is not signed yet: .*\n/);
    assert.match(unsigned.stdout, /\nNext: writ sign --role dns-team /);
    await signByTeam(repository, team);
    const waiting = await writ(dir, 'repo', 'status');
    assert.match(waiting.stdout, /^WARNING dns-team v1 is signed and waits for the online keys\n/);
    assert.match(waiting.stdout, /\nNext: writ refresh --repository repo /);
  });

  it('names only the team whose version waits for the online keys, not the targets', async () => {
    using dir = tempDir();
    const { repository, team } = await unsignedTeam(dir);
    await signByTeam(repository, team);
    await repository.refresh();
    await signByTeam(repository, team);
    assert.match(
      (await writ(dir, 'repo', 'status')).stdout,
      /^WARNING dns-team v2 waits for the online keys\n/,
    );
    assert.deepEqual(jsonOf(await writ(dir, 'repo', 'status', '--json'))['waitingRoles'], [
      { role: 'dns-team', version: 2 },
    ]);
  });

  it('lists a release that waits for the online keys, and a withdrawal prints it too', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' });
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ file: 'of a thief' }, { keys });
    const waits = /\n {2}waits {2}dns-edge stable serial 3 r\d sha256:[0-9a-f]{12}\n/;
    assert.match((await writ(dir, 'repo', 'status')).stdout, waits);
    const json = jsonOf(await writ(dir, 'repo', 'status', '--json'));
    assert.deepEqual(
      (json['newReleases'] as { bundle: string; serial: number }[]).map(({ serial }) => serial),
      [3],
    );
    const withdraw = ['withdraw', '--bundle', 'dns-edge', '--serial', '2', '--keys'];
    assert.match((await writ(dir, ...withdraw, keys)).stdout, waits);
    await repository.refresh();
    assert.doesNotMatch((await writ(dir, 'repo', 'status')).stdout, /waits/);
  });
});
