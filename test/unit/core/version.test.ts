import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { writVersion } from '../../../src/core/version.js';

const inPackage = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'));

describe('the version said on sockets', () => {
  it('is that of the package', () => {
    assert.equal(writVersion, inPackage.version);
  });
});
