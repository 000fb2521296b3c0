// `npm run test:browser`: the fleet page in Debian's Chromium. Prints how to install a missing program; runs the test files
// one after the other, because each has its own browser.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;
const missing = [
  [
    existsSync(process.env.WRIT_CHROMIUM ?? '/usr/bin/chromium'),
    'Chromium: sudo apt-get install chromium fonts-dejavu-core (or its path in WRIT_CHROMIUM)',
  ],
  [
    existsSync(join(here, '../../site/node_modules/markdown-it')),
    'the packages of the docs site: npm ci --prefix site',
  ],
  ...['playwright-core', 'axe-core'].map((name) => [
    existsSync(join(here, 'node_modules', name)),
    `${name}: npm ci --prefix test/browser`,
  ]),
].filter(([isThere]) => !isThere);
for (const [, what] of missing) console.error(`missing ${what}`);
if (missing.length > 0) process.exit(2);

const files = readdirSync(here).filter((name) => name.endsWith('.test.js'));
const { status } = spawnSync(
  process.execPath,
  ['--test', '--test-concurrency=1', ...process.argv.slice(2), ...files.map((name) => join(here, name))],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
