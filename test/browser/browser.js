// Debian's Chromium with a person who is signed in; whatever a page complains of on its console fails the test that shows it.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

/** @returns a browser, and a page of a person with a role; as root Chromium has no sandbox of its own */
export async function openBrowser() {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const executablePath = process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath, args });
  return {
    close: () => browser.close(),
    /** @param options of the context, as `javaScriptEnabled: false` */
    signedIn: async (fleet, options = {}, role = 'detail') => {
      const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
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
    context: (options) => browser.newContext(options),
  };
}

/** Nothing but a frame of its own scrolls sideways. */
export async function fitsItsScreen(page) {
  const [wide, screen] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(wide <= screen, `${page.url()}: ${wide} px on a screen of ${screen}`);
}
