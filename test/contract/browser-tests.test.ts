// Tests of the page need a browser: who has none is told what to install, and nothing passes without it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';

describe('npm run test:browser', () => {
  it('says what to install where there is no Chromium, and fails', () => {
    const env = { ...process.env, WRIT_CHROMIUM: '/nowhere/chromium' };
    const { status, stderr } = spawnSync(process.execPath, ['test/browser/run.js'], {
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 2);
    assert.match(stderr, /^missing Chromium: sudo apt-get install chromium fonts-dejavu-core/m);
  });

  it('has in the gate what it says', () => {
    const gate = readFileSync('.ci/run', 'utf8');
    assert.match(gate, /chromium fonts-dejavu-core/);
    assert.match(gate, /npm ci .*--prefix test\/browser/);
    assert.match(gate, /npm run test:browser/);
  });
});
