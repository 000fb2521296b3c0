// Deltas go where their release goes: to another channel, back to an older serial, into an export; they are checked with it, and
// collected with it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { promoteRelease } from '../../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { findHead } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { checkRepository } from '../../../../src/publisher/upkeep/check-repository.js';
import { planCollection, removeCollected } from '../../../../src/publisher/upkeep/collect-repository.js';
import { exportRepository } from '../../../../src/publisher/upkeep/export-repository.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { listOf, withLine } from '../../../kit/delta/list-tree.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import {
  changeOptions,
  noReport,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';
const list = listOf(2000);

/** Releases 1 to `count`, on the machine's time: files have no other. */
async function withReleases(dir: TempDir, count: number, channel = 'stable') {
  const clock = fakeClock({ nowMs: Date.now() });
  const repository = sampleRepository(dir, { clock });
  const publish = (serial: number) =>
    repository.publish({ list: withLine(list, listOf(serial, serial)) }, { channel });
  for (let serial = 1; serial <= count; serial += 1) await publish(serial);
  return { clock, repository, publish };
}

function deltasOf({ directory }: SampleRepository, channel = 'stable') {
  return findHead(readRepositoryState(layoutOf(directory)), bundle, channel)?.release.deltas ?? [];
}

function deltaFiles(directory: string): string[] {
  return fs
    .readdirSync(join(directory, 'targets', bundle))
    .filter((name) => name.endsWith('.delta'))
    .sort();
}

function namesIn(repository: SampleRepository, channel = 'stable'): string[] {
  return deltasOf(repository, channel)
    .map(({ digest }) => `${digest.slice(7)}.${channel}.delta`)
    .sort();
}

function check({ directory, clock }: SampleRepository) {
  return checkRepository({ repository: directory, limits: defaultArchiveLimits, clock, report: noReport });
}

describe('the deltas of a release', () => {
  it('go to another channel with it, under names of that channel', longCase, async () => {
    using dir = tempDir();
    const { repository } = await withReleases(dir, 3, 'canary');
    await promoteRelease({ bundle, from: 'canary', to: 'stable' }, changeOptions(repository));
    assert.equal(deltasOf(repository).length, 2);
    assert.deepEqual(deltasOf(repository), deltasOf(repository, 'canary'));
    for (const name of namesIn(repository)) assert.ok(deltaFiles(repository.directory).includes(name));
    assert.deepEqual((await check(repository)).problems, []);
  });

  it(
    'come back with it when a later one is withdrawn, as far as they are still there',
    longCase,
    async () => {
      using dir = tempDir();
      const { repository } = await withReleases(dir, 4);
      const state = readRepositoryState(layoutOf(repository.directory));
      const before = findHead(state, bundle, 'stable')?.release.serial;
      assert.equal(before, 4);
      const [gone] = [...deltaFiles(repository.directory)].filter(
        (name) => !namesIn(repository).includes(name),
      );
      const withdraw = (serial: number) =>
        withdrawRelease({ bundle, serials: [serial], reason: '' }, changeOptions(repository));
      await withdraw(4);
      assert.equal(deltasOf(repository).length, 3);
      assert.deepEqual((await check(repository)).problems, []);
      fs.rmSync(join(repository.directory, 'targets', bundle, gone ?? ''));
      await withdraw(3);
      const there = deltaFiles(repository.directory);
      for (const name of namesIn(repository)) assert.ok(there.includes(name));
    },
  );

  it('are made from the releases of the hosts of a channel: from the withdrawn one, and from the one before', async () => {
    using dir = tempDir();
    const { repository, publish } = await withReleases(dir, 2);
    const bad = await publish(3);
    await withdrawRelease({ bundle, serials: [3], reason: '' }, changeOptions(repository));
    const bases = deltasOf(repository).map(({ from }) => from);
    assert.equal(bases[0], bad.release.manifest.digest);
    assert.equal(bases.length, 2);
    const next = await repository.publish({ list: withLine(list, 'next') }, { channel: 'canary' });
    assert.equal(next.release.deltas, undefined);
    await promoteRelease({ bundle, from: 'canary', to: 'stable' }, changeOptions(repository));
    assert.equal(deltasOf(repository).length, 3);
    assert.deepEqual(deltasOf(repository, 'canary'), []);
    const { problems, notes } = await check(repository);
    assert.deepEqual([problems, notes], [[], []]);
  });

  it('are not made again for a release that stays, nor where deltas are off', async () => {
    using dir = tempDir();
    const { repository, publish } = await withReleases(dir, 2);
    await repository.publish({ list: withLine(list, 'three') }, { deltas: 0 });
    await withdrawRelease({ bundle, serials: [1], reason: '' }, changeOptions(repository));
    assert.deepEqual(deltasOf(repository), []);
    await publish(4);
    const options = { ...changeOptions(repository), deltas: 0 };
    await withdrawRelease({ bundle, serials: [4], reason: '' }, options);
    assert.deepEqual(deltasOf(repository), []);
  });

  it('are left out where the archive of a base is gone', longCase, async () => {
    using dir = tempDir();
    const { repository, publish } = await withReleases(dir, 2);
    const targets = join(repository.directory, 'targets', bundle);
    const before = fs.readdirSync(targets);
    await publish(3);
    const added = fs.readdirSync(targets).find((name) => name.endsWith('.tar.br') && !before.includes(name));
    fs.rmSync(join(targets, added ?? ''));
    await withdrawRelease({ bundle, serials: [3], reason: '' }, changeOptions(repository));
    assert.equal(deltasOf(repository).length, 1);
  });

  it('are not promised where their files are gone', async () => {
    using dir = tempDir();
    const { repository } = await withReleases(dir, 3, 'canary');
    const directory = join(repository.directory, 'targets', bundle);
    const [first = '', second = ''] = namesIn(repository, 'canary');
    fs.rmSync(join(directory, first));
    await promoteRelease({ bundle, from: 'canary', to: 'stable' }, changeOptions(repository));
    assert.deepEqual(namesIn(repository), [second.replace('canary', 'stable')]);
  });

  it('stay as long as a kept version lists them, and are collected with it', async () => {
    using dir = tempDir();
    const { clock, repository, publish } = await withReleases(dir, 4);
    await clock.advance(2 * 86_400_000);
    const given = { repository: repository.directory, keep: 1, graceMs: 86_400_000, clock };
    assert.ok(deltaFiles(repository.directory).length > 3);
    const kinds = planCollection(given).flatMap(({ kind, path }) => (path.endsWith('.delta') ? [kind] : []));
    assert.deepEqual([...new Set(kinds)], ['delta']);
    await removeCollected(planCollection(given), { ...given, durableFs: createDurableFs(), lockWaitMs: 0 });
    assert.deepEqual(deltaFiles(repository.directory), namesIn(repository));
    assert.equal(deltasOf(repository).length, 3);
    const { problems, notes } = await check(repository);
    assert.deepEqual(problems, []);
    assert.match(notes.join(), /the bases of 3 deltas are gone/);
    await repository.refresh();
    assert.equal((await publish(5)).release.deltas?.length, 1);
  });

  it('are counted, and one with a lost base is reported', async () => {
    using dir = tempDir();
    const { repository, publish } = await withReleases(dir, 1);
    const targets = join(repository.directory, 'targets', bundle);
    const [base = ''] = fs.readdirSync(targets);
    await publish(2);
    assert.equal((await check(repository)).deltas, 1);
    fs.rmSync(join(targets, base));
    const { problems, notes } = await check(repository);
    assert.deepEqual(problems, []);
    assert.deepEqual(notes, ['the base of 1 delta is gone: compared by digest only']);
  });

  it('are exported with it, and go with it', async () => {
    using dir = tempDir();
    const { repository, publish } = await withReleases(dir, 3);
    const directory = dir.join('stick');
    const { clock } = repository;
    const durableFs = createDurableFs();
    const options = {
      repository: repository.directory,
      directory,
      clock,
      durableFs,
      lockWaitMs: 0,
      report: noReport,
    };
    const { copied } = await exportRepository(options);
    assert.equal(copied, 3);
    assert.deepEqual(deltaFiles(directory), namesIn(repository));
    await publish(4);
    assert.equal((await exportRepository(options)).copied, 4);
    assert.deepEqual(deltaFiles(directory), namesIn(repository));
    // Exported anew it has to be, and what lies in the repository is not the one that was signed.
    const [name = ''] = deltaFiles(directory);
    fs.rmSync(join(directory, 'targets', bundle, name));
    fs.appendFileSync(join(repository.directory, 'targets', bundle, name), ' ');
    await assert.rejects(exportRepository(options), { code: 'REPOSITORY_INVALID' });
  });

  for (const [what, code, harm] of [
    ['gone', 'TARGET_MISSING', (path: string) => fs.rmSync(path)],
    ['cut', 'DOWNLOAD_TRUNCATED', (path: string) => fs.truncateSync(path, 20)],
    ['longer', 'DOWNLOAD_TOO_LARGE', (path: string) => fs.appendFileSync(path, 'x')],
    [
      'changed',
      'DOWNLOAD_DIGEST',
      (path: string) => fs.writeFileSync(path, Buffer.alloc(fs.statSync(path).size)),
    ],
  ] as const) {
    it(`are a problem where one is ${what}`, async () => {
      using dir = tempDir();
      const { repository } = await withReleases(dir, 2);
      assert.deepEqual((await check(repository)).problems, []);
      const [name = ''] = namesIn(repository);
      harm(join(repository.directory, 'targets', bundle, name));
      const { problems } = await check(repository);
      assert.deepEqual(
        problems.map((problem) => problem.code),
        [code],
      );
      // A release has several: only the name says which is to be brought back.
      assert.ok(problems[0]?.message.includes(`targets/${bundle}/${name}`), problems[0]?.message);
    });
  }
});
