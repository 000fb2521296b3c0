// The server compares all snapshots at each signature: one that lists nothing later than the published one is read once.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { readLaterListings } from '../../../../src/publisher/repository/seen-files.js';
import { looksBelow } from '../../../kit/disk/count-looks.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import { stateOf } from '../../../kit/repository/delegating.js';
import { metadataPath, type SampleRepository } from '../../../kit/repository/sample-repository.js';
import { forge } from '../../../kit/trust/forged-metadata.js';

function laterVersions(repository: SampleRepository): number[] {
  return (readLaterListings(stateOf(repository)).get('dns-team') ?? []).map(({ meta }) => meta.version);
}

/** @param version of the team's file that the snapshot lists */
async function listInSnapshot(repository: SampleRepository, version: number): Promise<void> {
  const meta = { 'targets.json': { version: 2 }, 'dns-team.json': { version } };
  const key = `${repository.keys}/snapshot.key`;
  const files = { from: '3.snapshot.json', to: '9.snapshot.json', key };
  await forge(repository, { ...files, members: { version: 9, meta } });
}

describe('a snapshot that lists nothing later than the published one', () => {
  it('is not read again while it stays as it is', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    const state = stateOf(repository);
    const path = metadataPath(repository, '2.snapshot.json');
    const count = async (): Promise<number> => {
      const paths = await looksBelow(path, async () => readLaterListings(state));
      return paths.length;
    };
    assert.deepEqual([await count(), await count(), await count()], [2, 1, 1]);
  });

  it('is read again where it was replaced by one of the same size and time', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    await listInSnapshot(repository, 1);
    const path = metadataPath(repository, '9.snapshot.json');
    const { atime, mtime, size } = fs.statSync(path);
    assert.deepEqual(laterVersions(repository), []);
    fs.rmSync(path);
    await listInSnapshot(repository, 2);
    fs.utimesSync(path, atime, mtime);
    assert.equal(fs.statSync(path).size, size);
    assert.deepEqual(laterVersions(repository), [2]);
  });

  it('counts again where the published snapshot lists an older file than before', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(laterVersions(repository), []);
    fs.writeFileSync(metadataPath(repository, 'timestamp.json'), before);
    assert.deepEqual(laterVersions(repository), [2]);
  });
});
