import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { type RoleReport, reportRoles } from '../../../../src/publisher/upkeep/role-report.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, signByTeam } from '../../../kit/repository/delegated-repository.js';
import { type SampleRepository, sampleRepository } from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

function report({ directory, clock }: SampleRepository): RoleReport[] {
  return reportRoles(readRepositoryState(layoutOf(directory)), clock.nowMs(), 30 * dayMs);
}

function team(repository: SampleRepository): RoleReport | undefined {
  return report(repository).find(({ role }) => role === 'dns-team');
}

describe('reportRoles', () => {
  it('counts the signatures of a first version that waits for the online keys', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const first = makeTeam(dir, 'dns-team');
    await delegateTo(repository, first, { validityMs: 8 * dayMs });
    await signByTeam(repository, first);
    const { version, signed, condition } = team(repository) ?? assert.fail();
    assert.deepEqual({ version, signed, condition }, { version: 0, signed: 1, condition: 'waiting' });
    await clock.advance(9 * dayMs);
    assert.equal(team(repository)?.condition, 'unsigned');
  });

  it('lists the top-level roles with the teams below the targets, and their signers', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await delegateTo(repository, makeTeam(dir, 'dns-team'));
    const rows = report(repository);
    assert.deepEqual(
      rows.map(({ role, by, signed, threshold }) => [role, by, signed, threshold]),
      [
        ['root', undefined, 3, 2],
        ['targets', undefined, 1, 1],
        ['dns-team', 'targets', 0, 1],
        ['snapshot', undefined, 1, 1],
        ['timestamp', undefined, 1, 1],
      ],
    );
    assert.deepEqual(team(repository)?.signers, ['dns-team']);
  });

  it(
    'distinguishes an unsigned role, one that expires soon, an expired one, and one with other keys',
    longCase,
    async () => {
      using dir = tempDir();
      const clock = fakeClock();
      const repository = sampleRepository(dir, { clock });
      const first = makeTeam(dir, 'dns-team');
      await delegateTo(repository, first, { validityMs: 8 * dayMs });
      assert.deepEqual([team(repository)?.condition, team(repository)?.version], ['unsigned', 0]);
      await signByTeam(repository, first);
      await repository.refresh();
      assert.equal(team(repository)?.condition, 'fresh');
      await clock.advance(6.5 * dayMs);
      assert.equal(team(repository)?.condition, 'soon');
      await clock.advance(2 * dayMs);
      assert.equal(team(repository)?.condition, 'expired');
      await delegateTo(repository, makeTeam(dir, 'dns-team', 'next'));
      assert.equal(team(repository)?.condition, 'refused');
    },
  );
});
