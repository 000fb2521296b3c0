// Modes of files in the Debian packages.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../../kit/sources/source-files.js';

interface DebianPackage {
  modeInPackage(path: string, isDirectory: boolean): number;
}

const { modeInPackage } = (await import(
  join(projectRoot, 'scripts/packaging/debian-package.js')
)) as DebianPackage;

describe('a file of a Debian package', () => {
  it('that may contain a password is readable by root and the group of its service alone', () => {
    assert.equal(modeInPackage('etc/writ/fleet.env', false), 0o640);
    assert.equal(modeInPackage('etc/writ/agent.yaml', false), 0o644);
    assert.equal(modeInPackage('DEBIAN/postinst', false), 0o755);
    assert.equal(modeInPackage('etc/writ', true), 0o755);
    const postinst = readFileSync(join(projectRoot, 'packaging/debian/writ-fleet/postinst'), 'utf8');
    assert.match(postinst, /chown root:writ-fleet \$env/);
    assert.match(postinst, /chmod 0640 \$env/);
  });
});
