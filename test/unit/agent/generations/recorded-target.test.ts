// A record on the disk that differs from the signed target: no repair of the release uses it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readRecordedTarget } from '../../../../src/agent/generations/recorded-target.js';
import { recordFile } from '../../../../src/agent/generations/release-records.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { testHost } from '../../../kit/host/test-host.js';
import type { Loose } from '../../../kit/repository/simulated-metadata.js';

const changes: Readonly<Record<string, (record: Loose) => void>> = {
  'another digest of the archive': ({ archive }) => (archive.sha256 = 'a'.repeat(64)),
  'another length of the archive': ({ archive }) => (archive.length += 1),
  'another list of withdrawn releases': ({ custom }) => (custom.writ.withdrawn = [1]),
};

describe('the record of a release', () => {
  it('yields the signed target only under the name of its own directory', async () => {
    using test = testHost();
    const { paths } = test.host;
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    const releases = join(paths.archives, 'access');
    const [name = ''] = fs.readdirSync(releases);
    assert.equal(readRecordedTarget(paths, 'access', name).release.serial, 2);
    const other = name.replace(/^2/, '3');
    fs.cpSync(join(releases, name), join(releases, other), { recursive: true });
    throwsCode('STATE_DAMAGED', () => readRecordedTarget(paths, 'access', other));
  });

  for (const [what, change] of Object.entries(changes)) {
    it(`is damaged when it has ${what}`, async () => {
      using test = testHost();
      const { paths } = test.host;
      await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
      await test.pull();
      const [name = ''] = fs.readdirSync(join(paths.archives, 'access'));
      const path = join(paths.archives, 'access', name, recordFile);
      const record = JSON.parse(fs.readFileSync(path, 'utf8'));
      change(record);
      fs.writeFileSync(path, JSON.stringify(record));
      throwsCode('STATE_DAMAGED', () => readRecordedTarget(paths, 'access', name));
    });
  }
});
