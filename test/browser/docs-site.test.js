// The docs site in Chromium, from a plain file server below a path: search finds pages, no other server gets a request, and
// the site is readable in dark mode, on a narrow screen and without scripts.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { buildSite, writeSite } from '../../site/build.js';

const below = '/any/path';
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.png': 'image/png' };
const directory = mkdtempSync(join(tmpdir(), 'writ-docs-site-'));
let browser;
let server;
let base;

/** Redirects a folder without its slash, as usual file servers do. */
function answer({ url }, response) {
  const { pathname } = new URL(url, 'http://localhost');
  const path = join(directory, pathname.slice(below.length));
  if (!pathname.startsWith(below) || !existsSync(path)) return response.writeHead(404).end();
  const isFolder = statSync(path).isDirectory();
  if (isFolder && !pathname.endsWith('/')) return response.writeHead(301, { location: `${pathname}/` }).end();
  const file = isFolder ? join(path, 'index.html') : path;
  response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain' }).end(readFileSync(file));
}

before(async () => {
  const { files, problems } = await buildSite();
  assert.deepEqual(problems, []);
  writeSite(files, directory);
  server = createServer(answer);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${server.address().port}${below}/`;
  const executablePath = process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium';
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  browser = await chromium.launch({ executablePath, args, timeout: 60_000 });
});

after(async () => {
  await browser?.close();
  server?.close();
  server?.closeAllConnections();
  rmSync(directory, { recursive: true, force: true });
});

/** An error on the page, or a request to another origin than `from`, fails the test. */
async function onPage(path, options, play, from = base) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (line) => line.type() === 'error' && complaints.push(line.text()));
  page.on('request', (request) => {
    if (!/^data:/.test(request.url()) && !request.url().startsWith(from)) complaints.push(request.url());
  });
  await page.goto(`${from}${path}`);
  await play(page);
  await context.close();
  assert.deepEqual(complaints, []);
}

async function search(page, query) {
  await page.fill('.search input', query);
  await page.waitForFunction((text) => document.querySelector('.found')?.textContent.includes(text), query);
  return page.$$eval('.found a', (links) => links.map((link) => link.textContent));
}

describe('the docs site', () => {
  it('finds and opens a page by its text, from any page', () =>
    onPage('adr/0006-error-kinds.html', {}, async (page) => {
      assert.equal((await search(page, 'DOWNLOAD_DIGEST'))[0], 'DOWNLOAD_DIGEST');
      await page.press('.search input', 'Enter');
      await page.waitForURL('**/errors/DOWNLOAD_DIGEST/index.html');
      assert.equal(await page.textContent('h1'), 'DOWNLOAD_DIGEST');
    }));

  it('reports a search without results', () =>
    onPage('index.html', {}, async (page) => {
      await page.fill('.search input', 'xyzzyplugh');
      await page.waitForSelector('.found:has-text("Nothing found")');
    }));

  it('has each code at the address that an error names', () =>
    onPage('errors/LOCK_HELD', {}, async (page) => {
      assert.equal(await page.textContent('h1'), 'LOCK_HELD');
      await page.click('text=All error codes');
      assert.equal(await page.textContent('h1'), 'Error codes');
    }));

  it('finds the same from a disk', () =>
    onPage(
      'install.html',
      {},
      async (page) => assert.equal((await search(page, 'LOCK_HELD'))[0], 'LOCK_HELD'),
      `file://${directory}/`,
    ));

  it('is read without scripts: the text, every page in the menu, and no field that does nothing', () =>
    onPage(
      'operations.html',
      { javaScriptEnabled: false, viewport: { width: 360, height: 740 } },
      async (page) => {
        assert.ok(await page.isVisible('h1'));
        assert.ok(await page.isHidden('.search'));
        assert.ok(await page.isHidden('nav a >> nth=0'));
        await page.check('#menu');
        await page.click('nav >> text=Install');
        assert.equal(await page.textContent('h1'), 'Install');
      },
    ));

  it('fits a screen of 360 pixels', () =>
    onPage('index.html', { viewport: { width: 360, height: 740 } }, async (page) => {
      for (const path of [
        'index',
        'install',
        'configuration',
        'json',
        'operations',
        'truth',
        'commands',
        'errors/index',
      ]) {
        await page.goto(`${base}${path}.html`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
      }
    }));

  for (const [name, options, paper] of [
    ['light', {}, 'rgb(255, 255, 255)'],
    ['dark', { colorScheme: 'dark' }, 'rgb(20, 23, 27)'],
    ['dark and narrow', { colorScheme: 'dark', viewport: { width: 360, height: 740 } }, 'rgb(20, 23, 27)'],
  ])
    it(`passes axe-core (${name})`, () =>
      onPage('install.html', options, async (page) => {
        assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), paper);
        for (const path of ['install', 'configuration', 'errors/LOCK_HELD/index', 'fleet']) {
          await page.goto(`${base}${path}.html`);
          await page.evaluate(axe.source);
          const found = await page.evaluate(async () => (await globalThis.axe.run()).violations);
          assert.deepEqual(
            found.map(({ id, nodes }) => `${id}: ${nodes[0].html}`),
            [],
            path,
          );
        }
      }));
});
