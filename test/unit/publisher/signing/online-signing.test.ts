import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { openOnlineSigners } from '../../../../src/publisher/signing/online-signing.js';
import { resignOnline } from '../../../../src/publisher/signing/resign-online.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import { metadataPath, sampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;
const passphrases = { ask: async () => undefined };

describe('resignOnline', () => {
  it('signs the timestamp alone, and leaves the snapshot as it is', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const { versions } = await repository.refresh(['timestamp']);
    assert.deepEqual(versions, { targets: 2, snapshot: 2, timestamp: 3 });
    assert.ok(!fs.existsSync(metadataPath(repository, '3.snapshot.json')));
  });

  it('signs the snapshot where it is asked for, though nothing waits and nothing has expired', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const { versions } = await repository.refresh();
    assert.deepEqual(versions, { targets: 2, snapshot: 3, timestamp: 3 });
  });

  it('publishes the file of a team with the timestamp, though the targets are the same', async () => {
    using dir = tempDir();
    const { repository, team } = await publishedByTeam(dir);
    await repository.publish({ file: 'two' }, { keys: team.keys });
    const { wentLive } = await repository.refresh(['timestamp']);
    assert.deepEqual(wentLive, [{ role: 'dns-team', version: 2 }]);
  });

  it('signs both, each with its full validity period from now', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await clock.advance(40 * dayMs);
    const { versions } = await repository.refresh();
    assert.deepEqual(versions, { targets: 1, snapshot: 2, timestamp: 2 });
    const expires = (name: string): number =>
      Date.parse(JSON.parse(fs.readFileSync(metadataPath(repository, name), 'utf8')).signed.expires);
    assert.equal(expires('timestamp.json'), clock.nowMs() + 7 * dayMs);
    assert.equal(expires('2.snapshot.json'), clock.nowMs() + 30 * dayMs);
  });

  it('needs only the two online keys', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const keys = dir.join('server-keys');
    fs.mkdirSync(keys);
    for (const name of ['snapshot.key', 'timestamp.key'])
      fs.copyFileSync(`${repository.keys}/${name}`, `${keys}/${name}`);
    const signers = await openOnlineSigners(repository.directory, { path: keys, passphrases });
    const { versions } = await resignOnline({
      repository: repository.directory,
      signers,
      roles: ['snapshot', 'timestamp'],
      clock: repository.clock,
      durableFs: createDurableFs(),
      holder: 'serve',
      lockWaitMs: 0,
    });
    assert.equal(versions.timestamp, 3);
  });

  it('opens no other key file', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    fs.writeFileSync(`${repository.keys}/targets.key`, 'not a key file');
    fs.writeFileSync(`${repository.keys}/root-1.key`, 'not a key file');
    assert.equal((await repository.refresh()).versions.timestamp, 2);
  });

  it('names the missing key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    fs.rmSync(`${repository.keys}/timestamp.key`);
    await assert.rejects(repository.refresh(), { code: 'KEYS_MISSING' });
  });

  it('signs nothing while targets have expired: hosts would refuse them', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await clock.advance(366 * dayMs);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    await assert.rejects(repository.refresh(), { code: 'REPOSITORY_INVALID' });
    assert.deepEqual(fs.readFileSync(metadataPath(repository, 'timestamp.json')), before);
  });

  it('publishes no targets that do not verify, and reports them while the timestamp is new', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ a: 'a' });
    fs.copyFileSync(metadataPath(repository, '2.targets.json'), metadataPath(repository, '3.targets.json'));
    const before = directoryState(`${repository.directory}/metadata`);
    await assert.rejects(repository.refresh(), { code: 'REPOSITORY_INVALID' });
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
    await clock.advance(2 * dayMs);
    const { versions, ignored: files } = await repository.refresh();
    const ignored = files.map(({ name }) => name);
    assert.equal(versions.targets, 2);
    assert.deepEqual(ignored, ['3.targets.json']);
  });

  it('writes no snapshot that hosts would refuse', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' }, { keys: someKeys(dir, repository, 'targets.key') });
    fs.rmSync(`${repository.directory}/targets/dns-edge`, { recursive: true });
    const before = directoryState(`${repository.directory}/metadata`);
    await assert.rejects(repository.refresh(), { code: 'REPOSITORY_INVALID' });
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
  });

  it('publishes a waiting file beside one that does not verify, also while the timestamp is young', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' }, { keys: someKeys(dir, repository, 'targets.key') });
    fs.copyFileSync(metadataPath(repository, '2.targets.json'), metadataPath(repository, '3.targets.json'));
    const { versions, ignored: files } = await repository.refresh();
    const ignored = files.map(({ name }) => name);
    assert.deepEqual([versions.targets, ignored], [2, ['3.targets.json']]);
  });

  it('reads at most sixty-four newer files that do not verify', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ a: 'a' });
    for (let version = 3; version < 203; version += 1)
      fs.writeFileSync(metadataPath(repository, `${version}.targets.json`), '{}');
    await clock.advance(2 * dayMs);
    const { versions, ignored: files } = await repository.refresh();
    const ignored = files.map(({ name }) => name);
    assert.equal(versions.targets, 2);
    assert.equal(ignored.length, 64);
    assert.deepEqual([ignored[0], ignored.at(-1)], ['202.targets.json', '139.targets.json']);
  });

  it('does not publish waiting targets when their archive is missing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = dir.join('offline');
    fs.cpSync(repository.keys, keys, { recursive: true });
    fs.rmSync(`${keys}/timestamp.key`);
    await repository.publish({ a: 'a' }, { keys });
    fs.rmSync(`${repository.directory}/targets/dns-edge`, { recursive: true });
    await assert.rejects(repository.refresh(), { code: 'REPOSITORY_INVALID' });
  });
});
