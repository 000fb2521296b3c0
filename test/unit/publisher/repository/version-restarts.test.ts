import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxVersion, maxVersionStep, reachableVersions } from '../../../../src/core/tuf/metadata-version.js';
import {
  compareSigning,
  lastSeenVersion,
  publishedVersion,
  readVersionRestarts,
} from '../../../../src/publisher/repository/version-restarts.js';

describe('reachable versions', () => {
  it('are those within the step, and an unbroken row above it', () => {
    const end = 7 + maxVersionStep;
    const versions = [1, 7, 8, end, end + 1, end + 2, end + 4, maxVersion];
    assert.deepEqual(reachableVersions(versions, 7), [1, 7, 8, end, end + 1, end + 2]);
    assert.deepEqual(reachableVersions([end + 2], 7), []);
  });
});

describe('the restarts of a snapshot', () => {
  it('are read without entries of another form', () => {
    const good = { version: maxVersion, after: 2, length: 10, hashes: { sha256: 'ab' } };
    const entries = {
      team: good,
      first: { version: 3, after: 0 },
      text: 'x',
      list: [1],
      negative: { version: 3, after: -1 },
      noVersion: { after: 1 },
      badLength: { version: 3, after: 1, length: '10' },
      badDigest: { version: 3, after: 1, hashes: { sha256: 1 } },
    };
    assert.deepEqual([...readVersionRestarts({ writ: { restarts: entries } }).keys()], ['team', 'first']);
    for (const signed of [{}, { writ: {} }, { writ: { restarts: 'x' } }, { writ: { restarts: [good] } }])
      assert.equal(readVersionRestarts(signed).size, 0);
  });

  it('give the version that the next one follows until a snapshot lists the role', () => {
    const restarts = readVersionRestarts({ writ: { restarts: { team: { version: maxVersion, after: 2 } } } });
    const meta = { 'team.json': { version: 3 } };
    assert.deepEqual(
      [publishedVersion({ meta: {}, restarts }, 'team'), publishedVersion({ meta, restarts }, 'team')],
      [2, 3],
    );
    assert.deepEqual(
      [lastSeenVersion({ meta: {}, restarts }, 'team'), lastSeenVersion({ meta, restarts }, 'team')],
      [maxVersion, 3],
    );
    assert.equal(publishedVersion({ meta: {}, restarts }, 'other'), 0);
  });

  it('order versions by their signing', () => {
    const restart = { version: maxVersion, after: 2 };
    const sorted = [4, maxVersion, 1, 3, 2].sort((a, b) => compareSigning(restart, a, b));
    assert.deepEqual(sorted, [1, 2, maxVersion, 3, 4]);
    assert.ok(compareSigning(undefined, 3, maxVersion) < 0);
  });
});
