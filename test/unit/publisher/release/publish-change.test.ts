// A publish that changes too much of the head of its channel, and what of a change is counted.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { measureChange } from '../../../../src/core/release/change-rules.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import {
  type ChangedLines,
  countChangedLines,
  defaultLineBounds,
  type LineBounds,
} from '../../../../src/publisher/release/changed-lines.js';
import { type BoundedChange, readHead } from '../../../../src/publisher/release/head-change.js';
import { type Promotion, promoteRelease } from '../../../../src/publisher/release/promote.js';
import {
  type PublishResult,
  previewPublish,
  publishBundle,
} from '../../../../src/publisher/release/publish.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { readStateBeforeLock } from '../../../../src/publisher/signing/sign-change.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { inodeState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import {
  changeOptions,
  type SampleFiles,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

const change: BoundedChange = { maxRemovedPercent: 50, beyond: 'refuse' };
const accepted: BoundedChange = { ...change, beyond: 'accept' };
const bundle = 'dns-edge';

function lines(count: number): string {
  return Array.from({ length: count }, (_, index) => `line ${index}\n`).join('');
}

function numbered(count: number): SampleFiles {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`views/${index}`, `${index}\n`]));
}

function linesOf(result: PublishResult): ChangedLines | undefined {
  assert.ok(result.kind !== 'nothing-new');
  return result.lines;
}

function archivesIn({ directory }: SampleRepository): string[] {
  const path = join(directory, 'targets', bundle);
  return fs
    .readdirSync(path)
    .filter((name) => name.endsWith('.tar.br'))
    .map((name) => join(path, name));
}

function preview(dir: TempDir, repository: SampleRepository, files: SampleFiles) {
  return previewPublish({
    ...changeOptions(repository),
    source: writeTree(dir.join('source-preview'), files),
    bundle,
    channel: 'stable',
    revision: '',
    limits: defaultArchiveLimits,
    change,
  });
}

describe('publishBundle with bounds on the change', () => {
  const cases: readonly (readonly [what: string, before: SampleFiles, after: SampleFiles])[] = [
    ['a list that becomes empty', { list: lines(100_000) }, { list: '' }],
    ['a list that becomes a page of HTML', { list: lines(1000) }, { list: '<html>502</html>\n' }],
    ['a list of 40 %', { list: lines(100) }, { list: lines(40) }],
    ['a tree of which most files are gone', numbered(10), numbered(4)],
    ['a tree of which most files have other names', numbered(3), { 'views/0': '0\n', a: '1\n', b: '2\n' }],
    [
      'one file of several that becomes empty',
      { list: lines(200), other: lines(9000) },
      { list: '', other: lines(9000) },
    ],
  ];
  for (const [what, before, after] of cases) {
    it(`refuses ${what}, needs no key for it, and writes nothing`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish(before, { change });
      const state = inodeState(repository.directory);
      const keys = dir.join('no-keys');
      const error = await rejectsCode('CHANGE_TOO_LARGE', repository.publish(after, { change, keys }));
      assert.equal(error.kind, 'rejected');
      assert.equal(error.facts['serial'], 1);
      await rejectsCode('CHANGE_TOO_LARGE', repository.publish(after, { change }));
      await rejectsCode('CHANGE_TOO_LARGE', preview(dir, repository, after));
      assert.deepEqual(inodeState(repository.directory), state);
      const next = await repository.publish(after, { change: accepted });
      assert.equal(next.release.serial, 2, 'no serial was used');
      assert.ok(next.kind === 'live' && next.accepted.length > 0);
    });
  }

  it('compares a first release with nothing, also one of an empty file', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = await repository.publish({ list: '' }, { change });
    assert.ok(first.kind === 'live');
    assert.deepEqual([first.change, first.lines, first.accepted], [undefined, undefined, []]);
    const canary = await repository.publish({ other: '' }, { change, channel: 'canary' });
    assert.ok(canary.kind === 'live' && canary.change === undefined, 'each channel has a head of its own');
  });

  it('lets a bundle grow to any size, and refuses growth beyond a bound that is given', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(10) }, { change });
    await repository.publish({ list: lines(1000) }, { change });
    const narrow = { ...change, maxGrowthPercent: 100 };
    const error = await rejectsCode(
      'CHANGE_TOO_LARGE',
      repository.publish({ list: lines(5000) }, { change: narrow }),
    );
    assert.deepEqual(error.facts['rules'], ['bytes-added']);
  });

  it('does not report an accepted change that is within the limits', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(10) });
    const next = await repository.publish({ list: lines(9) }, { change: accepted });
    assert.deepEqual(next.kind === 'live' && next.accepted, []);
  });

  it('publishes a waiting release that was accepted when it was signed, without a new confirmation', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    const keys = someKeys(dir, repository, 'targets.key');
    const waiting = await repository.publish({ list: lines(1) }, { change: accepted, keys });
    assert.equal(waiting.kind, 'waiting');
    const live = await repository.publish({ list: lines(1) }, { change });
    assert.deepEqual([live.kind, live.release.serial], ['live', 2]);
  });

  it('compares with what hosts see, not with a release that waits', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    const keys = someKeys(dir, repository, 'targets.key');
    await repository.publish({ list: lines(70) }, { change, keys });
    const error = await rejectsCode('CHANGE_TOO_LARGE', repository.publish({ list: lines(40) }, { change }));
    assert.equal(error.facts['serial'], 1, 'two steps of less than a half are one of more');
  });

  it('compares again under the lock, where another publisher moved the head meanwhile', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(10) });
    fs.cpSync(repository.directory, dir.join('before'), { recursive: true });
    await repository.publish({ list: lines(1000) });
    fs.renameSync(repository.directory, dir.join('after'));
    fs.renameSync(dir.join('before'), repository.directory);
    const { clock } = repository;
    // The time is asked for between what is seen without the lock, and the lock.
    const nowMs = (): number => {
      if (fs.existsSync(dir.join('after'))) {
        fs.cpSync(dir.join('after'), repository.directory, { recursive: true });
        fs.rmSync(dir.join('after'), { recursive: true });
      }
      return clock.nowMs();
    };
    const publishing = publishBundle({
      ...changeOptions(repository),
      clock: { ...clock, nowMs },
      source: writeTree(dir.join('source'), { list: lines(11) }),
      ...{ bundle, channel: 'stable', revision: '', limits: defaultArchiveLimits, change },
    });
    const error = await rejectsCode('CHANGE_TOO_LARGE', publishing);
    assert.equal(error.facts['serial'], 2);
    assert.equal(archivesIn(repository).length, 2, 'no archive was placed');
  });

  it('does not count the stamps of the head as its content', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const stamped = { list: '@writ.serial@ @writ.source@\n', other: 'a\nb\n' };
    await repository.publish(stamped, { stamp: ['list'] });
    const next = await repository.publish({ ...stamped, list: `${stamped.list}more\n` }, { stamp: ['list'] });
    assert.deepEqual(linesOf(next), { added: 1, removed: 0, files: 1, notCounted: 0 });
    assert.ok(next.kind === 'live');
    assert.deepEqual([next.change?.before.bytes, next.change?.after.bytes], [32, 37]);
  });

  it('publishes without a comparison where the archive of the head is gone', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    for (const path of archivesIn(repository)) fs.rmSync(path);
    const next = await repository.publish({ list: '' }, { change });
    assert.ok(next.kind === 'live');
    assert.deepEqual([next.previous?.serial, next.change, next.lines], [1, undefined, undefined]);
  });
});

describe('the lines of a change', () => {
  it('are those of changed, new and removed text files, and not of binary ones', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const image = Buffer.from([0, 1, 2, 10]);
    await repository.publish({ list: 'a\nb\nc\n', gone: 'x\ny\n', empty: '', same: 's\n', image });
    const next = await repository.publish({
      list: 'c\nb\nd\n',
      fresh: 'z\n',
      empty: '1\n',
      same: 's\n',
      image: Buffer.from([0, 2]),
    });
    assert.deepEqual(linesOf(next), { added: 3, removed: 3, files: 4, notCounted: 0 });
  });

  it('are not counted in files of ten megabytes', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const given = { limits: { ...defaultArchiveLimits, maxRatio: 1e6 }, deltas: 0 };
    const large = Buffer.alloc(10_000_000, 'line of a long list\n');
    await repository.publish({ list: 'a\n', large: large.subarray(20) }, given);
    const next = await repository.publish({ list: 'b\n', large }, given);
    assert.deepEqual(linesOf(next), { added: 1, removed: 1, files: 1, notCounted: 1 });
    const smaller = await repository.publish({ list: 'b\n', large: large.subarray(20) }, given);
    assert.deepEqual(linesOf(smaller), { added: 0, removed: 0, files: 0, notCounted: 1 });
    const counted = await repository.publish({ list: 'b\n', large: large.subarray(40) }, given);
    assert.deepEqual(linesOf(counted), { added: 0, removed: 1, files: 1, notCounted: 0 });
  });

  it('are not counted in files beyond the bytes that are read at most', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'one\n', b: 'two\n', c: 'three\n' });
    const state = readStateBeforeLock(changeOptions(repository));
    const { layout } = state;
    const limits = defaultArchiveLimits;
    const head = await readHead(state, { bundle, channel: 'stable' }, { limits });
    assert.ok(head?.manifest !== undefined);
    const { manifest, listed } = head;
    const source = writeTree(dir.join('source'), { a: '1\n', b: '2\n', c: '3\n' });
    const tree = await readSourceTree(source, defaultArchiveLimits);
    const count = (bounds: Partial<LineBounds>) =>
      countChangedLines({
        ...{ layout, head: listed, manifest, tree, limits: defaultArchiveLimits },
        change: measureChange(manifest, tree.manifest),
        bounds: { ...defaultLineBounds, ...bounds },
      });
    assert.deepEqual(await count({}), { added: 3, removed: 3, files: 3, notCounted: 0 });
    const two = { added: 2, removed: 2, files: 2, notCounted: 1 };
    assert.deepEqual(await count({ maxTotalBytes: 12 }), two);
    assert.deepEqual(await count({ maxArchiveBytes: 8 }), two);
    assert.deepEqual(await count({ maxFileBytes: 6 }), two);
    fs.rmSync(join(source, 'b'));
    assert.deepEqual(await count({}), two, 'SOURCE changed under it');
  });

  it('are the same in a preview', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: 'a\nb\nc\n' });
    const seen = await preview(dir, repository, { list: 'a\nb\nd\n' });
    assert.ok(seen.kind === 'would-publish');
    assert.deepEqual(seen.lines, { added: 1, removed: 1, files: 1, notCounted: 0 });
    assert.deepEqual(seen.change?.difference, { added: [], removed: [], changed: ['list'] });
  });
});

describe('promoteRelease with bounds on the change', () => {
  it('refuses a release that loses too much of the head of the other channel, and writes nothing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(40) }, { channel: 'canary', change });
    const state = inodeState(repository.directory);
    const request = { bundle, from: 'canary', to: 'stable' };
    const options = changeOptions(repository, { keys: dir.join('no-keys') });
    const error = await rejectsCode('CHANGE_TOO_LARGE', promoteRelease(request, { ...options, change }));
    assert.deepEqual([error.facts['channel'], error.facts['serial']], ['stable', 1]);
    assert.deepEqual(inodeState(repository.directory), state);
    const result = await promoteRelease(request, { ...changeOptions(repository), change: accepted });
    assert.ok(result.kind === 'live');
    assert.deepEqual(
      result.info?.accepted.map(({ rule }) => rule),
      ['bytes-removed'],
    );
  });

  it('asks for approval before a key is opened, and reads no archive again after it', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(90) }, { channel: 'canary', change });
    const request = { bundle, from: 'canary', to: 'stable' };
    const state = inodeState(repository.directory);
    const refuses = new WritError('RELEASE_NOT_SETTLED', 'no');
    const refused = promoteRelease(request, {
      ...changeOptions(repository, { keys: dir.join('no-keys') }),
      ...{ change, approve: () => Promise.reject(refuses) },
    });
    await rejectsCode('RELEASE_NOT_SETTLED', refused);
    assert.deepEqual(inodeState(repository.directory), state);
    const asked: (number | undefined)[] = [];
    const approve = async ({ before, after }: Promotion): Promise<void> => {
      asked.push(before?.serial, after.serial);
      // The archive of the head of `stable`: where it is read again, how much changes is unknown.
      for (const path of archivesIn(repository).filter((one) => one.includes('stable')))
        fs.writeFileSync(path, 'x');
    };
    const result = await promoteRelease(request, { ...changeOptions(repository), change, approve });
    assert.ok(result.kind === 'live');
    assert.deepEqual([asked, result.info?.change?.difference.changed], [[1, 2], ['list']]);
  });

  it('promotes no other head than the approved one', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(90) }, { channel: 'canary', change });
    const approve = async (): Promise<void> => {
      await repository.publish({ list: lines(80) }, { channel: 'canary', change });
    };
    const request = { bundle, from: 'canary', to: 'stable' };
    const promoted = promoteRelease(request, { ...changeOptions(repository), change, approve });
    const { facts } = await rejectsCode('RELEASE_NOT_SETTLED', promoted);
    assert.deepEqual([facts['expected'], facts['actual']], [2, 3]);
  });

  it('compares nothing where the other channel has no release', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: '' }, { channel: 'canary' });
    const request = { bundle, from: 'canary', to: 'stable' };
    const result = await promoteRelease(request, { ...changeOptions(repository), change });
    assert.ok(result.kind === 'live');
    assert.deepEqual([result.info?.change, result.info?.accepted], [undefined, []]);
  });
});

describe('withdrawRelease', longCase, () => {
  it('leads back to a release of any size', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(1) });
    await repository.publish({ list: lines(5000) }, { change });
    const result = await withdrawRelease({ bundle, serials: [2], reason: '' }, changeOptions(repository));
    assert.equal(result.kind, 'live');
    const next = await repository.publish({ list: lines(2) }, { change });
    assert.ok(next.kind === 'live' && next.previous?.serial === 1, 'the head is the one it leads back to');
  });
});
