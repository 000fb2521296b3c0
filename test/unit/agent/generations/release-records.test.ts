import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { listReleases } from '../../../../src/agent/generations/release-records.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('listReleases', () => {
  it('lists a release once while a newer record replaces it, and no partial copy', () => {
    using dir = tempDir();
    const name = '1-0123456789ab';
    for (const directory of [name, `${name}.replaced`, `.writ-tmp-${name}`]) {
      fs.mkdirSync(dir.join('archives', 'access', directory), { recursive: true });
    }
    const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: dir.path });
    assert.deepEqual(
      listReleases(paths).map(({ bundle, name: listed }) => `${bundle} ${listed}`),
      [`access ${name}`],
    );
  });
});
