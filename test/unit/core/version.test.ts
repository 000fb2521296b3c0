import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { writVersion } from '../../../src/core/version.js';

describe('the version said on sockets', () => {
  it('is that of the package', () => {
    const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
    assert.equal(writVersion, JSON.parse(text).version);
  });
});
