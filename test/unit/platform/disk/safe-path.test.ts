import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { requireSafePath } from '../../../../src/platform/disk/safe-path.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('a path through links', () => {
  it('is checked at the targets of the links, and refused for a loop of links', () => {
    using dir = tempDir();
    writeFileSync(dir.join('file'), '', { mode: 0o600 });
    for (let at = 0; at < 30; at += 1) symlinkSync(at === 0 ? 'file' : `l${at - 1}`, dir.join(`l${at}`));
    assert.equal(requireSafePath(dir.join('l29')), undefined);
    symlinkSync('b', dir.join('a'));
    symlinkSync('a', dir.join('b'));
    throwsCode('PATH_UNSAFE', () => requireSafePath(dir.join('a')));
  });
});
