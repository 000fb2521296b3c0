import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  maxVersion,
  maxVersionAfterGap,
  reachableVersions,
} from '../../../../src/core/tuf/metadata-version.js';
import {
  compareSigning,
  lastSeenVersion,
  publishedVersion,
  readVersionRestarts,
} from '../../../../src/publisher/repository/version-restarts.js';

describe('reachable versions', () => {
  it('have gaps only up to a bound, and the set does not grow with the published version', () => {
    const bound = maxVersionAfterGap;
    const versions = [1, 8, bound - 5, bound + 1, bound + 2, maxVersion];
    for (const published of [0, 8, bound - 5])
      assert.deepEqual(reachableVersions(versions, published), [1, 8, bound - 5]);
    assert.deepEqual(reachableVersions(versions, bound), versions.slice(0, -1));
    assert.deepEqual(reachableVersions([bound, ...versions.slice(3)], 0), [bound, bound + 1, bound + 2]);
    assert.deepEqual(reachableVersions(versions, maxVersion), versions);
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
