// What the packages say of themselves, and the examples that come with them. Reads the built files; installs nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

const built = process.env.WRIT_PACKAGES;
const { author, homepage } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const ask = (...args) => execFileSync('dpkg-deb', args, { encoding: 'utf8', maxBuffer: 10_000_000 });
const debs = readdirSync(built).filter((one) => one.endsWith('.deb'));

describe('a built package', () => {
  for (const deb of debs)
    it(`names the maintainer and the home page of package.json: ${deb.split('_')[0]}`, () => {
      assert.equal(ask('-f', join(built, deb), 'Maintainer').trim(), author);
      assert.equal(ask('-f', join(built, deb), 'Homepage').trim(), homepage);
    });

  for (const deb of debs)
    it(`has no map of sources: ${deb.split('_')[0]}`, () => {
      const names = ask('-c', join(built, deb)).split('\n');
      assert.ok(names.length > 5);
      assert.deepEqual(
        names.filter((one) => one.endsWith('.map')),
        [],
      );
    });

  it('of a host brings the bundles of the demo as examples', () => {
    const deb = debs.find((one) => one.startsWith('writ_'));
    assert.match(
      ask('-c', join(built, deb)),
      /\/usr\/share\/doc\/writ\/examples\/bundles\/dns-edge\/block\.rpz$/m,
    );
  });
});
