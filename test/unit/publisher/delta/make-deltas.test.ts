// Which deltas a release gets, that each leads to it, and what becomes of them when a publish is cut or its source changes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import type { ReleaseInfo } from '../../../../src/core/release/release.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { checkDeltas } from '../../../../src/publisher/delta/check-deltas.js';
import { releaseHistory } from '../../../../src/publisher/release/release-history.js';
import { findHead } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { listOf, withLine } from '../../../kit/delta/list-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { seenByHost } from '../../../kit/repository/published-tree.js';
import {
  type SamplePublishOptions,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const list = listOf(2000);
const tree = (line: string) => ({ 'block.rpz': withLine(list, line), 'views/eu.yaml': 'eu: 1\n' });

async function publish(
  repository: SampleRepository,
  line: string,
  options: SamplePublishOptions = {},
): Promise<ReleaseInfo> {
  return (await repository.publish(tree(line), options)).release;
}

function stateOf(repository: SampleRepository) {
  return readRepositoryState(layoutOf(repository.directory), repository.keys);
}

/** Applies every delta of the head. @returns how many had no base */
function checkHead(repository: SampleRepository, channel = 'stable'): Promise<number> {
  const state = stateOf(repository);
  const release = findHead(state, 'dns-edge', channel)?.release as ReleaseInfo;
  const history = releaseHistory(state, 'dns-edge');
  return checkDeltas({ layout: state.layout, release, history, limits: defaultArchiveLimits });
}

function namesOf(repository: SampleRepository, end = '.delta'): string[] {
  const names = fs.readdirSync(join(repository.directory, 'targets/dns-edge'));
  return names.filter((name) => name.endsWith(end)).sort();
}

describe('a publish', () => {
  it(
    'makes a delta from each of the last four releases of its channel, and signs them',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      const releases: ReleaseInfo[] = [];
      for (const line of ['one', 'two', 'three', 'four', 'five', 'six']) {
        releases.push(await publish(repository, line));
      }
      const last = releases.at(-1);
      const digests = releases.map(({ manifest }) => manifest.digest);
      assert.deepEqual(
        last?.deltas?.map(({ from }) => from),
        digests.slice(1, 5).reverse(),
      );
      assert.ok(last?.deltas?.every(({ length }) => length < 300));
      assert.deepEqual((await seenByHost(repository)).release, last);
      assert.equal(await checkHead(repository), 0);
      const signed = last?.deltas?.map(({ digest }) => `${digest.slice(7)}.stable.delta`) ?? [];
      const names = namesOf(repository);
      for (const name of signed) assert.ok(names.includes(name));
    },
  );

  it('makes the same bytes of the same trees', longCase, async () => {
    const made: unknown[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await publish(repository, 'one');
      made.push((await publish(repository, 'two')).deltas, namesOf(repository));
    }
    assert.deepEqual(made.slice(2), made.slice(0, 2));
  });

  it('makes the requested number, and none for 0', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    for (const line of ['one', 'two', 'three']) await publish(repository, line, { deltas: 0 });
    assert.deepEqual(namesOf(repository), []);
    assert.equal((await publish(repository, 'four', { deltas: 2 })).deltas?.length, 2);
    const none = await publish(repository, 'five', { deltas: 0 });
    assert.equal('deltas' in none, false);
  });

  it('makes none of a small archive, and none that is longer than half of the archive', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: listOf(300) });
    const small = await repository.publish({ list: withLine(listOf(300), 'more') });
    assert.equal(small.release.deltas, undefined);
    await repository.publish({ list: listOf(2000, 1) });
    const other = await repository.publish({ list: listOf(2000, 2) });
    assert.equal(other.release.deltas, undefined);
    const half = await repository.publish({ list: listOf(2000, 2) + listOf(3000, 3) });
    assert.deepEqual(half.release.deltas, undefined);
    const third = await repository.publish({ list: listOf(2000, 2) + listOf(3000, 3) + listOf(1000, 4) });
    assert.equal(third.release.deltas?.length, 1);
    assert.deepEqual(
      fs.readdirSync(repository.directory).filter((name) => name.startsWith('.writ-tmp')),
      [],
    );
  });

  it('takes a tree for a base once, and never the new one', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    for (const line of ['one', 'two', 'one', 'two']) await publish(repository, line);
    const { deltas = [] } = await publish(repository, 'one');
    assert.equal(deltas.length, 1);
    assert.equal(await checkHead(repository), 0);
  });

  it('uses only bases of the channel', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await publish(repository, 'one', { channel: 'canary' });
    assert.equal((await publish(repository, 'two')).deltas, undefined);
    assert.equal((await publish(repository, 'three', { channel: 'canary' })).deltas?.length, 1);
  });

  it('continues where an older archive is lost or damaged', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = await publish(repository, 'one');
    const [gone] = namesOf(repository, '.tar.br');
    await publish(repository, 'two');
    const damaged = namesOf(repository, '.tar.br').find((name) => name !== gone) ?? '';
    const third = await publish(repository, 'three', { deltas: 0 });
    const directory = join(repository.directory, 'targets/dns-edge');
    fs.truncateSync(join(directory, damaged), 9000);
    const fourth = await publish(repository, 'four');
    assert.deepEqual(
      fourth.deltas?.map(({ from }) => from),
      [third.manifest.digest, first.manifest.digest],
    );
    fs.rmSync(join(directory, gone ?? ''));
    assert.equal(await checkHead(repository), 1);
  });

  it('makes deltas of stamped files as they are packed', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const stamped = (line: string) => ({ 'block.rpz': `; @writ.serial@\n${withLine(list, line)}` });
    await repository.publish(stamped('one'), { stamp: ['block.rpz'] });
    const { release } = await repository.publish(stamped('two'), { stamp: ['block.rpz'] });
    assert.equal(release.deltas?.length, 1);
    assert.equal(await checkHead(repository), 0);
  });

  it('refuses a source that changes while its delta is made, and publishes nothing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await publish(repository, 'one');
    const durableFs = createDurableFs({
      after: ({ op }) => {
        // The archive is packed; the deltas are not.
        if (op !== 'repo.archive:rename') return;
        const path = dir.join('source-2/block.rpz');
        fs.writeFileSync(path, fs.readFileSync(path, 'utf8').replace('two', 'TWO'));
      },
    });
    await assert.rejects(publish(repository, 'two', { durableFs }), { code: 'SOURCE_REFUSED' });
    assert.equal((await seenByHost(repository)).release?.serial, 1);
    assert.deepEqual(namesOf(repository), []);
  });

  it('fails on a full disk, and does not leave out a delta for it', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await publish(repository, 'one');
    const durableFs = createDurableFs({
      before: ({ op }) => {
        if (op === 'repo.delta:rename') throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      },
    });
    await assert.rejects(publish(repository, 'two', { durableFs }), { code: 'DISK_FULL' });
    assert.equal((await seenByHost(repository)).release?.serial, 1);
  });

  it('is refused when a delta changes before the timestamp is written', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await publish(repository, 'one');
    const durableFs = createDurableFs({
      after: ({ op, path }) => {
        if (op === 'repo.delta:rename') fs.writeFileSync(path, Buffer.alloc(fs.statSync(path).size));
      },
    });
    await assert.rejects(publish(repository, 'two', { durableFs }), { code: 'REPOSITORY_INVALID' });
    assert.equal((await seenByHost(repository)).release?.serial, 1);
  });

  for (const label of ['repo.delta:write', 'repo.delta:rename', 'repo.delta:flush-to']) {
    for (const moment of ['before', 'after'] as const) {
      it(`that is cut ${moment} ${label} leaves the published state, and the next one is complete`, async () => {
        using dir = tempDir();
        const repository = sampleRepository(dir);
        await publish(repository, 'one');
        const live = fs.readFileSync(join(repository.directory, 'metadata/timestamp.json'));
        const cut = ({ op }: { readonly op: string }): void => {
          if (op === label) throw new Error('killed');
        };
        const durableFs = createDurableFs({ [moment]: cut });
        await assert.rejects(publish(repository, 'two', { durableFs }), /killed/);
        assert.deepEqual(fs.readFileSync(join(repository.directory, 'metadata/timestamp.json')), live);
        const last = await publish(repository, 'three');
        assert.ok((last.deltas?.length ?? 0) >= 1);
        assert.equal(await checkHead(repository), 0);
        assert.ok(
          !Object.keys(directoryState(repository.directory)).some((name) => name.includes('.writ-tmp')),
        );
      });
    }
  }
});

describe('checkDeltas', () => {
  it('finds a delta that leads elsewhere, or nowhere', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await publish(repository, 'one');
    await publish(repository, 'two');
    await publish(repository, 'three');
    const state = stateOf(repository);
    const release = findHead(state, 'dns-edge', 'stable')?.release as ReleaseInfo;
    const history = releaseHistory(state, 'dns-edge');
    const [first, second] = release.deltas ?? [];
    assert.ok(first !== undefined && second !== undefined);
    const check = (deltas: ReleaseInfo['deltas']) =>
      checkDeltas({
        layout: state.layout,
        release: { ...release, deltas: deltas ?? [] },
        history,
        limits: defaultArchiveLimits,
      });
    // The one from another base, under this base's name.
    await assert.rejects(check([{ ...second, from: first.from }]), { code: 'DELTA_MALFORMED' });
    const path = join(state.layout.targets, 'dns-edge', `${first.digest.slice(7)}.stable.delta`);
    fs.truncateSync(path, first.length - 1);
    await assert.rejects(check([first]), { code: 'DELTA_MALFORMED' });
  });
});
