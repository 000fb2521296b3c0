// The next step that `writ repo status` shows where a version is signed and waits for the online keys.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, signByTeam } from '../../../kit/repository/delegated-repository.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';

async function delegated(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock });
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team);
  return { repository, team };
}

function status(dir: TempDir, ...args: readonly string[]) {
  return runWrit(['repo', 'status', '--repository', 'repo', ...args], { cwd: dir.path });
}

describe('writ repo status', () => {
  it('names `writ sign` while a team has not signed, and `writ refresh` once its version waits', async () => {
    using dir = tempDir();
    const { repository, team } = await delegated(dir);
    const unsigned = await status(dir);
    assert.match(unsigned.stdout, /^WARNING dns-team is not signed yet: .*\n/);
    assert.match(unsigned.stdout, /\nNext: writ sign --role dns-team /);
    await signByTeam(repository, team);
    const waiting = await status(dir);
    assert.match(waiting.stdout, /^WARNING dns-team v1 is signed and waits for the online keys\n/);
    assert.match(waiting.stdout, /\nNext: writ refresh --repository repo /);
  });

  it('names the team whose version waits, and no targets that do not wait', async () => {
    using dir = tempDir();
    const { repository, team } = await delegated(dir);
    await signByTeam(repository, team);
    await repository.refresh();
    await signByTeam(repository, team);
    assert.match((await status(dir)).stdout, /^WARNING dns-team v2 waits for the online keys\n/);
    assert.deepEqual(jsonOf(await status(dir, '--json'))['waitingRoles'], [{ role: 'dns-team', version: 2 }]);
  });
});
