import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import {
  invalid,
  isWaiting,
  readRepositoryState,
} from '../../../../src/publisher/repository/repository-state.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { metadataPath, sampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

describe('readRepositoryState', () => {
  it('ignores newer targets that the root does not vouch for, and is not stopped by them', async () => {
    using dir = tempDir();
    using other = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const foreign = sampleRepository(other, { signers: 'own' });
    for (const file of ['b', 'c']) await foreign.publish({ file });
    const name = '3.targets.json';
    fs.copyFileSync(metadataPath(foreign, name), metadataPath(repository, name));
    const state = readRepositoryState(layoutOf(repository.directory));
    const ignored = state.ignored.map((file) => file.name);
    assert.deepEqual([state.targets.signed.version, isWaiting(state), ignored], [2, false, [name]]);
  });

  it('is waiting where newer targets of its own keys are there', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' }, { keys: someKeys(dir, repository, 'targets.key') });
    assert.equal(isWaiting(readRepositoryState(layoutOf(repository.directory))), true);
  });
});

describe('invalid', () => {
  it('leaves errors of the disk, of Writ and its own as they are', () => {
    const codes = ['DISK_FAILED', 'REPOSITORY_INVALID'] as const;
    for (const error of [...codes.map((code) => new WritError(code, 'x')), new TypeError('a mistake')])
      assert.equal(invalid(error), error);
  });

  it('names the signers of an expired role of people, and no remedy of a host', () => {
    const hintOf = (code: 'METADATA_EXPIRED' | 'METADATA_MIX', role: string): string => {
      const error = invalid(new WritError(code, 'x', { facts: { role }, hint: 'Of the error.' }));
      assert.ok(error instanceof WritError);
      assert.deepEqual([error.code, error.facts['clientCode']], ['REPOSITORY_INVALID', code]);
      return error.hint;
    };
    assert.equal(hintOf('METADATA_EXPIRED', 'targets'), 'Of the error.');
    assert.notEqual(hintOf('METADATA_EXPIRED', 'timestamp'), 'Of the error.');
    assert.notEqual(hintOf('METADATA_MIX', 'targets'), 'Of the error.');
  });
});
