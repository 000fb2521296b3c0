// Debian's Chromium with a signed-in person. A message on the console of a page fails its test.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { plantedFleet } from './planted-fleet.js';

/** Pages of each fleet that has a report about dns-edge 42. */
export const everyPage = ['/', '/hosts', '/log', '/releases/dns-edge/stable/42'];

/** Long timeouts, because slowness of a loaded machine is no fault. */
const patienceMs = 60_000;

/** @returns a browser, and a function that opens a page of a person with a role. As root Chromium runs without its sandbox */
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
        // Messages about a server that the test stopped.
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
 * @param play called with a fleet and a page of a signed-in person
 * @param options of the browser's context
 * @param plant writes to the store before the server starts
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

/** Asserts that only elements with their own scroll bar scroll horizontally. */
export async function fitsItsScreen(page) {
  const [wide, screen] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(wide <= screen, `${page.url()}: ${wide} px on a screen of ${screen}`);
}
