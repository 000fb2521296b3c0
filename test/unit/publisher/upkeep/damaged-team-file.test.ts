// The listed file of a team is missing or differs: status and refresh name this cause, and no signature that would not help.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam, publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import { metadataPath, type SampleRepository } from '../../../kit/repository/sample-repository.js';

function writ(dir: TempDir, { directory, clock }: SampleRepository, ...args: readonly string[]) {
  return runWrit([...args, '--repository', directory], { cwd: dir.path, clock });
}

describe('a listed file of a team', () => {
  it('makes repo status and refresh name the file and a copy of it where it is missing', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    fs.rmSync(metadataPath(repository, '1.dns-team.json'));
    const { exitCode, stdout } = await writ(dir, repository, 'repo', 'status');
    assert.equal(exitCode, 2);
    assert.match(stdout, /^CRITICAL the repository has no 1\.dns-team\.json: .*\[METADATA_MISSING\]\n/);
    assert.match(stdout, /Restore metadata\/1\.dns-team\.json from a copy of the repository/);
    assert.doesNotMatch(stdout, /writ sign/);
    const refreshed = await writ(dir, repository, 'refresh', '--keys', repository.keys);
    assert.equal(refreshed.exitCode, 0);
    assert.match(refreshed.stderr, /has no 1\.dns-team\.json \[METADATA_MISSING\]: Restore metadata\//);
  });

  it('makes repo status and refresh name the difference where it is another file', longCase, async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    const path = metadataPath(repository, '1.dns-team.json');
    fs.writeFileSync(path, JSON.stringify(JSON.parse(fs.readFileSync(path, 'utf8')), null, 2));
    const { stdout } = await writ(dir, repository, 'repo', 'status');
    assert.match(stdout, /^CRITICAL .*\(dns-team\) \[METADATA_MIX\]\n/);
    assert.doesNotMatch(stdout, /writ sign/);
    const { stderr } = await writ(dir, repository, 'refresh', '--keys', repository.keys);
    assert.match(stderr, /\[METADATA_MIX\]: Restore metadata\/1\.dns-team\.json/);
  });

  it('makes repo status name the keys, and refresh warn of nothing, where only the keys changed', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    await delegateTo(repository, makeTeam(dir, 'dns-team', 'next'));
    const { stdout } = await writ(dir, repository, 'repo', 'status');
    assert.match(stdout, /^CRITICAL dns-team is not signed by the keys that targets lists now/);
    const { stderr } = await writ(dir, repository, 'refresh', '--keys', repository.keys);
    assert.doesNotMatch(stderr, /Restore/);
  });
});
