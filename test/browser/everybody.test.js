// Accessibility and printing of the fleet page. axe-core finds no violation of WCAG 2.2 A and AA or of its best practices on
// any page, light or dark, wide or narrow. A print has white paper, no navigation, and absolute times.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import axe from 'axe-core';
import { everyPage, fitsItsScreen, openBrowser, withFleet } from './browser.js';
import { refusal, running } from './planted-fleet.js';

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

/** Each kind of host that is displayed differently. */
async function plant(fleet) {
  const hosts = await fleet.enrolMany(['edge-1', 'edge-2', 'edge-3', 'edge-4', 'a name <b>of</b> words']);
  const [confirmed, refusing, notified, unconfirmed, odd] = hosts;
  fleet.refusing = refusing.keyId;
  await fleet.report(confirmed, running(42));
  await fleet.report(refusing, running(41, { offered: refusal(43) }));
  await fleet.report(notified, running(42, { state: 'notified', root: 1 }));
  await fleet.report(unconfirmed, running(42, { state: 'unconfirmed' }));
  await fleet.report(odd, running(40));
}

const displays = {
  light: {},
  'dark and narrow': { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
};

describe('axe-core', () => {
  for (const [name, options] of Object.entries(displays)) {
    it(`finds nothing on any page (${name})`, () =>
      withFleet(
        browser,
        async ({ fleet, page }) => {
          const pages = [
            ...everyPage,
            `/hosts/${fleet.refusing}`,
            '/hosts?where=state%3Dsilent',
            '/hosts?where=nothing',
            '/hosts/nobody',
          ];
          for (const path of pages) {
            await page.goto(`${fleet.url}${path}`);
            await expectNoViolation(page);
          }
          await page.context().clearCookies();
          await page.goto(`${fleet.url}/sign-in`);
          await expectNoViolation(page);
        },
        options,
        plant,
      ));
  }

  it('finds nothing where there is no host', () =>
    withFleet(browser, async ({ page }) => expectNoViolation(page)));

  it('reports a picture without an alternative text', () =>
    withFleet(browser, async ({ page }) => {
      await page.evaluate(() => document.querySelector('main').append(new Image()));
      await assert.rejects(expectNoViolation(page), /image-alt/);
    }));
});

/** Uses the devtools protocol, because the content security policy allows only scripts of the server. */
async function expectNoViolation(page) {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations);
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map((one) => `${id}: ${one.failureSummary} ${one.html}`),
  );
  assert.deepEqual(found, [], page.url());
}

describe('paper', () => {
  it('is white and has the text of the screen without navigation', () =>
    withFleet(
      browser,
      async ({ fleet, page }) => {
        await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
        for (const path of [...everyPage, `/hosts/${fleet.refusing}`]) {
          await page.goto(`${fleet.url}${path}`);
          for (const gone of ['nav', '.visit', '.refresh'])
            assert.equal(await page.locator(gone).first().isVisible(), false, `${gone} of ${path}`);
          await fitsItsScreen(page);
          const [ground, text] = await page.evaluate(() => {
            const { backgroundColor, color } = getComputedStyle(document.body);
            return [backgroundColor, color];
          });
          assert.deepEqual([ground, text], ['rgb(255, 255, 255)', 'rgb(0, 0, 0)'], path);
        }
        assert.match((await page.pdf({ format: 'A4' })).subarray(0, 5).toString(), /^%PDF-/);
      },
      { viewport: { width: 720, height: 1000 } },
      plant,
    ));

  it('shows absolute times, not ages', () =>
    withFleet(
      browser,
      async ({ page }) => {
        await page.waitForFunction(() => /now|ago/.test(document.querySelector('#age').textContent));
        const printed = await page.evaluate(() => {
          dispatchEvent(new Event('beforeprint'));
          return document.querySelector('#age').textContent;
        });
        assert.match(printed, /^as of \d{4}-\d\d-\d\d \d\d:\d\d/);
      },
      {},
      plant,
    ));
});
