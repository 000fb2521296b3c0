// A waiting file of a replaced team key stays until the team signs: it stops neither `writ refresh` nor the server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { openOnlineSigners } from '../../../../src/publisher/signing/online-signing.js';
import { resignDueRoles } from '../../../../src/publisher/signing/resign-online.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { keysAt } from '../../../kit/repository/ceremony.js';
import { delegateTo, makeTeam, publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import { live } from '../../../kit/repository/delegating.js';
import { type SampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

/** The key change is published, and the file of the replaced key waits. */
async function replacedKey(dir: TempDir): Promise<SampleRepository> {
  const { repository, team } = await publishedByTeam(dir);
  await repository.publish({ file: 'waits' }, { keys: team.keys });
  await delegateTo(repository, makeTeam(dir, 'dns-team', 'next'));
  return repository;
}

async function resignByServer(
  repository: SampleRepository,
  isDueByTime: boolean,
): Promise<readonly string[]> {
  const keys = keysAt(repository.keys);
  const ignored = await resignDueRoles({
    repository: repository.directory,
    signers: await openOnlineSigners(repository.directory, keys),
    roles: ['snapshot', 'timestamp'],
    isDueByTime,
    keysDirectory: keys.path,
    clock: repository.clock,
    durableFs: createDurableFs(),
    holder: 'serve',
    lockWaitMs: 0,
  });
  return ignored.map(({ name }) => name);
}

describe('a waiting file of a replaced team key', () => {
  it('does not stop a refresh, which names the file', async () => {
    using dir = tempDir();
    const repository = await replacedKey(dir);
    const { ignored, wentLive } = await repository.refresh();
    assert.deepEqual([ignored.map(({ name }) => name), wentLive], [['2.dns-team.json'], []]);
  });

  it('does not make the server sign by itself, and is published by no signature that is due by time', async () => {
    using dir = tempDir();
    const repository = await replacedKey(dir);
    const before = directoryState(`${repository.directory}/metadata`);
    assert.deepEqual(await resignByServer(repository, false), ['2.dns-team.json']);
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
    assert.deepEqual(await resignByServer(repository, true), ['2.dns-team.json']);
    assert.notDeepEqual(directoryState(`${repository.directory}/metadata`), before);
  });

  it('does not delay the release of another role', longCase, async () => {
    using dir = tempDir();
    const repository = await replacedKey(dir);
    const office = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ rule: '' }, { bundle: 'access', keys: office });
    assert.deepEqual(await resignByServer(repository, false), ['2.dns-team.json']);
    assert.deepEqual(live(repository), ['access 1 targets']);
  });
});
