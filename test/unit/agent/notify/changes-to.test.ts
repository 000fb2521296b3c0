import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { changesTo } from '../../../../src/agent/notify/notify-verbs.js';
import { testHost } from '../../../kit/host/test-host.js';

describe('the difference between two generations', () => {
  it('is read once for all workers of the same generation, and is unknown if a generation is missing', async () => {
    using test = testHost();
    for (const serial of [1, 2]) {
      await test.publish('access', { 'policy.yaml': `version: ${serial}\n`, same: '' }, { serial });
      assert.equal((await test.pull()).outcome, 'activated');
    }
    const changedSince = changesTo(test.host, 2);
    assert.deepEqual(changedSince(1), ['access:policy.yaml']);
    assert.deepEqual(changedSince(undefined), ['access:policy.yaml', 'access:same']);
    fs.rmSync(join(test.host.paths.generations, '1'), { recursive: true });
    assert.deepEqual(changedSince(1), ['access:policy.yaml'], 'the generation is read once');
    assert.equal(changesTo(test.host, 2)(1), undefined);
  });
});
