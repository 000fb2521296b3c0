// Debian's Chromium with a person who is signed in; whatever a page complains of on its console fails the test that shows it.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { plantedFleet } from './planted-fleet.js';

/** Pages that are there in every fleet which has heard of dns-edge 42. */
export const everyPage = ['/', '/hosts', '/log', '/releases/dns-edge/stable/42'];

/** On a loaded machine slowness is no fault: nothing here is given up before. */
const patienceMs = 60_000;

/** @returns a browser, and a page of a person with a role; as root Chromium has no sandbox of its own */
export async function openBrowser() {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const executablePath = process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath, args, timeout: patienceMs });
  return {
    close: () => browser.close(),
    /** @param options of the context, as `javaScriptEnabled: false` */
    signedIn: async (fleet, options = {}, role = 'detail') => {
      const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      const complaints = [];
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (line) => {
        const text = line.text();
        // A server that is away on purpose.
        if (line.type() === 'error' && !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|status of 40\d/.test(text))
          complaints.push(text);
      });
      page.on('dialog', (dialog) => {
        complaints.push(`a script ran: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.goto(`${fleet.url}/`);
      await page.fill('#token', fleet.people[role]);
      await page.press('#token', 'Enter');
      await page.waitForSelector('.verdict');
      return {
        page,
        end: async () => {
          await context.close();
          assert.deepEqual(complaints, []);
        },
      };
    },
  };
}

/**
 * @param play with a fleet, and a page of a person who is signed in
 * @param options of the browser's context
 * @param plant what the store holds before the server starts
 */
export async function withFleet(browser, play, options, plant) {
  const fleet = await plantedFleet(plant);
  try {
    const { page, end } = await browser.signedIn(fleet, options);
    await play({ fleet, page });
    await end();
  } finally {
    await fleet.end();
  }
}

/** Nothing but a frame of its own scrolls sideways. */
export async function fitsItsScreen(page) {
  const [wide, screen] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(wide <= screen, `${page.url()}: ${wide} px on a screen of ${screen}`);
}
