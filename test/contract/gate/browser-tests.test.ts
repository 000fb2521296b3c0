// Tests of the pages need a browser. Without one they fail and print the packages to install.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';

describe('npm run test:browser', longCase, () => {
  it('fails without Chromium, and prints the packages to install', () => {
    const env = { ...process.env, WRIT_CHROMIUM: '/nowhere/chromium' };
    const { status, stderr } = spawnSync(process.execPath, ['test/browser/run.js'], {
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 2);
    assert.match(stderr, /^missing Chromium: sudo apt-get install chromium fonts-dejavu-core/m);
  });

  it('needs packages that the gate installs', () => {
    assert.match(readFileSync('.ci/install-debian', 'utf8'), / chromium fonts-dejavu-core /);
    assert.match(readFileSync('.ci/install-tools', 'utf8'), /npm ci .*--prefix test\/browser/);
  });
});
