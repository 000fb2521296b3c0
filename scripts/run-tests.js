// Runs the compiled tests with node:test. Node 20 takes no globs and would also run helper files as tests,
// so the list is made here. Arguments are substrings of file names, with a minus those to leave out:
// `node scripts/run-tests.js kresd`, `node scripts/run-tests.js -crash/`.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../dist/test', import.meta.url));
const given = process.argv.slice(2);
const wanted = given.filter((part) => !part.startsWith('-'));
const unwanted = given.filter((part) => part.startsWith('-')).map((part) => part.slice(1));
const files = readdirSync(root, { recursive: true })
  .filter((name) => name.endsWith('.test.js'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
  .filter((name) => !unwanted.some((part) => name.includes(part)))
  .sort()
  .map((name) => `${root}/${name}`);
if (files.length === 0) {
  console.error(`no test file matches ${given.join(' ')}`);
  process.exit(1);
}
// Node leaves one processor to itself: on two, the files would run one after another.
const options = ['--test', '--test-reporter=spec', `--test-concurrency=${availableParallelism()}`];
const run = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
process.exit(run.status ?? 1);
