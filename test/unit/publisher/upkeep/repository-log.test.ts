// Root rotations in the log, and files that the snapshot or the timestamp names with another digest.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import {
  defaultLogBounds,
  openLogReading,
  recordProblem,
} from '../../../../src/publisher/upkeep/log-reading.js';
import { type RepositoryLog, readRepositoryLog } from '../../../../src/publisher/upkeep/repository-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { commit, newKey } from '../../../kit/repository/ceremony.js';
import { complete, replacing } from '../../../kit/repository/committed-root.js';
import {
  delegateTo,
  makeTeam,
  publishedByTeam,
  signByTeam,
} from '../../../kit/repository/delegated-repository.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

function logOf({ directory, clock }: SampleRepository, keysDirectory?: string): RepositoryLog {
  return readRepositoryLog({ repository: directory, clock, keysDirectory });
}

const rootActs = (log: RepositoryLog) =>
  log.entries.flatMap(({ role, version, act }) =>
    act.kind === 'root' || act.kind === 'init' ? [{ role, version, ...act }] : [],
  );

const problemsOf = ({ problems }: RepositoryLog) => problems.map(({ where, code }) => `${where} ${code}`);

const rolesAndVersions = ({ entries }: RepositoryLog) =>
  entries.map(({ role, version }) => `${role}.${version}`);

describe('a rotation of the root in the log', () => {
  it('is shown with its added and removed keys, and its signers', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const change = {
      add: [{ role: 'root' as const, key: newKey(dir, 'dora') }],
      remove: [{ role: 'root' as const, which: 'root-3' }],
    };
    await commit(repository, await complete(repository, change));
    const log = logOf(repository);
    assert.deepEqual(problemsOf(log), []);
    const [second, first] = rootActs(log);
    assert.deepEqual([second?.kind, second?.version, first?.kind, first?.version], ['root', 2, 'init', 1]);
    assert.deepEqual(
      second?.roles.map(({ role, addedKeys, removedKeys, threshold }) => {
        return [role, addedKeys, removedKeys, threshold];
      }),
      [['root', ['dora'], ['root-3'], 2]],
    );
    const entry = log.entries.find(({ role, version }) => role === 'root' && version === 2);
    assert.deepEqual(
      entry?.signers.map(({ name }) => name),
      ['root-1', 'root-2'],
    );
  });

  it('leaves what the replaced keys signed before it, and shows what the new ones signed', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const change = {
      replace: [replacing(dir, 'targets'), replacing(dir, 'snapshot'), replacing(dir, 'timestamp')],
    };
    await commit(repository, await complete(repository, change));
    const log = logOf(repository);
    assert.deepEqual(problemsOf(log), []);
    assert.deepEqual(rolesAndVersions(log).sort(), ['root.1', 'root.2', 'targets.2', 'targets.3']);
    assert.equal(log.online.find(({ role }) => role === 'snapshot')?.verified, 3);
  });

  it('is named and not shown where its signatures do not verify', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await commit(
      repository,
      await complete(repository, { thresholds: { targets: 1 }, validity: { root: 864e5 * 90 } }),
    );
    const path = metadataPath(repository, '2.root.json');
    fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace(/"version":2/, '"version":3'));
    const log = logOf(repository);
    assert.equal(log.problems[0]?.where, 'metadata/2.root.json');
    assert.deepEqual(rootActs(log).length, 1);
  });
});

/** @returns the bytes of a file as the same keys signed it in another history, which is gone again */
async function signedOtherwise(
  repository: SampleRepository,
  name: string,
  act: () => Promise<unknown>,
): Promise<Buffer> {
  const saved = `${repository.directory}.saved`;
  fs.cpSync(repository.directory, saved, { recursive: true });
  await act();
  const bytes = fs.readFileSync(metadataPath(repository, name));
  fs.rmSync(repository.directory, { recursive: true });
  fs.renameSync(saved, repository.directory);
  return bytes;
}

describe('a file that is signed and is not the one that was named', () => {
  it('is a problem and no act, though its signatures are valid', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const other = await signedOtherwise(repository, '3.targets.json', () => repository.publish({ a: 'bad' }));
    await repository.publish({ a: 'good' });
    assert.deepEqual(problemsOf(logOf(repository)), []);
    fs.writeFileSync(metadataPath(repository, '3.targets.json'), other);
    const log = logOf(repository, repository.keys);
    assert.deepEqual(problemsOf(log), ['metadata/3.targets.json METADATA_MIX']);
    assert.deepEqual(rolesAndVersions(log), ['targets.2', 'root.1']);
  });

  it('is one for a version that only an older snapshot names, too', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const other = await signedOtherwise(repository, '2.targets.json', () => repository.publish({ a: 'bad' }));
    await repository.publish({ a: 'one' });
    await repository.publish({ a: 'two' });
    fs.writeFileSync(metadataPath(repository, '2.targets.json'), other);
    assert.deepEqual(problemsOf(logOf(repository)), ['metadata/2.targets.json METADATA_MIX']);
  });

  it('is one of a team', longCase, async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team);
    const act = async () => {
      await signByTeam(repository, team);
      await repository.refresh();
    };
    const name = '1.dns-team.json';
    await clock.advance(1000);
    const other = await signedOtherwise(repository, name, act);
    await clock.advance(1000);
    await signByTeam(repository, team);
    await repository.refresh();
    assert.deepEqual(problemsOf(logOf(repository)), []);
    fs.writeFileSync(metadataPath(repository, name), other);
    assert.deepEqual(problemsOf(logOf(repository)), [`metadata/${name} METADATA_MIX`]);
  });

  it('is a snapshot that the timestamp does not name', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const other = await signedOtherwise(repository, '2.snapshot.json', () =>
      repository.publish({ a: 'bad' }),
    );
    await repository.publish({ a: 'good' });
    fs.writeFileSync(metadataPath(repository, '2.snapshot.json'), other);
    const log = logOf(repository);
    assert.deepEqual(problemsOf(log), ['metadata/2.snapshot.json METADATA_MIX']);
    assert.equal(log.online.find(({ role }) => role === 'snapshot')?.lastVersion, 1);
  });
});

const releaseActsOf = (log: RepositoryLog, of: string) =>
  log.entries.flatMap(({ role, version, act }) =>
    role === of && 'toSerial' in act ? [`${version}: ${act.kind} ${act.fromSerial} ${act.toSerial}`] : [],
  );

describe('the versions of a team in the log', () => {
  it('show what the first one lists as published', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    assert.deepEqual(releaseActsOf(logOf(repository), 'dns-team'), ['1: publish undefined 1']);
  });

  it('are compared with what was handed over before them only where nothing was signed since', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ file: 'one' });
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team, { shouldHandOver: true });
    await signByTeam(repository, team);
    for (const file of ['two', 'three']) {
      await clock.advance(1000);
      await repository.publish({ file }, { keys: team.keys });
    }
    await repository.refresh();
    const acts = ['3: publish 2 3', '2: publish 1 2'];
    assert.deepEqual(releaseActsOf(logOf(repository), 'dns-team'), acts);
    // A later hand-over: the new keys have to sign what the old ones listed.
    const next = makeTeam(dir, 'dns-team', 'next');
    await clock.advance(1000);
    await delegateTo(repository, next);
    await signByTeam(repository, next);
    await repository.refresh();
    assert.deepEqual(releaseActsOf(logOf(repository), 'dns-team'), acts);
  });
});

describe('versions that are missing', () => {
  it('are named up to a bound, whatever number a file has in its name', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    for (const version of [5000, 12_000])
      fs.copyFileSync(
        metadataPath(repository, '2.targets.json'),
        metadataPath(repository, `${version}.targets.json`),
      );
    const { missing } = logOf(repository);
    assert.deepEqual(
      missing.map(({ role, versions }) => [role, versions.length, versions.at(-1)]),
      [['targets', 10_000, 11_999]],
    );
  });
});

describe('note', () => {
  it('takes up what does not verify, and nothing that the disk or a mistake of Writ is the reason of', () => {
    using dir = tempDir();
    const reading = openLogReading(layoutOf(dir.path), fakeClock(), defaultLogBounds);
    recordProblem(reading, 'metadata/1.x.json', new WritError('METADATA_MALFORMED', 'no JSON'));
    assert.deepEqual(
      reading.problems.map(({ code }) => code),
      ['METADATA_MALFORMED'],
    );
    for (const error of [new WritError('DISK_FAILED', 'EIO'), new TypeError('a mistake')])
      assert.throws(() => recordProblem(reading, 'metadata/2.x.json', error), error);
    assert.equal(reading.problems.length, 1);
  });
});
