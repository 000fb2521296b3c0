// Makes the pictures of docs/images again, for a review by eye: `npm run build && node test/browser/screenshots.js`.
import { join } from 'node:path';
import { openBrowser } from './browser.js';
import { plantedFleet, refusal, running, signedRepository } from './planted-fleet.js';

const folder = join(import.meta.dirname, '../../docs/images');

async function plant(fleet) {
  await fleet.repository(signedRepository('https://policy.example.net/repo/'));
  for (let turn = 0; turn < 40; turn++) {
    const site = ['fra', 'ams', 'lhr'][turn % 3];
    const host = await fleet.enrol(`edge-${site}1-${String(turn).padStart(2, '0')}`);
    const state = turn % 11 === 5 ? 'unconfirmed' : turn % 17 === 8 ? 'notified' : 'confirmed';
    const serial = turn % 13 === 0 ? 40 : turn % 6 === 0 ? 41 : 42;
    const offered = turn % 19 === 1 ? { offered: refusal(43) } : {};
    await fleet.report(host, running(serial, { turn, state, root: turn % 10 === 0 ? 1 : 2, ...offered }));
  }
}

const fleet = await plantedFleet(plant);
const browser = await openBrowser();
const wide = await browser.signedIn(fleet, { viewport: { width: 1000, height: 700 } });
const narrow = await browser.signedIn(fleet, { viewport: { width: 360, height: 900 }, colorScheme: 'dark' });
const paper = await browser.signedIn(fleet, { viewport: { width: 720, height: 1000 } });
await paper.page.emulateMedia({ media: 'print' });
const shots = [
  [wide, '/', 'fleet-first-screen'],
  [wide, '/hosts?where=label.site%3Dams', 'fleet-hosts'],
  [wide, '/releases/dns-edge/stable/42', 'fleet-release'],
  [narrow, '/', 'fleet-narrow-dark'],
  [paper, '/', 'fleet-on-paper'],
];
for (const [{ page }, path, name] of shots) {
  await page.goto(`${fleet.url}${path}`);
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
await wide.page.goto(`${fleet.url}/hosts?where=state%3Drefused`);
await wide.page.click('tbody th a');
await wide.page.waitForSelector('.verdict');
await wide.page.screenshot({ path: join(folder, 'fleet-host.png') });
await browser.close();
await fleet.end();
