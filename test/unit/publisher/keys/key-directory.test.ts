// What a directory of keys that are not of this repository is said to be.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { sampleRepository, someKeys } from '../../../kit/repository/sample-repository.js';

describe('a directory with the keys of another repository', () => {
  it('is reported with the key that is there and the one that is listed', async () => {
    using dir = tempDir();
    using other = tempDir();
    const foreign = sampleRepository(other, { signers: 'own' });
    const keys = someKeys(other, foreign, 'targets.key', 'snapshot.key', 'timestamp.key');
    const repository = sampleRepository(dir);
    const error = await rejectsCode('KEYS_MISSING', repository.publish({ file: 'one' }, { keys }));
    const [, found, listed] =
      /targets\.key is a key, but none that .* \(it is (\w{8}), listed: (\w{8})\)$/.exec(error.message) ?? [];
    assert.notEqual(found, listed, error.message);
    assert.deepEqual(
      [error.facts['keyIds']].flat().map((id) => String(id).slice(0, 8)),
      [listed],
    );
  });
});
