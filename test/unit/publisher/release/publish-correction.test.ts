// A publish that names the release that it corrects.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type BoundedChange,
  type ChannelHead,
  compareToHead,
} from '../../../../src/publisher/release/head-change.js';
import { promoteRelease } from '../../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { releaseOf } from '../../../kit/delta/delta-kit.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { seenByHost, v1, v2 } from '../../../kit/repository/published-tree.js';
import { changeOptions, sampleRepository } from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';
const change: BoundedChange = { maxRemovedPercent: 50, beyond: 'refuse' };

function lines(count: number): string {
  return Array.from({ length: count }, (_, index) => `line ${index}\n`).join('');
}

describe('publishBundle with the release that it corrects', () => {
  it('signs its serial, and the next release does not carry it on', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    assert.equal((await repository.publish(v2, { fixes: 1 })).release.fixes, 1);
    assert.equal((await seenByHost(repository)).release?.fixes, 1);
    assert.equal('fixes' in (await repository.publish(v1)).release, false);
  });

  it('knows serials of older versions, of other channels, and withdrawn ones', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ f: '1' });
    await repository.publish({ f: '2' }, { channel: 'canary' });
    await repository.publish({ f: '3' });
    await withdrawRelease({ bundle, serials: [3], reason: '' }, changeOptions(repository));
    for (const fixes of [1, 2, 3])
      assert.equal((await repository.publish({ f: `x${fixes}` }, { fixes })).release.fixes, fixes);
  });

  it('refuses a serial that the bundle never had, and writes nothing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await rejectsCode('RELEASE_UNKNOWN', repository.publish(v1, { fixes: 1 }));
    await repository.publish(v1);
    await repository.publish(v1, { bundle: 'views' });
    await repository.publish(v2, { bundle: 'views' });
    const before = directoryState(repository.directory);
    for (const fixes of [2, 3, 1e12]) {
      await rejectsCode('RELEASE_UNKNOWN', repository.publish(v2, { fixes }));
    }
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('accepts a serial of a lost repository', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const { release } = await repository.publish(v1, { afterSerial: 41, fixes: 41 });
    assert.deepEqual([release.serial, release.fixes], [42, 41]);
    await rejectsCode('RELEASE_UNKNOWN', repository.publish(v2, { afterSerial: 50, fixes: 51 }));
  });

  it('publishes the same tree again with another correction, and not without one', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    await repository.publish(v2);
    const again = await repository.publish(v2, { fixes: 1 });
    assert.deepEqual([again.kind, again.release.serial], ['live', 3]);
    assert.equal((await repository.publish(v2, { fixes: 1 })).kind, 'nothing-new');
    assert.equal((await repository.publish(v2)).kind, 'nothing-new', 'a nightly job of the same tree');
  });

  it('is promoted with it', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    await repository.publish(v2, { channel: 'canary', fixes: 1 });
    await promoteRelease({ bundle, from: 'canary', to: 'stable' }, changeOptions(repository));
    const { release } = await seenByHost(repository);
    assert.deepEqual([release?.serial, release?.fixes], [2, 1]);
  });
});

describe('the bounds on the change of a correction', () => {
  it('are those of the release before the fault too: a list that doubled may shrink again', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(250) }, { change });
    await rejectsCode('CHANGE_TOO_LARGE', repository.publish({ list: lines(101) }, { change }));
    const done = await repository.publish({ list: lines(101) }, { change, fixes: 2 });
    assert.ok(done.kind === 'live');
    assert.deepEqual([done.previous?.serial, done.accepted, done.withinBoundsOf], [2, [], 1]);
  });

  it('are named only where the change to the head exceeds them', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(250) }, { change });
    const done = await repository.publish({ list: lines(240) }, { change, fixes: 2 });
    assert.ok(done.kind === 'live');
    assert.deepEqual([done.accepted, done.withinBoundsOf], [[], undefined]);
  });

  it('are not wider than these two, so that a nearly empty list stays refused', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(250) }, { change });
    const error = await rejectsCode(
      'CHANGE_TOO_LARGE',
      repository.publish({ list: lines(5) }, { change, fixes: 2 }),
    );
    assert.equal(error.facts['serial'], 2, 'it names the head');
  });

  it('are not those of a correction that failed as well', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) });
    await repository.publish({ list: lines(250) }, { change });
    await repository.publish({ list: lines(251) }, { change, fixes: 2 });
    const done = await repository.publish({ list: lines(101) }, { change, fixes: 3 });
    assert.ok(done.kind === 'live');
    assert.equal(done.withinBoundsOf, 1, 'release 3 corrected release 2, so 2 is the fault');
  });

  it('are not those of a withdrawn release', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(250) });
    await repository.publish({ list: lines(100) }, { channel: 'stable' });
    await withdrawRelease({ bundle, serials: [2], reason: '' }, changeOptions(repository));
    await repository.publish({ list: lines(251) }, { change });
    await rejectsCode('CHANGE_TOO_LARGE', repository.publish({ list: lines(101) }, { change, fixes: 3 }));
  });

  it('count nothing of another channel', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ list: lines(100) }, { channel: 'canary' });
    await repository.publish({ list: lines(250) });
    await rejectsCode('CHANGE_TOO_LARGE', repository.publish({ list: lines(101) }, { change, fixes: 2 }));
  });

  it('are the same when it is promoted', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const promote = () =>
      promoteRelease({ bundle, from: 'canary', to: 'stable' }, { ...changeOptions(repository), change });
    await repository.publish({ list: lines(100) }, { channel: 'canary' });
    await promote();
    await repository.publish({ list: lines(250) }, { channel: 'canary' });
    await promote();
    await repository.publish({ list: lines(101) }, { channel: 'canary' });
    await rejectsCode('CHANGE_TOO_LARGE', promote());
    await repository.publish({ list: lines(101) }, { channel: 'canary', fixes: 2 });
    const result = await promote();
    assert.ok(result.kind === 'live');
    assert.deepEqual([result.info?.accepted, result.info?.withinBoundsOf], [[], 1]);
  });
});

describe('publishBundle of a directory without a file', () => {
  const empty = {};

  it('is a change that is too large where the channel has a release, and writes nothing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    const before = directoryState(repository.directory);
    const error = await rejectsCode('CHANGE_TOO_LARGE', repository.publish(empty, { change }));
    assert.deepEqual(error.facts['rules'], ['bundle-empty']);
    assert.deepEqual(directoryState(repository.directory), before);
  });

  it('is refused where there is nothing to compare with, and where every change is accepted', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await rejectsCode('SOURCE_REFUSED', repository.publish(empty, { change }));
    await repository.publish(v1);
    await rejectsCode(
      'SOURCE_REFUSED',
      repository.publish(empty, { change: { ...change, beyond: 'accept' } }),
    );
    await rejectsCode('SOURCE_REFUSED', repository.publish(empty));
  });
});

describe('compareToHead', () => {
  it('refuses no change within the bounds', () => {
    const { manifest } = releaseOf({ list: lines(10) });
    const head = { listed: { release: { bundle, channel: 'stable', serial: 1 } }, manifest } as ChannelHead;
    const { change: measured, accepted } = compareToHead(head, manifest, change);
    assert.deepEqual([measured?.before, accepted], [measured?.after, []]);
    throwsCode('CHANGE_TOO_LARGE', () => compareToHead(head, { files: [] }, change));
  });
});
