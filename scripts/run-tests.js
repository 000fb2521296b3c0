// Runs the compiled tests with node:test, the long ones first, so that no processor is left alone with one of them at
// the end. Arguments are substrings of file names, with a minus those to leave out: `node scripts/run-tests.js kresd`,
// `node scripts/run-tests.js -exhaustive/`. `--slowest` says in the end which 30 files and which 30 cases took longest.

import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

/** As `--slowest` has said it; what is not here takes less than twenty seconds. */
const longestFirst = [
  'exhaustive/operations/operations.test.js',
  'exhaustive/crash/matrix.test.js',
  'exhaustive/kills/kills.test.js',
  'exhaustive/interrupted/interrupted-recovery.test.js',
  'scenario/ceremony/root-ceremony.test.js',
  'exhaustive/replay/replay.test.js',
  'exhaustive/differential/differential.test.js',
  'scenario/cycle/faults-of-the-disk.test.js',
  'exhaustive/interrupted/interrupted-cycle.test.js',
  'exhaustive/interrupted/interrupted-refresh.test.js',
  'exhaustive/soak/soak.test.js',
  'scenario/integrity/scrub.test.js',
  'real/demo/demo.test.js',
  'real/host/supervisord-host.test.js',
  'scenario/cli/cli-speaks.test.js',
  'scenario/cli/help.test.js',
  'scenario/ceremony/root-ceremony-loss.test.js',
];

const root = fileURLToPath(new URL('../dist/test', import.meta.url));
const options = process.argv.slice(2).filter((part) => part.startsWith('--'));
const given = process.argv.slice(2).filter((part) => !part.startsWith('--'));
const wanted = given.filter((part) => !part.startsWith('-'));
const unwanted = given.filter((part) => part.startsWith('-')).map((part) => part.slice(1));
const unknown = options.filter((option) => option !== '--slowest');
if (unknown.length > 0) fail(`there is no option ${unknown.join(' ')}`);

const names = readdirSync(root, { recursive: true })
  .filter((name) => name.endsWith('.test.js'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
  .filter((name) => !unwanted.some((part) => name.includes(part)))
  .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
if (names.length === 0) fail(`no test file matches ${given.join(' ')}`);

// `node --test` would sort the files itself.
const tests = run({
  files: names.map((name) => `${root}/${name}`),
  // One more than there are processors: many of them wait, for a daemon, a disk or a timer.
  concurrency: availableParallelism() + 1,
});
const durations = { file: new Map(), case: new Map() };
tests.on('test:fail', ({ todo }) => {
  if (todo === undefined || todo === false) process.exitCode = 1;
});
for (const end of ['test:pass', 'test:fail']) tests.on(end, note);
if (options.includes('--slowest')) process.on('exit', () => ['file', 'case'].forEach(sayLongest));
tests.compose(spec).pipe(process.stdout);

function rank(name) {
  const found = longestFirst.indexOf(name);
  return found < 0 ? longestFirst.length : found;
}

/** The suites of a file follow one another, so that their times add up to its own. */
function note({ name, file = '', nesting, details }) {
  const path = relative(root, file);
  if (nesting === 0) durations.file.set(path, (durations.file.get(path) ?? 0) + details.duration_ms);
  if (details.type !== 'suite') durations.case.set(`${path}: ${name}`, details.duration_ms);
}

function sayLongest(kind) {
  const longest = [...durations[kind]].sort(([, a], [, b]) => b - a).slice(0, 30);
  for (const [name, ms] of longest) console.log(`${(ms / 1000).toFixed(1).padStart(8)} s  ${kind} ${name}`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
