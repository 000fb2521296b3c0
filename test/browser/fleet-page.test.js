// The fleet page with a real server, a real browser and hosts planted in the store: 0, 1 and 10,000 hosts; updates without a reload; hostile
// names; without JavaScript; by keyboard; on a narrow screen; without the server.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { everyPage, fitsItsScreen, openBrowser, withFleet } from './browser.js';
import { refusal, running } from './planted-fleet.js';

const many = 10_000;
const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>gpj.exe`;
// Only lines may have characters that reverse text; a name with them is refused.
const hostileLine = `${hostile}\u202egpj.exe`;
let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

const within = (play, options, plant) => withFleet(browser, play, options, plant);

async function plantMany(fleet, count) {
  const hosts = await fleet.enrolMany(
    Array.from({ length: count }, (_, turn) => `edge-${String(turn).padStart(5, '0')}`),
  );
  for (let from = 0; from < count; from += 1000) {
    const some = hosts.slice(from, from + 1000);
    await Promise.all(
      some.map((host, index) =>
        fleet.report(host, running((from + index) % 50 === 0 ? 41 : 42, { turn: from + index })),
      ),
    );
  }
}

describe('the first screen', () => {
  it('reports that there is no host', () =>
    within(async ({ page }) => {
      assert.match(await page.textContent('h1'), /host/);
      assert.equal(await page.textContent('.tiles a'), '0');
      await fitsItsScreen(page);
    }));

  it('shows that one host runs the offered release', () =>
    within(
      async ({ page }) => {
        assert.match(await page.textContent('h1'), /OK The one host confirmed/);
        assert.equal(await page.locator('.bar svg').count(), 2);
      },
      {},
      async (fleet) => fleet.report(await fleet.enrol('edge-1'), running(42)),
    ));

  it('is shown at once with 10,000 hosts, and the pages of the list keep the filter in the address', () =>
    within(
      async ({ fleet, page }) => {
        assert.match(await page.textContent('#releases ~ article:nth-of-type(2)'), /9,800/);
        assert.match(await page.textContent('main'), /accepted\s*10,000/);
        const took = await page.evaluate(async () => {
          const times = [];
          for (let i = 0; i < 5; i++) {
            const begun = performance.now();
            await (await fetch('/')).text();
            times.push(performance.now() - begun);
          }
          return Math.min(...times);
        });
        console.log(`# first screen with ${many} hosts: ${took.toFixed(0)} ms, best of 5`);
        await page.goto(`${fleet.url}/hosts`);
        await page.fill('#where', 'serial=41,label.site=fra');
        await page.press('#where', 'Enter');
        await page.waitForURL('**/hosts?where=*');
        const first = await page.textContent('tbody th');
        await page.reload();
        assert.equal(await page.inputValue('#where'), 'serial=41,label.site=fra');
        assert.equal(await page.textContent('tbody th'), first);
        await page.goto(`${fleet.url}/hosts?where=serial%3D42`);
        assert.equal(await page.locator('tbody tr').count(), 100);
        const last = await page.locator('tbody tr').last().locator('th').textContent();
        await page.click('a[rel=next]');
        await page.waitForURL('**after=**');
        assert.ok((await page.textContent('tbody th')) > last);
        assert.match(page.url(), /where=serial%3D42/);
        const csv = await page.evaluate(async () => {
          const link = document.querySelector('a[download]').href;
          return (await (await fetch(link)).text()).split('\r\n').length;
        });
        assert.ok(csv > 9800);
      },
      {},
      (fleet) => plantMany(fleet, many),
    ));
});

describe('the page while it is open', () => {
  const plant = async (fleet) => {
    fleet.host = await fleet.enrol('edge-1');
    await fleet.report(fleet.host, running(42));
  };

  it('shows a refusal without a reload within the promised 2 s, prints its delay, and keeps the focus', () =>
    within(
      async ({ fleet, page }) => {
        await page.waitForFunction(() => document.querySelector('#age')?.textContent.includes('now'));
        await page.focus('.tiles a');
        await fleet.report(fleet.host, running(42, { offered: refusal(43) }));
        const reported = Date.now();
        await page.waitForSelector('.cards .critical');
        console.log(`# shown ${Date.now() - reported} ms after the report was acknowledged`);
        assert.match(await page.title(), /^CRITICAL/);
        assert.match(await page.textContent('.cards'), /block\.rpz:214: invalid IPv4 address/);
        assert.equal(await page.evaluate(() => document.activeElement.closest('.tiles') !== null), true);
      },
      {},
      plant,
    ));

  it('reports an unreachable server, keeps its content, and continues when the server is back', () =>
    within(
      async ({ fleet, page }) => {
        await page.waitForFunction(() => document.querySelector('#age')?.textContent.includes('now'));
        await fleet.stop();
        await page.waitForFunction(() => document.querySelector('#link').textContent !== '');
        assert.match(await page.textContent('#link'), /No answer from the server/);
        assert.match(await page.textContent('h1'), /The one host confirmed/);
        await page.waitForFunction(() => /\d+ s ago/.test(document.querySelector('#age').textContent));
        await fleet.startAgain();
        await page.waitForFunction(() => document.querySelector('#link').textContent === '');
      },
      {},
      plant,
    ));

  it('reports the end of the session', () =>
    within(
      async ({ page }) => {
        await page.context().clearCookies();
        await page.waitForFunction(() => /Signed out/.test(document.querySelector('#link').textContent));
      },
      {},
      plant,
    ));
});

describe('each person on the fleet page', () => {
  const plant = async (fleet) => {
    for (const name of ['edge-1', hostile, 'x'.repeat(255)]) {
      const host = await fleet.enrol(name);
      const labels = { site: 'fra', note: hostile };
      await fleet.report(host, running(42, { offered: refusal(43, hostileLine), report: { labels } }));
    }
  };

  it('shows hostile names as text on every page', () =>
    within(
      async ({ fleet, page }) => {
        for (const path of everyPage) {
          await page.goto(`${fleet.url}${path}`);
          assert.equal(await page.locator('main img, main script').count(), 0);
          await fitsItsScreen(page);
        }
        await page.goto(`${fleet.url}/hosts`);
        const shown = page.locator('tbody th a', { hasText: '<script>' });
        assert.match(await shown.textContent(), /onerror=alert\(2\)>gpj\.exe/);
        await shown.click();
        await page.waitForSelector('.verdict');
        assert.match(await page.textContent('h1'), /<script>alert\(1\)<\/script>/);
        await fitsItsScreen(page);
      },
      {},
      plant,
    ));

  it('needs no JavaScript', () =>
    within(
      async ({ fleet, page }) => {
        assert.match(await page.textContent('h1'), /3 hosts \(.+\) refused dns-edge 43/);
        await page.click('.findings a');
        assert.equal(await page.locator('tbody tr').count(), 3);
        await page.click('tbody th a');
        assert.match(await page.textContent('.verdict'), /generation 18/);
        await page.goto(`${fleet.url}/`);
        await page.click('a.refresh');
        assert.equal(await page.locator('.verdict').count(), 1);
        await page.click('text=Sign out');
        assert.match(page.url(), /\/sign-in$/);
        await page.goto(`${fleet.url}/`);
        assert.match(page.url(), /\/sign-in\?next=%2F$/);
      },
      { javaScriptEnabled: false },
      plant,
    ));

  it('gets everywhere by keyboard, and sees where they are', () =>
    within(
      async ({ page }) => {
        await page.keyboard.press('Tab');
        assert.equal(
          await page.evaluate(() => document.activeElement.textContent.trim()),
          'Skip to the content',
        );
        const seen = new Set();
        for (let presses = 0; presses < 60; presses++) {
          await page.keyboard.press('Tab');
          const at = await page.evaluate(() => {
            const one = document.activeElement;
            const { outlineStyle } = getComputedStyle(one);
            return {
              name: one.getAttribute('href') ?? one.getAttribute('aria-label') ?? one.tagName,
              outlineStyle,
            };
          });
          if (at.name === 'BODY') break;
          assert.notEqual(at.outlineStyle, 'none', at.name);
          seen.add(at.name);
        }
        for (const name of ['/hosts', '/log', '/releases/dns-edge/stable/43', '/hosts?where=state%3Dsilent'])
          assert.ok(seen.has(name), `${name} of ${[...seen].join(' ')}`);
      },
      {},
      plant,
    ));

  it('reads it on a screen of 360 px, in the dark too', () =>
    within(
      async ({ fleet, page }) => {
        for (const path of everyPage) {
          await page.goto(`${fleet.url}${path}`);
          await fitsItsScreen(page);
        }
        const [text, ground] = await page.evaluate(() => {
          const { color, backgroundColor } = getComputedStyle(document.body);
          return [color, backgroundColor];
        });
        assert.ok(
          Number(/\d+/.exec(text)[0]) > 200 && Number(/\d+/.exec(ground)[0]) < 50,
          `${text} on ${ground}`,
        );
      },
      { viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
      plant,
    ));

  it('stays signed in behind a link of another site, and no form of one signs out', () =>
    within(
      async ({ fleet, page }) => {
        const other = fleet.url.replace('127.0.0.1', 'localhost');
        await page.route(`${other}/elsewhere`, (route) =>
          route.fulfill({
            contentType: 'text/html',
            body: `<a id="go" href="${fleet.url}/log">go</a><form method="post" action="${fleet.url}/sign-out"><button>out</button></form>`,
          }),
        );
        await page.goto(`${other}/elsewhere`);
        await page.click('#go');
        await page.waitForSelector('h1:has-text("Log")');
        await page.goto(`${other}/elsewhere`);
        await page.click('button');
        await page.waitForSelector('text=FLEET_FORBIDDEN');
        await page.goto(`${fleet.url}/log`);
        await page.waitForSelector('h1:has-text("Log")');
      },
      {},
      plant,
    ));
});
