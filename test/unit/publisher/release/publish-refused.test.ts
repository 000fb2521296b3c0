// A repository that somebody changed is not published to, and a cut at any write leaves one that hosts can use.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs, type FileOperation } from '../../../../src/platform/disk/durable-fs.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { seenByHost, v1, v2 } from '../../../kit/repository/published-tree.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

describe('a changed repository', longCase, () => {
  const liveBytes = (repository: SampleRepository) =>
    fs.readFileSync(metadataPath(repository, 'timestamp.json'));

  const tamperings: Readonly<Record<string, (repository: SampleRepository) => void>> = {
    'targets listing something else': (repository) => {
      const path = metadataPath(repository, '2.targets.json');
      fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace('"revision":"r1"', '"revision":"rX"'));
    },
    'targets gone': (repository) => fs.rmSync(metadataPath(repository, '2.targets.json')),
    'a snapshot of before': (repository) =>
      fs.copyFileSync(
        metadataPath(repository, '1.snapshot.json'),
        metadataPath(repository, '2.snapshot.json'),
      ),
    'a timestamp that is no JSON': (repository) =>
      fs.writeFileSync(metadataPath(repository, 'timestamp.json'), '{'),
    'a timestamp that never ends': (repository) =>
      fs.truncateSync(metadataPath(repository, 'timestamp.json'), 1_000_000),
    'a second root signed by nobody': (repository) =>
      fs.copyFileSync(repository.rootPath, metadataPath(repository, '2.root.json')),
    'a directory in place of the timestamp': (repository) => {
      fs.rmSync(metadataPath(repository, 'timestamp.json'));
      fs.mkdirSync(metadataPath(repository, 'timestamp.json'));
    },
  };
  for (const [name, tamper] of Object.entries(tamperings)) {
    it(`is not built on: ${name}`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish(v1);
      tamper(repository);
      const before = directoryState(repository.directory);
      await assert.rejects(repository.publish(v2), { code: 'REPOSITORY_INVALID' });
      assert.deepEqual(directoryState(repository.directory), before);
    });
  }

  it('cannot get its own root and targets signed: the publisher holds its copy of the root', async () => {
    using dir = tempDir();
    using other = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const foreign = sampleRepository(other, { signers: 'own' });
    await foreign.publish({ evil: 'evil' });
    fs.rmSync(repository.directory, { recursive: true });
    fs.cpSync(foreign.directory, repository.directory, { recursive: true });
    await assert.rejects(repository.publish(v2), { code: 'REPOSITORY_INVALID' });
  });

  for (const [file, more] of [
    ['archive', 'x'],
    ['snapshot', ' '],
  ] as const) {
    it(`does not publish when the ${file} changes before the timestamp is written`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish(v1);
      const before = liveBytes(repository);
      const durableFs = createDurableFs({
        after: ({ op, path }) => {
          if (op === `repo.${file}:rename`) fs.appendFileSync(path, more);
        },
      });
      await assert.rejects(repository.publish(v2, { durableFs }), { code: 'REPOSITORY_INVALID' });
      assert.deepEqual(liveBytes(repository), before);
      assert.equal((await seenByHost(repository)).release?.serial, 1);
    });
  }

  it('uses no version of a foreign file', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    fs.writeFileSync(metadataPath(repository, '7.targets.json'), 'mine');
    fs.copyFileSync(metadataPath(repository, '2.targets.json'), metadataPath(repository, '5.targets.json'));
    await repository.publish(v2);
    assert.equal(fs.readFileSync(metadataPath(repository, '7.targets.json'), 'utf8'), 'mine');
    assert.equal((await seenByHost(repository)).roles.targets.version, 8);
  });
});

describe('the order of writes', longCase, () => {
  const order = [
    'lock.open',
    'lock.holder',
    'repo.archive:write',
    'repo.bundle-directory',
    'repo.bundle-directory:flush',
    'repo.archive:rename',
    'repo.archive:flush-to',
    'repo.archive:flush-from',
    'repo.targets:write',
    'repo.targets:rename',
    'repo.targets:flush-directory',
    'repo.snapshot:write',
    'repo.snapshot:rename',
    'repo.snapshot:flush-directory',
    'repo.timestamp:write',
    'repo.timestamp:time',
    'repo.timestamp:rename',
    'repo.timestamp:flush-to',
  ];

  it('is archive, targets, snapshot, timestamp, each durable before the next', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const seen: string[] = [];
    const durableFs = createDurableFs({ after: ({ op }) => seen.push(op) });
    await repository.publish(v1, { durableFs });
    assert.deepEqual(seen, order);
  });

  it('continues where the disk cannot record the holder of the lock', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const durableFs = createDurableFs({
      before: ({ op }) => {
        if (op === 'lock.holder') throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      },
    });
    assert.equal((await repository.publish(v1, { durableFs })).kind, 'live');
  });

  // A publish goes on without a note of who holds the lock.
  const labels = order.filter((label) => label !== 'lock.holder');
  for (const moment of ['before', 'after'] as const) {
    for (const label of labels) {
      it(`failing ${moment} ${label} leaves a repository that verifies, and the next publish succeeds`, async () => {
        using dir = tempDir();
        const repository = sampleRepository(dir);
        await repository.publish({ a: 'a' }, { bundle: 'other' });
        const fail = ({ op }: FileOperation): void => {
          if (op === label) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
        };
        const durableFs = createDurableFs({ [moment]: fail });
        await assert.rejects(repository.publish(v1, { durableFs }), { code: 'DISK_FULL' });
        const { release } = await seenByHost(repository);
        const live =
          label === 'repo.timestamp:flush-to' || (moment === 'after' && label === 'repo.timestamp:rename');
        assert.equal(release?.serial, live ? 1 : undefined);
        assert.equal((await repository.publish(v1)).kind, live ? 'nothing-new' : 'live');
        assert.equal((await seenByHost(repository)).release?.serial, 1);
        assert.deepEqual(temporaryFiles(repository), []);
      });
    }
  }
});

function temporaryFiles(repository: SampleRepository): string[] {
  const names = fs.readdirSync(repository.directory, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.includes('.writ-tmp-'));
}
