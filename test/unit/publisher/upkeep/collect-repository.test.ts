import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import {
  type CollectOptions,
  planCollection,
  removeCollected,
} from '../../../../src/publisher/upkeep/collect-repository.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { delegateTo, makeTeam } from '../../../kit/repository/delegated-repository.js';
import {
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

/** Releases 1 to `count`, on the machine's time: files have no other. */
async function withReleases(dir: TempDir, count: number) {
  const clock = fakeClock({ nowMs: Date.now() });
  const repository = sampleRepository(dir, { clock });
  for (let serial = 1; serial <= count; serial += 1) await repository.publish({ file: `release ${serial}` });
  return { clock, repository };
}

function options(repository: SampleRepository, more: Partial<CollectOptions> = {}): CollectOptions {
  return { repository: repository.directory, keep: 2, graceMs: dayMs, clock: repository.clock, ...more };
}

async function collect(repository: SampleRepository, more: Partial<CollectOptions> = {}): Promise<string[]> {
  const given = options(repository, more);
  const removed = await removeCollected(planCollection(given), {
    ...given,
    durableFs: createDurableFs(),
    lockWaitMs: 0,
  });
  return removed.map(({ path }) => path);
}

describe('what an interrupted publish left', () => {
  it('is listed, and removed whatever its age', async () => {
    using dir = tempDir();
    const { repository } = await withReleases(dir, 1);
    const paths = ['.writ-tmp-a827e4370cc8', 'targets/dns-edge/.writ-tmp-b827e4370cc8'];
    for (const path of paths) fs.writeFileSync(`${repository.directory}/${path}`, 'half');
    assert.deepEqual(
      planCollection(options(repository)).map(({ kind, path, bytes }) => [kind, path, bytes]),
      paths.map((path) => ['leftover', path, 4]),
    );
    assert.deepEqual(await collect(repository), paths);
    assert.deepEqual(planCollection(options(repository)), []);
  });

  it('is not reported as removed where its writer finished meanwhile', async () => {
    using dir = tempDir();
    const { repository } = await withReleases(dir, 1);
    const path = `${repository.directory}/.writ-tmp-a827e4370cc8`;
    fs.writeFileSync(path, 'half');
    const given = options(repository);
    const planned = planCollection(given);
    fs.rmSync(path);
    const removing = { ...given, durableFs: createDurableFs(), lockWaitMs: 0 };
    assert.deepEqual(await removeCollected(planned, removing), []);
  });
});

function filesIn(repository: SampleRepository, directory: string): string[] {
  return fs.readdirSync(`${repository.directory}/${directory}`).sort();
}

describe('removeCollected', () => {
  it('keeps the last versions of each role and what they list, and every root', longCase, async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 4);
    await clock.advance(2 * dayMs);
    await collect(repository);
    assert.deepEqual(filesIn(repository, 'metadata'), [
      '1.root.json',
      '4.snapshot.json',
      '4.targets.json',
      '5.snapshot.json',
      '5.targets.json',
      'timestamp.json',
    ]);
    assert.equal(filesIn(repository, 'targets/dns-edge').length, 2);
    await repository.refresh();
    await repository.publish({ file: 'after' });
  });

  it(
    'keeps what hosts were sent to a moment ago: a client with the old snapshot still gets all of it',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository } = await withReleases(dir, 3);
      const { url, clock, rootPath } = repository;
      const source = openRepositorySource(url, { clock, version: 'test' });
      const store = memoryTrustStore(fs.readFileSync(rootPath));
      const slow = openRepositoryClient({ source, store, clock });
      await slow.refresh();
      const target = await slow.target('dns-edge', 'stable');
      await repository.publish({ file: 'newer' });
      await repository.publish({ file: 'newest' });
      assert.deepEqual(await collect(repository, { keep: 1 }), []);
      assert.ok(target);
      let bytes = 0;
      for await (const chunk of slow.streamTarget(target)) bytes += chunk.length;
      assert.equal(bytes, target.length);
    },
  );

  it('never removes what waits for the online keys', longCase, async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 2);
    const keys = someKeys(dir, repository, 'targets.key');
    await repository.publish({ file: 'waiting' }, { keys });
    await clock.advance(2 * dayMs);
    await collect(repository, { keep: 1 });
    assert.equal((await repository.refresh()).versions.targets, 4);
  });

  it(
    'keeps a release that a withdrawal could go back to as long as its version is kept',
    longCase,
    async () => {
      using dir = tempDir();
      const { clock, repository } = await withReleases(dir, 3);
      for (let week = 0; week < 5; week += 1) await repository.refresh();
      await clock.advance(2 * dayMs);
      await collect(repository, { keep: 2 });
      // Re-signing made many snapshots of one targets version: they do not push the releases out.
      assert.deepEqual(
        filesIn(repository, 'metadata').filter((name) => name.includes('targets')),
        ['3.targets.json', '4.targets.json'],
      );
      assert.equal(filesIn(repository, 'targets/dns-edge').length, 2);
    },
  );

  it('keeps the last versions of a team’s role, and what they list', longCase, async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 1);
    const team = makeTeam(dir, 'access-team');
    await delegateTo(repository, team, { paths: ['access/*'] });
    for (const rule of ['one', 'two', 'three']) {
      await repository.publish({ rule }, { bundle: 'access', keys: team.keys });
      await repository.refresh();
    }
    await clock.advance(2 * dayMs);
    await collect(repository);
    const kept = filesIn(repository, 'metadata').filter((name) => name.includes('access-team'));
    assert.deepEqual(kept, ['2.access-team.json', '3.access-team.json']);
    assert.equal(filesIn(repository, 'targets/access').length, 2);
    assert.equal(filesIn(repository, 'targets/dns-edge').length, 1);
  });

  it('leaves alone what it does not know, and removes an archive that nothing lists', async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 1);
    const stray = `${'a'.repeat(64)}.stable.tar.br`;
    for (const name of [
      'metadata/3.other.json',
      'metadata/notes.txt',
      'targets/dns-edge/readme',
      `targets/dns-edge/${stray}`,
    ])
      fs.writeFileSync(`${repository.directory}/${name}`, '');
    // Its upload may have begun a moment ago, before the metadata that lists it.
    assert.deepEqual(await collect(repository), []);
    await clock.advance(2 * dayMs);
    assert.deepEqual(await collect(repository), [`targets/dns-edge/${stray}`]);
    assert.ok(filesIn(repository, 'metadata').includes('3.other.json'));
  });

  it('removes nothing that a person has not seen, and a plan writes nothing', longCase, async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 4);
    await clock.advance(2 * dayMs);
    const before = directoryState(repository.directory);
    const planned = planCollection(options(repository));
    assert.deepEqual(directoryState(repository.directory), before);
    const given = { ...options(repository), durableFs: createDurableFs(), lockWaitMs: 0 };
    const removed = await removeCollected(planned.slice(0, 1), given);
    assert.deepEqual(
      removed.map(({ path }) => path),
      [planned[0]?.path],
    );
  });

  it('killed midway leaves every retained file intact, and continues at the next run', longCase, async () => {
    using dir = tempDir();
    const { clock, repository } = await withReleases(dir, 5);
    await clock.advance(2 * dayMs);
    const given = options(repository);
    let removals = 0;
    const durableFs = createDurableFs({
      before: ({ op }) => {
        if (op === 'repo.gc') removals += 1;
        if (removals > 2) throw new Error('killed');
      },
    });
    await assert.rejects(
      removeCollected(planCollection(given), { ...given, durableFs, lockWaitMs: 0 }),
      /killed/,
    );
    await repository.refresh();
    await collect(repository);
    assert.deepEqual(planCollection(given), []);
  });

  it('refuses a repository that does not verify', longCase, async () => {
    using dir = tempDir();
    const { repository } = await withReleases(dir, 1);
    fs.appendFileSync(`${repository.directory}/metadata/2.targets.json`, ' ');
    await rejectsCode(
      'REPOSITORY_INVALID',
      collect(repository).then(() => undefined),
    );
  });
});
