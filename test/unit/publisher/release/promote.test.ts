import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import {
  type PromoteResult,
  previewPromotion,
  promoteRelease,
} from '../../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { findHead } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import {
  changeOptions,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';
const canary = { channel: 'canary' };

function promote(repository: SampleRepository, from = 'canary', to = 'stable'): Promise<PromoteResult> {
  return promoteRelease({ bundle, from, to }, changeOptions(repository));
}

function entry(repository: SampleRepository, channel: string) {
  return findHead(readRepositoryState(layoutOf(repository.directory)), bundle, channel);
}

describe('promoteRelease', () => {
  it('promotes no other release than the approved one', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' }, canary);
    await repository.publish({ file: 'two' }, canary);
    const asked = (serial: number) =>
      promoteRelease({ bundle, from: 'canary', to: 'stable', serial }, changeOptions(repository));
    const before = directoryState(repository.directory);
    await rejectsCode('RELEASE_NOT_SETTLED', asked(1));
    assert.deepEqual(directoryState(repository.directory), before);
    assert.equal((await asked(2)).kind, 'live');
  });

  it('gives the same serial and the same archive bytes to the other channel', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' }, canary);
    const result = await promote(repository);
    assert.ok(result.kind === 'live');
    assert.deepEqual([result.info?.before?.serial, result.info?.after.serial], [1, 2]);
    const [from, to] = [entry(repository, 'canary'), entry(repository, 'stable')];
    assert.deepEqual(to?.file.hashes, from?.file.hashes);
    assert.deepEqual({ ...to?.release, channel: '' }, { ...from?.release, channel: '' });
    const directory = `${repository.directory}/targets/dns-edge`;
    const { sha256 = '' } = to?.file.hashes ?? {};
    const [first, second] = ['canary', 'stable'].map((name) =>
      fs.statSync(`${directory}/${sha256}.${name}.tar.br`),
    );
    assert.equal(first?.ino, second?.ino, 'one file with two names');
  });

  it('reports nothing new where the channel has it already, and writes nothing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' }, canary);
    await promote(repository);
    const before = directoryState(repository.directory);
    assert.equal((await promote(repository)).kind, 'nothing-new');
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it(
    'refuses when the channel is ahead, the serial withdrawn, or there is nothing to take',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish({ file: 'one' }, canary);
      await repository.publish({ file: 'two' });
      const ahead = await rejectsCode('RELEASE_REFUSED', promote(repository));
      assert.deepEqual([ahead.facts.expected, ahead.facts.actual], [2, 1]);
      await repository.publish({ file: 'three' }, canary);
      const options = changeOptions(repository);
      await withdrawRelease({ bundle, serials: [3], channel: 'stable', reason: '' }, options);
      await rejectsCode('RELEASE_REFUSED', promote(repository));
      await rejectsCode('RELEASE_UNKNOWN', promote(repository, 'none'));
      await rejectsCode('USAGE', promote(repository, 'stable'));
    },
  );

  it('carries on what was withdrawn on either channel', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' });
    const options = changeOptions(repository);
    await withdrawRelease({ bundle, serials: [2], reason: 'bad' }, options);
    await repository.publish({ file: 'three' }, canary);
    await promote(repository);
    const { release } = entry(repository, 'stable') ?? {};
    assert.deepEqual([release?.serial, release?.withdrawn, release?.withdrawal], [3, [2], undefined]);
  });

  it('refuses when the archive is gone', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' }, canary);
    fs.rmSync(`${repository.directory}/targets/dns-edge`, { recursive: true });
    await rejectsCode('RELEASE_UNAVAILABLE', promote(repository));
  });

  it('can be tried before without a key and without a write', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' }, canary);
    const before = directoryState(repository.directory);
    const options = changeOptions(repository, { keys: dir.join('none') });
    assert.equal(
      (await previewPromotion({ bundle, from: 'canary', to: 'stable' }, options))?.after.serial,
      1,
    );
    assert.deepEqual(directoryState(repository.directory), before);
  });
});
