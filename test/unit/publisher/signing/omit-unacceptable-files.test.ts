// A waiting file that hosts would refuse is named with its true cause: a missing archive, an expiry, or an older release.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createOnlineSigner } from '../../../../src/cli/repository/online-signer.js';
import type { RefusedFile } from '../../../../src/server/resign/resigner.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { keysAt } from '../../../kit/repository/ceremony.js';
import { delegateTo, makeTeam, publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import {
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

/** As where metadata/ is uploaded without targets/. */
function removeArchives({ directory }: SampleRepository): void {
  fs.rmSync(`${directory}/targets/dns-edge`, { recursive: true });
}

function writ(dir: TempDir, { directory, clock }: SampleRepository, ...args: readonly string[]) {
  return runWrit([...args, '--repository', directory], { cwd: dir.path, clock });
}

async function resignByServer({ directory, keys, clock }: SampleRepository): Promise<readonly RefusedFile[]> {
  const signer = await createOnlineSigner(directory, keysAt(keys), clock, async () => 'synchronised');
  return signer.resign(['snapshot', 'timestamp'], false);
}

const missing =
  /2\.dns-team\.json cannot be published: the archive targets\/dns-edge\/\S+ is missing \[TARGET_MISSING\]/;
const upload = /Upload targets\/ of the repository in which dns-team signed/;

describe('a waiting file of a team with a missing archive', () => {
  async function missingArchive(dir: TempDir): Promise<SampleRepository> {
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ file: 'two' }, { keys: team.keys });
    removeArchives(repository);
    return repository;
  }

  it('makes writ refresh fail with the archive, the code and the remedy', longCase, async () => {
    using dir = tempDir();
    const repository = await missingArchive(dir);
    const { exitCode, stderr } = await writ(dir, repository, 'refresh', '--keys', repository.keys);
    assert.equal(exitCode, 1);
    assert.match(stderr, missing);
    assert.match(stderr, upload);
  });

  it('is named with both by writ repo status, which exits 1 and names no signature', longCase, async () => {
    using dir = tempDir();
    const repository = await missingArchive(dir);
    const { exitCode, stdout } = await writ(dir, repository, 'repo', 'status');
    assert.equal(exitCode, 1, stdout);
    assert.match(stdout, new RegExp(`^WARNING ${missing.source}\n`));
    assert.match(stdout, upload);
    assert.doesNotMatch(stdout, /waits|Next/);
    const json = JSON.parse((await writ(dir, repository, 'repo', 'status', '--json')).stdout);
    const [cause] = json.ignoredCauses;
    assert.deepEqual([json.ignored, json.waitingRoles], [['2.dns-team.json'], []]);
    assert.deepEqual([cause.name, cause.code], ['2.dns-team.json', 'TARGET_MISSING']);
  });

  it('is named with its archive by a publish of another role', async () => {
    using dir = tempDir();
    const repository = await missingArchive(dir);
    writeTree(dir.join('access'), { rule: '' });
    const args = ['publish', 'access', '--bundle', 'access', '--keys', repository.keys];
    const { exitCode, stdout } = await writ(dir, repository, ...args);
    assert.equal(exitCode, 0, stdout);
    assert.match(
      stdout,
      /leaves out {2}2\.dns-team\.json: the archive targets\/\S+ is missing \[TARGET_MISSING\]/,
    );
  });

  it('is named with both by the server', async () => {
    using dir = tempDir();
    const [file] = await resignByServer(await missingArchive(dir));
    assert.equal(file?.name, '2.dns-team.json');
    assert.match(file?.text ?? '', missing);
    assert.match(file?.text ?? '', upload);
  });
});

describe('a first file of a team with a missing archive', () => {
  it('is named by writ repo status before the role that has no published file', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team);
    await repository.publish({ file: 'one' }, { keys: team.keys });
    removeArchives(repository);
    const { stdout } = await writ(dir, repository, 'repo', 'status');
    assert.match(stdout, /^WARNING 1\.dns-team\.json cannot be published: .*\[TARGET_MISSING\]\n/);
    assert.doesNotMatch(stdout, /writ sign/);
  });
});

describe('waiting targets with a missing archive', () => {
  it('are named with the archive by writ repo check and writ repo status', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' }, { keys: someKeys(dir, repository, 'targets.key') });
    removeArchives(repository);
    const named =
      /2\.targets\.json cannot be published: the archive targets\/dns-edge\/\S+ is missing \[TARGET_MISSING\]/;
    const checked = await writ(dir, repository, 'repo', 'check');
    assert.match(checked.stderr, named);
    assert.doesNotMatch(checked.stderr, /waits for the online keys/);
    const { exitCode, stdout } = await writ(dir, repository, 'repo', 'status');
    assert.equal(exitCode, 1);
    assert.match(stdout, named);
  });
});

describe('an expired waiting file of a team', longCase, () => {
  it('is named with its expiry and the command that renews it', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const team = makeTeam(dir, 'dns-team');
    await delegateTo(repository, team, { validityMs: 86_400_000 });
    await repository.publish({ file: 'one' }, { keys: team.keys });
    await clock.advance(1.5 * 86_400_000);
    const { exitCode, stderr } = await writ(dir, repository, 'refresh', '--keys', repository.keys);
    assert.equal(exitCode, 1);
    assert.match(stderr, /1\.dns-team\.json cannot be published: .*\[METADATA_EXPIRED\]/);
    assert.match(stderr, /writ sign --role dns-team/);
  });
});
