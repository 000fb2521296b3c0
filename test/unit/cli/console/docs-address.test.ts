import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { docsPage, docsText, siteOfPackage } from '../../../../src/cli/console/docs-address.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const code = 'DOWNLOAD_DIGEST';
const docs = `writ help ${code}`;
const configured = (url: string) => ({ env: { WRIT_DOCS_URL: url } });

/** @returns the page of a code in a documentation site that has only this code */
function buildSite(docsFolder: string): string {
  const page = join(docsFolder, 'errors', code, 'index.html');
  mkdirSync(dirname(page), { recursive: true });
  writeFileSync(page, '<!doctype html>');
  return page;
}

describe('the page of an error code', () => {
  it('is the page of the package if no site is installed', () => {
    assert.equal(docsText(code, { env: {} }), docs);
    assert.deepEqual(docsPage(code, { env: {} }), { docs });
  });

  it('is a file of the installed site, once it has this code', () => {
    using dir = tempDir();
    const docsFolder = dir.path;
    const docsUrl = pathToFileURL(buildSite(docsFolder)).href;
    assert.equal(docsText(code, { env: {}, docsFolder }), `${docs}, or ${docsUrl}`);
    assert.deepEqual(docsPage(code, { env: {}, docsFolder }), { docs, docsUrl });
    assert.equal(docsText('LOCK_HELD', { env: {}, docsFolder }), 'writ help LOCK_HELD');
  });

  it('is below WRIT_DOCS_URL before all others, as a browser opens it from there', () => {
    using dir = tempDir();
    buildSite(dir.path);
    const at = (url: string) => docsPage(code, { ...configured(url), docsFolder: dir.path }).docsUrl;
    assert.equal(at('https://docs.example.com/writ'), `https://docs.example.com/writ/errors/${code}`);
    assert.equal(at('http://docs.example.com//'), `http://docs.example.com/errors/${code}`);
    assert.equal(at('file:///srv/my docs/'), `file:///srv/my%20docs/errors/${code}/index.html`);
  });

  it('has no address for an invalid WRIT_DOCS_URL, and reports it', () => {
    for (const url of [
      'docs.example.com',
      'ftp://docs.example.com/',
      'javascript:alert(1)',
      'https://user:secret@docs.example.com/',
      'https://docs.example.com/?page=',
      'https://docs.example.com/#errors',
      `https://docs.example.com/${'a'.repeat(500)}`,
    ]) {
      assert.deepEqual(docsPage(code, configured(url)), { docs }, url);
      assert.match(
        docsText(code, configured(url)),
        /^writ help DOWNLOAD_DIGEST \(WRIT_DOCS_URL is not an addr/,
      );
    }
  });

  it('accepts 500 characters of WRIT_DOCS_URL, and treats an empty one as unset', () => {
    const longest = 'https://docs.example.com/'.padEnd(500, 'a');
    assert.equal(docsPage(code, configured(longest)).docsUrl, `${longest}/errors/${code}`);
    assert.equal(docsText(code, configured('')), docs);
  });

  it('is that of the package only for the program of the package, because another version may lack it', () => {
    assert.equal(siteOfPackage('/usr/lib/writ/dist/writ'), '/usr/share/doc/writ/html');
    assert.equal(siteOfPackage('/usr/lib/writ-other/dist/writ'), undefined);
    assert.equal(siteOfPackage('/home/anna/writ/dist/writ'), undefined);
  });
});
