// The control fields of the packages, and their examples. Reads the built files; installs nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { errorCodes } from '../../dist/src/core/error-codes.js';

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

  const host = debs.find((one) => one.startsWith('writ_'));
  it('of a host contains the bundles of the demo as examples', () => {
    assert.match(
      ask('-c', join(built, host)),
      /\/usr\/share\/doc\/writ\/examples\/bundles\/dns-edge\/block\.rpz$/m,
    );
  });

  it('of a host contains the documentation as a site, with the page of every error code', () => {
    const names = ask('-c', join(built, host));
    const html = './usr/share/doc/writ/html';
    for (const page of [
      'index.html',
      'assets/site.css',
      ...Object.keys(errorCodes).map((code) => `errors/${code}/index.html`),
    ])
      assert.ok(names.includes(` ${html}/${page}\n`), page);
  });
});
