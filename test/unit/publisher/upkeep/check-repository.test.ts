import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { delegateRole } from '../../../../src/publisher/teams/delegate.js';
import { type CheckReport, checkRepository } from '../../../../src/publisher/upkeep/check-repository.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, signByTeam } from '../../../kit/repository/delegated-repository.js';
import {
  changeOptions,
  metadataPath,
  noReport,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

function check(repository: SampleRepository, keysDirectory?: string): Promise<CheckReport> {
  return checkRepository({
    repository: repository.directory,
    limits: defaultArchiveLimits,
    clock: repository.clock,
    report: noReport,
    ...(keysDirectory === undefined ? {} : { keysDirectory }),
  });
}

async function codesOf(repository: SampleRepository, keysDirectory?: string): Promise<string[]> {
  const { problems } = await check(repository, keysDirectory);
  return problems.map(({ code }) => code);
}

async function published(dir: TempDir): Promise<SampleRepository> {
  const repository = sampleRepository(dir);
  await repository.publish({ file: 'one' });
  await repository.publish({ file: 'two' }, { channel: 'canary' });
  return repository;
}

function archives(repository: SampleRepository): string[] {
  const directory = `${repository.directory}/targets/dns-edge`;
  return fs.readdirSync(directory).map((name) => `${directory}/${name}`);
}

function change(path: string, at: number): void {
  const bytes = fs.readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  fs.writeFileSync(path, bytes);
}

describe('checkRepository', () => {
  it('finds no problem in an intact repository: roots, roles, archives', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const report = await check(repository, repository.keys);
    assert.deepEqual(report.problems, []);
    assert.deepEqual([report.roots, report.archives], [1, 2]);
    assert.deepEqual(
      report.roles.map(({ role, version, targets }) => [role, version, targets]),
      [
        ['timestamp', 3, 0],
        ['snapshot', 3, 0],
        ['targets', 3, 2],
      ],
    );
  });

  it(
    'reports an archive that is missing, cut, grown or changed, each by its code, and continues',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = await published(dir);
      const [first = '', second = ''] = archives(repository);
      const bytes = fs.readFileSync(first);
      for (const [spoil, code] of [
        [() => fs.rmSync(first), 'TARGET_MISSING'],
        [() => fs.writeFileSync(first, bytes.subarray(1)), 'DOWNLOAD_TRUNCATED'],
        [() => fs.writeFileSync(first, Buffer.concat([bytes, bytes])), 'DOWNLOAD_TOO_LARGE'],
      ] as const) {
        spoil();
        assert.deepEqual(await codesOf(repository), [code]);
      }
      fs.writeFileSync(first, bytes);
      change(first, 10);
      fs.rmSync(second);
      assert.deepEqual((await codesOf(repository)).sort(), ['DOWNLOAD_DIGEST', 'TARGET_MISSING']);
    },
  );

  it('reports metadata that is changed, missing or mixed', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const path = metadataPath(repository, '3.targets.json');
    const bytes = fs.readFileSync(path);
    fs.appendFileSync(path, ' ');
    assert.deepEqual(await codesOf(repository), ['METADATA_MIX']);
    fs.rmSync(path);
    assert.deepEqual(await codesOf(repository), ['METADATA_MISSING']);
    fs.writeFileSync(path, bytes);
    fs.copyFileSync(metadataPath(repository, '2.snapshot.json'), metadataPath(repository, '3.snapshot.json'));
    assert.deepEqual(await codesOf(repository), ['METADATA_MIX']);
  });

  it('reports roles that have expired, every one of them', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ file: 'one' });
    await clock.advance(31 * dayMs);
    const { problems } = await check(repository);
    assert.ok(problems.every(({ code }) => code === 'METADATA_EXPIRED'));
    assert.deepEqual(problems.map(({ where }) => where).sort(), [
      'metadata/2.snapshot.json',
      'metadata/timestamp.json',
    ]);
  });

  it('reports a root that no chain leads to, and one that is not the publisher’s', async () => {
    using dir = tempDir();
    using other = tempDir();
    const repository = await published(dir);
    const foreign = sampleRepository(other, { signers: 'own' });
    assert.deepEqual(await codesOf(repository, foreign.keys), ['ROOT_NOT_LINKED']);
    fs.copyFileSync(foreign.rootPath, metadataPath(repository, '2.root.json'));
    const codes = await codesOf(repository);
    assert.ok(codes.includes('SIGNATURE_THRESHOLD') || codes.includes('SIGNATURE_WRONG_KEY'), codes.join());
    fs.rmSync(repository.rootPath);
    assert.deepEqual(await codesOf(repository), ['METADATA_MISSING']);
  });

  it('checks the files and the archives of teams as those of the targets', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const team = makeTeam(dir, 'access-team');
    await delegateTo(repository, team, { paths: ['access/*'] });
    assert.deepEqual((await check(repository)).notes, ['access-team has signed nothing yet']);
    await repository.publish({ rule: '' }, { bundle: 'access', keys: team.keys });
    assert.deepEqual((await check(repository)).notes, [
      'access-team has no published version yet',
      'access-team v1 is signed and waits for the online keys (writ refresh)',
    ]);
    await repository.refresh();
    const { problems, archives: count } = await check(repository);
    assert.deepEqual([problems, count], [[], 3]);
    fs.rmSync(`${repository.directory}/targets/access`, { recursive: true });
    assert.deepEqual(await codesOf(repository), ['TARGET_MISSING']);
    change(metadataPath(repository, '1.access-team.json'), 40);
    assert.equal((await check(repository)).problems[0]?.where, 'metadata/1.access-team.json');
  });

  it('notes that a team has not signed since its keys changed, and reports its file where it is damaged', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const team = makeTeam(dir, 'access-team');
    await delegateTo(repository, team, { paths: ['access/*'] });
    await repository.publish({ rule: '' }, { bundle: 'access', keys: team.keys });
    await repository.refresh();
    await delegateRole({ role: team.role, shouldHandOver: true }, changeOptions(repository));
    const next = makeTeam(dir, 'access-team', 'next');
    await delegateTo(repository, next, { paths: ['access/*'], shouldHandOver: true });
    const text = 'access-team has not signed since its keys changed: hosts keep its releases until it signs';
    const report = await check(repository);
    assert.deepEqual([report.problems, report.notes], [[], [`${text} (writ sign --role access-team)`]]);
    await signByTeam(repository, next);
    await repository.refresh();
    const signed = await check(repository);
    assert.deepEqual([signed.problems, signed.notes], [[], []]);
    await delegateTo(repository, makeTeam(dir, 'access-team', 'third'), { paths: ['access/*'] });
    change(metadataPath(repository, '2.access-team.json'), 40);
    assert.deepEqual(
      (await check(repository)).problems.map(({ where }) => where),
      ['metadata/2.access-team.json'],
    );
  });

  it('notes waiting files and files that cannot be published, which are no problem for hosts', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    fs.copyFileSync(metadataPath(repository, '2.targets.json'), metadataPath(repository, '4.targets.json'));
    const report = await check(repository);
    assert.deepEqual([report.problems.length, report.notes.length], [0, 1]);
  });

  it('is no report where Writ itself fails: its mistake is no problem of the repository', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    for (const error of [new TypeError('a mistake'), new WritError('INTERNAL', 'another')]) {
      const clock = {
        ...repository.clock,
        nowMs: () => {
          throw error;
        },
      };
      await assert.rejects(check({ ...repository, clock }), error);
    }
  });
});
