// A publish that names the release that it corrects.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promoteRelease } from '../../../../src/publisher/release/promote.js';
import { withdrawRelease } from '../../../../src/publisher/release/withdraw.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { seenByHost, v1, v2 } from '../../../kit/repository/published-tree.js';
import { changeOptions, sampleRepository } from '../../../kit/repository/sample-repository.js';

const bundle = 'dns-edge';

describe('publishBundle with the release that it corrects', () => {
  it('signs its serial, and the next release does not carry it on', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish(v1);
    assert.equal((await repository.publish(v2, { fixes: 1 })).release.fixes, 1);
    assert.equal((await seenByHost(repository)).release?.fixes, 1);
    assert.equal('fixes' in (await repository.publish(v1)).release, false);
  });

  it('knows serials of older versions, of other channels, and withdrawn ones', async () => {
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
