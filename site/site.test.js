// The site as a whole, built in memory from this checkout, and the faults that fail a build. `npm run test:site`; search and
// style are tested in a browser (test/browser/docs-site.test.js).
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { errorCodes } from '../dist/src/core/error-codes.js';
import { errorPage } from '../dist/src/core/error-docs.js';
import { buildSite, writeSite } from './build.js';
import { brokenLinks } from './check-links.js';
import { createMarkdown, slugOf } from './markdown.js';

const entities = { '&quot;': '"', '&lt;': '<', '&gt;': '>', '&amp;': '&' };
const textOf = (html) =>
  html.replace(/<[^>]*>/g, '').replace(/&(?:quot|lt|gt|amp);/g, (one) => entities[one]);

describe('the site', () => {
  let site;
  before(async () => {
    site = await buildSite();
  });

  it('has no broken link, and the same bytes twice', async () => {
    assert.deepEqual(site.problems, []);
    const again = await buildSite();
    assert.deepEqual([...again.files.keys()], [...site.files.keys()]);
    for (const [path, bytes] of again.files)
      assert.ok(Buffer.from(bytes).equals(Buffer.from(site.files.get(path))), path);
  });

  it('has a page for every code, with its row of the table', () => {
    for (const code of Object.keys(errorCodes)) {
      const words = textOf(site.files.get(`errors/${code}/index.html`));
      const { kind, exit, meaning, effect, hint } = errorPage(code);
      for (const part of [code, `Kind: ${kind}, ${exit}`, meaning, effect, hint])
        assert.ok(words.includes(part.replaceAll('`', '')), `${code}: ${part}`);
    }
  });

  it('calls a page by its name where the repository calls it by its file', () => {
    const page = site.files.get('index.html');
    assert.match(page, /<a href="install\.html">Install<\/a>/);
    assert.match(page, /<a href="errors\/index\.html">Error codes<\/a>/);
    for (const [path, html] of site.files)
      if (path.endsWith('.html'))
        assert.doesNotMatch(String(html), /<a [^>]*\.html[^>]*>[\w./-]+\.md<\/a>/, path);
  });

  it('has the help of every command', () => {
    const page = site.files.get('commands.html');
    assert.match(page, /<h2 id="writ-publish">/);
    assert.match(page, /--stamp/);
    assert.match(page, /<h2 id="writ-help-exit-codes">/);
  });

  it('shows every page in a frame with a menu that names it', () => {
    const menu = site.files.get('index.html');
    for (const name of [
      'install',
      'configuration',
      'operations',
      'errors/index',
      'adr/0001-tuf-and-canonical-json',
    ])
      assert.ok(menu.includes(`href="${name}.html"`), name);
    assert.match(site.files.get('install.html'), /aria-current="page">Install</);
  });

  it('replaces all previous files', () => {
    const directory = mkdtempSync(join(tmpdir(), 'writ-site-'));
    try {
      writeSite(new Map([['old.html', 'x']]), directory);
      writeSite(new Map([['errors/A/index.html', 'y']]), directory);
      assert.deepEqual(readdirSync(directory), ['errors']);
      assert.equal(readFileSync(join(directory, 'errors/A/index.html'), 'utf8'), 'y');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('a build', () => {
  const withText = (text) =>
    buildSite((source, before) => (source === 'docs/install.md' ? `${before}\n${text}\n` : before));
  const planted = {
    'a page that is not there': ['[x](nowhere.md)', /docs\/install\.md:\d+: nothing is at nowhere\.md/],
    'an anchor that is not there': [
      '[x](server.md#nowhere)',
      /install\.html: no anchor is at server\.html#nowhere/,
    ],
    'an anchor of the same page that is not there': [
      '[x](#nowhere)',
      /install\.html: no anchor is at #nowhere/,
    ],
    'a file out of the repository': [
      '[x](../../../etc/passwd)',
      /install\.md:\d+: nothing is at \.\.\/\.\.\/\.\.\/etc\/passwd/,
    ],
    'a picture of another server': [
      '![x](https://example.net/x.png)',
      /<img src="https:.*asks another server/,
    ],
    'HTML in Markdown': ['<script>alert(1)</script>', /HTML in Markdown/],
  };
  for (const [name, [text, problem]] of Object.entries(planted))
    it(`is refused for ${name}`, async () => {
      const { problems } = await withText(text);
      assert.equal(problems.filter((one) => problem.test(one)).length, 1, problems.join('\n'));
    });

  it('is refused for a code that is in the table alone', async () => {
    const { problems } = await buildSite((source, text) =>
      source === 'docs/errors.md' ? text.replace('## LOCK_HELD\n', '## LOCK_HOLD\n') : text,
    );
    assert.ok(
      problems.some((one) => one.includes('LOCK_HELD')) && problems.some((one) => one.includes('LOCK_HOLD')),
    );
  });
});

describe('links of built pages', () => {
  const problemsOf = (html, more = {}) => brokenLinks(new Map(Object.entries({ 'a/b.html': html, ...more })));

  it('are right to a file, an anchor and another site', () => {
    const html =
      '<a href="../c.html#d">x</a><a href="https://example.net/">y</a><p id="e"><a href="#e">z</a>';
    assert.deepEqual(problemsOf(html, { 'c.html': '<p id="d">' }), []);
  });

  it('are wrong from the root, from a script of another server, and to one of two anchors', () => {
    assert.match(problemsOf('<a href="/c.html">x</a>')[0], /root of a server/);
    assert.match(problemsOf('<script src="//example.net/x.js"></script>')[0], /another server/);
    assert.match(problemsOf('<p id="d"><p id="d">')[0], /two anchors/);
  });
});

describe('Markdown', () => {
  it('has the anchors that GitHub makes', () => {
    const seen = new Map();
    assert.equal(slugOf('What is in it, and who made it', seen), 'what-is-in-it-and-who-made-it');
    assert.equal(slugOf('`repo status`: a/b', seen), 'repo-status-ab');
    assert.equal(slugOf('a b', seen), 'a-b');
    assert.equal(slugOf('a b', seen), 'a-b-1');
  });

  it('drops comments, and keeps the text of code as it is', () => {
    const problems = [];
    const { html, sections } = createMarkdown(() => 'x')(
      'a.md',
      '# A\n\n<!-- on: host -->\n```\na <b> $W\n```\n',
      problems,
    );
    assert.deepEqual(problems, []);
    assert.ok(!html.includes('on: host') && html.includes('a &#60;b&#62; $W'));
    assert.deepEqual(sections, [{ id: 'a', title: 'A', text: 'a <b> $W' }]);
  });
});
