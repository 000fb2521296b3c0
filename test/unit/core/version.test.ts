import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { writReleasedAtMs, writVersion } from '../../../src/core/version.js';

const inPackage = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'));

describe('the version in the greeting of sockets', () => {
  it('matches the version of the package', () => {
    assert.equal(writVersion, inPackage.version);
  });

  it('has the date of the newest release of the changelog', () => {
    const changelog = readFileSync(new URL('../../../../CHANGELOG.md', import.meta.url), 'utf8');
    const dates = [...changelog.matchAll(/^## \[\d[^\]]*\] - (\d{4}-\d{2}-\d{2})$/gm)].map(
      ([, date]) => date ?? '',
    );
    assert.equal(new Date(writReleasedAtMs).toISOString().slice(0, 10), dates.sort().at(-1));
  });
});
