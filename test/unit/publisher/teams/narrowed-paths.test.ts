// The paths of a team are narrowed: its published file still lists a path outside, which hosts ignore until the team signs.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { readRepositoryLog } from '../../../../src/publisher/upkeep/repository-log.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { memoryTrustStore, type TrustStore } from '../../../../src/trust/store/trust-store.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, type Team } from '../../../kit/repository/delegated-repository.js';
import { live, stateOf } from '../../../kit/repository/delegating.js';
import {
  changeOptions,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

/** The team published `dns-edge` and `access`; then `access` returned to the targets. */
async function narrowed(
  dir: TempDir,
  whilePublished?: (repository: SampleRepository) => Promise<void>,
): Promise<{ readonly repository: SampleRepository; readonly team: Team }> {
  const repository = sampleRepository(dir);
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team, { paths: ['dns-*/*', 'access/*'] });
  await repository.publish({ file: 'one' }, { keys: team.keys });
  await repository.publish({ rule: '' }, { bundle: 'access', keys: team.keys });
  await repository.refresh();
  await whilePublished?.(repository);
  await delegateTo(repository, team, { paths: ['dns-*/*'], shouldHandOver: true });
  await repository.refresh();
  return { repository, team };
}

/** @returns as a host that polls: serial and signing role of each bundle */
async function poll({ directory, clock }: SampleRepository, store: TrustStore): Promise<string[]> {
  const source = openRepositorySource(pathToFileURL(directory).href, { clock, version: 'test' });
  try {
    const client = openRepositoryClient({ source, store, clock });
    await client.refresh({ conditional: 'no' });
    const targets = [await client.target('dns-edge', 'stable'), await client.target('access', 'stable')];
    return targets.map((target) => `${target?.release.serial} ${target?.vouchedBy.role}`);
  } finally {
    await source.close();
  }
}

describe('a published file of a team that lists a path outside its narrowed paths', () => {
  it('is accepted by new hosts and by hosts that had accepted it', longCase, async () => {
    using dir = tempDir();
    let store: TrustStore | undefined;
    const { repository } = await narrowed(dir, async (before) => {
      store = memoryTrustStore(stateOf(before).anchor);
      assert.deepEqual(await poll(before, store), ['1 dns-team', '1 dns-team']);
    });
    const expected = ['1 dns-team', '1 targets'];
    assert.deepEqual(await poll(repository, memoryTrustStore(stateOf(repository).anchor)), expected);
    assert.deepEqual(await poll(repository, store ?? assert.fail()), expected);
  });

  it('is no problem for repo check and repo status, because hosts accept it', async () => {
    using dir = tempDir();
    const { repository } = await narrowed(dir);
    for (const command of ['check', 'status']) {
      const args = ['repo', command, '--repository', repository.directory];
      const { exitCode, stdout } = await runWrit(args, { cwd: dir.path, clock: repository.clock });
      assert.equal(exitCode, 0, stdout);
    }
    assert.deepEqual(live(repository), ['access 1 targets', 'dns-edge 1 dns-team']);
  });

  it(
    'makes sign --role print no release as unseen by hosts, and refresh no release as new',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository, team } = await narrowed(dir);
      const writ = (...args: readonly string[]) =>
        runWrit([...args, '--repository', repository.directory], { cwd: dir.path, clock: repository.clock });
      const signed = await writ('sign', '--role', 'dns-team', '--keys', team.keys);
      assert.equal(signed.exitCode, 0, signed.stderr);
      assert.doesNotMatch(signed.stdout, /hosts do not see it now/);
      assert.deepEqual((await repository.refresh()).newReleases, []);
      assert.deepEqual(Object.keys(stateOf(repository).delegated.get('dns-team')?.signed.targets ?? {}), [
        'dns-edge/stable.tar.br',
      ]);
    },
  );
});

describe('a release with withdrawn serials that returns to the targets', () => {
  it('is a move in the log, because the team made the withdrawal', async () => {
    using dir = tempDir();
    const { repository } = await narrowed(dir, async (before) => {
      const keys = dir.join('team-dns-team');
      await before.publish({ rule: 'two' }, { bundle: 'access', keys });
      const withdrawal = { bundle: 'access', serials: [2], reason: 'wrong' };
      await withdrawRelease(withdrawal, changeOptions(before, { keys }));
      await before.refresh();
    });
    const { entries } = readRepositoryLog({ repository: repository.directory, clock: repository.clock });
    const acts = entries.flatMap(({ role, act }) =>
      'bundle' in act && act.bundle === 'access' ? [`${role} ${act.kind} ${act.toSerial}`] : [],
    );
    const expected = ['dns-team publish 1', 'dns-team publish 2', 'dns-team withdraw 1', 'targets move 1'];
    assert.deepEqual(acts.toSorted(), expected);
  });
});

describe('a waiting file of a team that lists a path outside its narrowed paths', () => {
  it('is not published', async () => {
    using dir = tempDir();
    const { repository } = await narrowed(dir, async (before) => {
      const team = { keys: dir.join('team-dns-team') };
      await before.publish({ rule: 'two' }, { bundle: 'access', keys: team.keys });
    });
    const [ignored] = stateOf(repository).ignored;
    assert.deepEqual([ignored?.name, ignored?.cause.code], ['3.dns-team.json', 'DELEGATION_REFUSED']);
  });
});
