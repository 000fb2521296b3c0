import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { findKeyObstacle, findWriteObstacle } from '../../../../src/publisher/upkeep/resign-obstacle.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { sampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

describe('writeObstacle', () => {
  it('finds none where the lock is missing, because a signing creates it', () => {
    using dir = tempDir();
    const { directory } = sampleRepository(dir);
    fs.rmSync(join(directory, '.lock'), { force: true });
    assert.equal(findWriteObstacle(directory), undefined);
  });
});

describe('keyObstacle', () => {
  it('is the first online role with a missing key beside another one, and none without any online key', () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const root = readRepositoryState(layoutOf(repository.directory)).live.root.signed;
    const obstacle = (...names: string[]) => findKeyObstacle(someKeys(dir, repository, ...names), root);
    assert.equal(obstacle('snapshot.key', 'timestamp.key'), undefined);
    assert.equal(obstacle('targets.key'), undefined);
    const missing = obstacle('timestamp.key');
    assert.deepEqual([missing?.code, missing?.facts['role']], ['KEYS_MISSING', 'snapshot']);
  });
});
