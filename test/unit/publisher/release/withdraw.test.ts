import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { promoteRelease } from '../../../../src/publisher/release/promote.js';
import {
  previewWithdrawal,
  type WithdrawRequest,
  type WithdrawResult,
  withdrawRelease,
} from '../../../../src/publisher/release/withdraw.js';
import { findHead } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import {
  changeOptions,
  metadataPath,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';

function withdraw(
  repository: SampleRepository,
  serials: readonly number[],
  more: Partial<WithdrawRequest> = {},
): Promise<WithdrawResult> {
  return withdrawRelease({ bundle, serials, reason: '', ...more }, changeOptions(repository));
}

function head(repository: SampleRepository, channel = 'stable') {
  return findHead(readRepositoryState(layoutOf(repository.directory)), bundle, channel)?.release;
}

/** A repository with releases 1 to `count` on stable. */
async function withReleases(dir: TempDir, count: number): Promise<SampleRepository> {
  const repository = sampleRepository(dir);
  for (let serial = 1; serial <= count; serial += 1) await repository.publish({ file: `release ${serial}` });
  return repository;
}

describe('withdrawRelease', () => {
  it(
    'points the channel at the newest release that is not withdrawn, and signs the list',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = await withReleases(dir, 3);
      const before = head(repository);
      const result = await withdraw(repository, [3], { reason: 'view eu is broken' });
      assert.equal(result.kind, 'live');
      const after = head(repository);
      assert.deepEqual([before?.serial, after?.serial, after?.withdrawn, after?.revision], [3, 2, [3], 'r2']);
      assert.deepEqual(after?.withdrawal, {
        serials: [3],
        atMs: repository.clock.nowMs(),
        reason: 'view eu is broken',
      });
    },
  );

  it(
    'carries the list on: every later release has it, and its serial is above every one ever used',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = await withReleases(dir, 3);
      await withdraw(repository, [3]);
      await withdraw(repository, [2]);
      const published = await repository.publish({ file: 'mended' });
      assert.deepEqual([published.release.serial, published.release.withdrawn], [4, [2, 3]]);
      assert.equal(head(repository)?.withdrawal, undefined);
      await withdraw(repository, [4]);
      assert.deepEqual([head(repository)?.serial, head(repository)?.withdrawn], [1, [2, 3, 4]]);
    },
  );

  it('lists an older release as withdrawn while its channel stays', longCase, async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 3);
    const result = await withdraw(repository, [2]);
    assert.ok(result.kind === 'live' && result.info?.length === 1);
    assert.deepEqual([head(repository)?.serial, head(repository)?.withdrawn], [3, [2]]);
  });

  it('reports nothing new, and writes nothing, where it was withdrawn before', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    await withdraw(repository, [2]);
    const before = directoryState(repository.directory);
    assert.equal((await withdraw(repository, [2])).kind, 'nothing-new');
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('goes to the release that is asked for, when all above it are withdrawn', longCase, async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 4);
    const error = await rejectsCode('RELEASE_REFUSED', withdraw(repository, [4], { to: 2 }));
    assert.deepEqual(error.facts['standing'], [3]);
    assert.match(error.hint, /--serial 3/);
    await withdraw(repository, [3, 4], { to: 2 });
    assert.deepEqual([head(repository)?.serial, head(repository)?.withdrawn], [2, [3, 4]]);
  });

  it('refuses to go to a withdrawn or an unknown release, or to promise a move that nothing makes', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 3);
    await rejectsCode('RELEASE_REFUSED', withdraw(repository, [2, 3], { to: 2 }));
    await rejectsCode('RELEASE_UNKNOWN', withdraw(repository, [3], { to: 9 }));
    await rejectsCode('RELEASE_REFUSED', withdraw(repository, [2], { to: 1 }));
    await rejectsCode('RELEASE_UNKNOWN', withdraw(repository, [4]));
    await rejectsCode('RELEASE_UNKNOWN', withdraw(repository, [1], { bundle: 'other' }));
    await rejectsCode('RELEASE_UNKNOWN', withdraw(repository, [1], { channel: 'canary' }));
    await rejectsCode('USAGE', withdraw(repository, [3], { reason: 'two\nlines' }));
    assert.equal(head(repository)?.serial, 3);
  });

  it('fails with that reason where no release is left or the archive is lost, and changes nothing', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    const before = directoryState(`${repository.directory}/metadata`);
    await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [1, 2]));
    const first = JSON.parse(fs.readFileSync(metadataPath(repository, '2.targets.json'), 'utf8'));
    const { sha256 } = first.signed.targets['dns-edge/stable.tar.br'].hashes;
    fs.rmSync(`${repository.directory}/targets/dns-edge/${sha256}.stable.tar.br`);
    const error = await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [2]));
    assert.equal(error.facts['serial'], 1);
    assert.deepEqual(directoryState(`${repository.directory}/metadata`), before);
  });

  it('names the channel on which it can be done, where another one has nothing left', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 1);
    const options = changeOptions(repository);
    await repository.publish({ file: 'two' }, { channel: 'staging' });
    await promoteRelease({ bundle, from: 'staging', to: 'stable' }, options);
    const error = await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [2]));
    assert.match(error.hint, /^`--channel stable` withdraws it there; on staging, publish/);
    const named = await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [2], { channel: 'staging' }));
    assert.match(named.hint, /^Publish a good tree first/);
    assert.equal((await withdraw(repository, [2], { channel: 'stable' })).kind, 'live');
    assert.equal(head(repository)?.serial, 1);
  });

  it('proposes no channel without another release, or without this one', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 1);
    await repository.publish({ file: 'two' }, { channel: 'staging' });
    await promoteRelease({ bundle, from: 'staging', to: 'canary' }, changeOptions(repository));
    const error = await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [2]));
    assert.match(error.hint, /^Publish a good tree first/);
  });

  it('goes back on the channel itself where another one had a newer release, whatever a foreign file lists', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 1);
    await repository.publish({ file: 'two' }, { channel: 'canary' });
    await repository.publish({ file: 'three' });
    const text = fs.readFileSync(metadataPath(repository, '4.targets.json'), 'utf8');
    fs.writeFileSync(metadataPath(repository, '9.targets.json'), text.replaceAll('"serial":3', '"serial":9'));
    const moves = previewWithdrawal({ bundle, serials: [3], reason: '' }, changeOptions(repository));
    assert.deepEqual(
      moves.map(({ before, after }) => [before.channel, before.serial, after.serial]),
      [
        ['canary', 2, 2],
        ['stable', 3, 1],
      ],
    );
  });

  it('takes the release back on every channel, or on the one that is named', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' }, { channel: 'canary' });
    await repository.publish({ file: 'three' }, { channel: 'canary' });
    await withdraw(repository, [3]);
    assert.deepEqual([head(repository)?.serial, head(repository)?.withdrawn], [1, [3]]);
    assert.deepEqual([head(repository, 'canary')?.serial, head(repository, 'canary')?.withdrawn], [2, [3]]);
    await withdraw(repository, [2], { channel: 'canary', to: 1 });
    assert.deepEqual([head(repository)?.serial, head(repository)?.withdrawn], [1, [3]]);
    // Serial 1 was only ever on stable: its archive is there under the channel's name too.
    assert.deepEqual(
      [head(repository, 'canary')?.serial, head(repository, 'canary')?.channel],
      [1, 'canary'],
    );
    assert.equal((await repository.refresh()).versions.timestamp > 0, true);
  });

  it('brings nothing back by another channel that was withdrawn on its own', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    for (const file of ['one', 'two']) await repository.publish({ file });
    await withdraw(repository, [1]);
    await repository.publish({ file: 'three' }, { channel: 'canary' });
    const before = directoryState(repository.directory);
    const error = await rejectsCode(
      'RELEASE_REFUSED',
      withdraw(repository, [3], { channel: 'canary', to: 1 }),
    );
    assert.deepEqual([error.facts['serial'], error.facts['channel']], [1, 'stable']);
    assert.deepEqual(directoryState(repository.directory), before);
    await withdraw(repository, [3], { channel: 'canary', to: 2 });
    assert.equal(head(repository, 'canary')?.serial, 2);
  });

  it('does not trust older metadata that the present keys did not sign', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    const path = metadataPath(repository, '2.targets.json');
    const file = JSON.parse(fs.readFileSync(path, 'utf8'));
    file.signed.targets['dns-edge/stable.tar.br'].custom.writ.revision = 'forged';
    fs.writeFileSync(path, JSON.stringify(file));
    await rejectsCode('RELEASE_UNAVAILABLE', withdraw(repository, [2]));
  });

  it('without the online keys signs targets, and a refresh publishes them', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    const keys = someKeys(dir, repository, 'targets.key');
    const options = changeOptions(repository, { keys });
    const result = await withdrawRelease({ bundle, serials: [2], reason: '' }, options);
    assert.deepEqual(result.kind === 'waiting' && result.missing, ['snapshot', 'timestamp']);
    const live = readRepositoryState(layoutOf(repository.directory)).live.targets.signed.version;
    await repository.refresh();
    const after = readRepositoryState(layoutOf(repository.directory)).live.targets.signed.version;
    assert.deepEqual([after - live, head(repository)?.serial], [1, 1]);
  });

  it('names the missing keys', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    const options = changeOptions(repository, { keys: someKeys(dir, repository, 'snapshot.key') });
    await rejectsCode('KEYS_MISSING', withdrawRelease({ bundle, serials: [2], reason: '' }, options));
  });

  it('killed before its timestamp is written, it is finished by the same command', longCase, async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 2);
    const durableFs = createDurableFs({
      before: ({ op }) => {
        if (op.startsWith('repo.timestamp')) throw new Error('killed');
      },
    });
    const request = { bundle, serials: [2], reason: '' };
    await assert.rejects(withdrawRelease(request, changeOptions(repository, { durableFs })), /killed/);
    const again = await withdrawRelease(request, changeOptions(repository));
    assert.equal(again.kind, 'live');
    assert.equal(readRepositoryState(layoutOf(repository.directory)).live.targets.signed.version, 4);
  });

  it('can be tried before without a key and without a write', longCase, async () => {
    using dir = tempDir();
    const repository = await withReleases(dir, 3);
    const before = directoryState(repository.directory);
    const options = changeOptions(repository, { keys: dir.join('none') });
    const [move] = previewWithdrawal({ bundle, serials: [3], reason: '' }, options);
    assert.deepEqual([move?.before.serial, move?.after.serial], [3, 2]);
    throwsCode('RELEASE_UNKNOWN', () => previewWithdrawal({ bundle, serials: [9], reason: '' }, options));
    assert.deepEqual(directoryState(repository.directory), before);
  });
});
