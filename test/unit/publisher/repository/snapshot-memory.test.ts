// The server compares all snapshots at each signature: one that lists nothing later than the published one is read once.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createOnlineSigner } from '../../../../src/cli/repository/online-signer.js';
import { readLaterListings } from '../../../../src/publisher/repository/seen-files.js';
import { createSnapshotMemory } from '../../../../src/publisher/repository/snapshot-memory.js';
import { readCallsBelow } from '../../../kit/disk/count-looks.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { keysAt } from '../../../kit/repository/ceremony.js';
import { delegatedRepository, publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import { stateOf } from '../../../kit/repository/delegating.js';
import { metadataPath, type SampleRepository } from '../../../kit/repository/sample-repository.js';
import { forge } from '../../../kit/trust/forged-metadata.js';

/** @returns a comparison that remembers the earlier ones */
function comparison(repository: SampleRepository): () => number[] {
  const snapshotMemory = createSnapshotMemory();
  return () => {
    const listings = readLaterListings({ ...stateOf(repository), snapshotMemory });
    return (listings.get('dns-team') ?? []).map(({ meta }) => meta.version);
  };
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
      const paths = await readCallsBelow(path, async () => readLaterListings(state));
      return paths.length;
    };
    assert.deepEqual([await count(), await count(), await count()], [2, 1, 1]);
  });

  it('is read again where it was replaced by one of the same size and time', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    const laterVersions = comparison(repository);
    await listInSnapshot(repository, 1);
    const path = metadataPath(repository, '9.snapshot.json');
    const { atime, mtime, size } = fs.statSync(path);
    assert.deepEqual(laterVersions(), []);
    fs.rmSync(path);
    await listInSnapshot(repository, 2);
    fs.utimesSync(path, atime, mtime);
    assert.equal(fs.statSync(path).size, size);
    assert.deepEqual(laterVersions(), [2]);
  });

  it('counts again where the published snapshot lists an older file than before', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    const laterVersions = comparison(repository);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    await repository.publish({ file: 'two' }, { keys: team.keys });
    await repository.refresh();
    assert.deepEqual(laterVersions(), []);
    fs.writeFileSync(metadataPath(repository, 'timestamp.json'), before);
    assert.deepEqual(laterVersions(), [2]);
  });

  it('is read once by a server that signs again while a team is unsigned', async () => {
    using dir = tempDir();
    const { repository } = await delegatedRepository(dir);
    await repository.refresh();
    const { directory, keys, clock } = repository;
    const signer = await createOnlineSigner(directory, keysAt(keys), clock, async () => 'synchronised');
    const path = metadataPath(repository, '2.snapshot.json');
    const count = async (): Promise<number> =>
      (await readCallsBelow(path, () => signer.resign(['snapshot', 'timestamp'], true))).length;
    await count();
    const [second, third] = [await count(), await count()];
    assert.deepEqual([second, third], [1, 1], 'only its status is read');
  });
});
