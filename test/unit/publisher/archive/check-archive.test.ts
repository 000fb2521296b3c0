// Entries that are signed and do not fit their archive, or their path: what `writ repo check` reports of them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../../../src/core/release/release.js';
import { checkArchive } from '../../../../src/publisher/archive/check-archive.js';
import { findHead } from '../../../../src/publisher/repository/listing.js';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';

describe('checkArchive', () => {
  it('reports an entry with another path, digest or manifest than its archive', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ file: 'one' });
    await repository.publish({ file: 'two' }, { channel: 'canary' });
    const state = readRepositoryState(layoutOf(repository.directory));
    const [head, other] = ['stable', 'canary'].map((channel) => findHead(state, 'dns-edge', channel));
    assert.ok(head && other);
    const { release, path, file } = head;
    const { digest, length } = release.manifest;
    const unpacked = new Set<string>();
    const check = (changes: Partial<ReleaseInfo>, more: Partial<typeof file> = {}) => {
      const changed = { ...file, custom: { writ: encodeReleaseInfo({ ...release, ...changes }) }, ...more };
      return checkArchive({
        ...{ layout: state.layout, limits: defaultArchiveLimits, unpacked },
        ...{ path, file: changed },
      });
    };
    await check({});
    for (const wrong of [{ bundle: 'dns-edgy' }, { channel: 'canary' }]) {
      await rejectsCode('TARGET_MALFORMED', check(wrong));
    }
    await rejectsCode('TARGET_MALFORMED', check({}, { hashes: { sha512: 'a'.repeat(128) } }));
    for (const manifest of [
      { digest, length: length + 1 },
      { digest: other.release.manifest.digest, length },
    ])
      await rejectsCode('MANIFEST_DIGEST', check({ manifest }));
    fs.rmSync(`${repository.directory}/targets/dns-edge`, { recursive: true });
    fs.writeFileSync(`${repository.directory}/targets/dns-edge`, 'no directory');
    await rejectsCode('TARGET_MISSING', check({}));
  });
});
