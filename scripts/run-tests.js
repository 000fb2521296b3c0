// Runs the compiled tests: those of `npm test`, with `--long` the long cases, with `--exhaustive` the exhaustive ones,
// with `--all` all of them. Arguments are substrings of file names, of every set, with a minus those to leave out:
// `node scripts/run-tests.js kresd`, `node scripts/run-tests.js -scenario/`. Only `npm test` leaves out long cases. `--case=TEXT` runs
// the cases with this text in their name. `--slowest` lists at the end the 30 files and the 30 cases that took longest.
// scripts/test-plan.js decides what runs in which process, scripts/test-process.js runs the processes.

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chooseFiles, isWhollyLong, longPatterns, planProcesses } from './test-plan.js';
import { hasFailed, killAll, runUnit } from './test-process.js';
import { chooseSeed } from './test-seed.js';

const root = fileURLToPath(new URL('../dist/test', import.meta.url));
const options = process.argv.slice(2).filter((part) => part.startsWith('--'));
const given = process.argv.slice(2).filter((part) => !part.startsWith('--'));
const wanted = given.filter((part) => !part.startsWith('-'));
const unwanted = given.filter((part) => part.startsWith('-')).map((part) => part.slice(1));
/** Of each failure at the end. */
const maxSummaryLines = 30;
const maxSummaryChars = 6000;
const casePrefix = '--case=';
const caseText = options.find((option) => option.startsWith(casePrefix))?.slice(casePrefix.length);
const known = ['--slowest', '--all', '--long', '--exhaustive', `${casePrefix}${caseText}`];
const unknown = options.filter((option) => !known.includes(option));
if (unknown.length > 0) fail(`there is no option ${unknown.join(' ')}`);

const set = chosenSet();
const names = chooseFiles(root, { set, wanted, unwanted });
if (names.length === 0) fail(`no test file matches ${given.join(' ')}`);
/** So few that a reader wants to see each case. */
const isShort = names.length <= 5;
const seed = chosenSeed();
// Every test process and the programs that it starts take the seed from here.
process.env.WRIT_TEST_SEED = String(seed);
// test/kit/assert/long-case.ts reads it.
if (set === 'usual') process.env.WRIT_TEST_SHORT = '1';
const rerunCommand = `WRIT_TEST_SEED=${seed} node scripts/run-tests.js`;
console.log(`seed: WRIT_TEST_SEED=${seed}`);

process.on('exit', killAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

const startedMs = performance.now();
const results = [];
const units = planProcesses(names, set === 'long' ? patternsOf : undefined);
// One more than there are processors: many of them wait, for a daemon, a disk or a timer.
await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));
summary();

/** Of a file that has other cases too, only the long ones run. */
function patternsOf(name) {
  if (isWhollyLong(name)) return undefined;
  return longPatterns(readFileSync(`${root}/${name}.test.js`, 'utf8'));
}

function chosenSet() {
  if (options.includes('--all')) return 'all';
  if (options.includes('--exhaustive')) return 'exhaustive';
  if (options.includes('--long')) return 'long';
  return wanted.length > 0 ? 'all' : 'usual';
}

function chosenSeed() {
  try {
    return chooseSeed(process.env);
  } catch (error) {
    return fail(error.message);
  }
}

async function work() {
  for (let unit = units.shift(); unit !== undefined; unit = units.shift()) {
    const files = unit.names.map((name) => `${root}/${name}.test.js`);
    for (const result of await runUnit({ ...unit, files, caseText })) {
      const name = result.file.slice(root.length + 1, -'.test.js'.length);
      results.push({ ...result, name });
      say({ ...result, name });
    }
  }
}

function casesOf({ events }) {
  return events.filter(({ kind, isSuite }) => (kind === 'pass' || kind === 'fail') && !isSuite);
}

function isGood({ events, trouble }) {
  return trouble === undefined && !events.some(hasFailed);
}

function say(result) {
  const { name, events, seconds, output, trouble } = result;
  const count = casesOf(result).length;
  console.log(`${isGood(result) ? '✔' : '✖'} ${name} (${count} cases, ${seconds.toFixed(1)} s)`);
  for (const event of events) sayEvent(event);
  if (output.trim() !== '') console.log(indented(output.trimEnd()));
  if (isGood(result)) return;
  if (trouble !== undefined) console.log(`  ✖ ${trouble}`);
  console.log(`  alone: ${rerunCommand} ${name}`);
}

function sayEvent(event) {
  const { kind, path, skip, error, text } = event;
  if (kind === 'long') return;
  if (kind === 'diagnostic') console.log(`  ℹ ${text}`);
  else if (skip !== undefined) console.log(`  ﹣ ${path.join(' > ')} # ${skip}`);
  else if (hasFailed(event) && !(event.isSuite && error === undefined))
    console.log(`  ✖ ${path.join(' > ')}${error ? `\n${indented(error)}` : ''}`);
  else if (isShort && !event.isSuite) console.log(`  ✔ ${path.join(' > ')} (${Math.round(event.ms)} ms)`);
}

function indented(text) {
  return text.replace(/^/gm, '      ');
}

function summary() {
  const cases = results.flatMap(casesOf);
  const skipped = cases.filter(({ skip }) => skip !== undefined).length;
  const failed = cases.filter(hasFailed).length;
  const cpuSeconds = results.reduce((sum, one) => sum + one.cpuSeconds, 0);
  const seconds = (performance.now() - startedMs) / 1000;
  if (options.includes('--slowest')) sayLongest();
  const passed = cases.length - failed - skipped;
  const left = results.flatMap(({ events }) => events).filter(({ kind }) => kind === 'long').length;
  if (left > 0) console.log(`\n${left} long cases and suites were left out: npm run test:long`);
  console.log(
    `\n${cases.length} cases in ${results.length} files: ${passed} passed, ${failed} failed, ${skipped} skipped`,
  );
  console.log(`${seconds.toFixed(0)} s, ${cpuSeconds.toFixed(0)} s of processors`);
  const bad = results.filter((one) => !isGood(one));
  if (caseText !== undefined && cases.length === 0) fail(`no case has '${caseText}' in its name`);
  if (bad.length === 0) return;
  console.log('Failed, each with the command that runs it alone:');
  for (const one of bad) {
    console.log(`  ${rerunCommand} ${one.name}`);
    // Here again, with what was expected and found: of a long output often only the end is kept.
    for (const { path, error } of one.events.filter(isOwnFailure))
      console.log(`    ✖ ${path.join(' > ')}\n${indented(beginning(error))}`);
    if (one.trouble !== undefined) console.log(`    ✖ ${one.trouble}`);
  }
  process.exitCode = 1;
}

/** A suite that fails for one of its cases has no error. */
function isOwnFailure(event) {
  return hasFailed(event) && event.error !== undefined;
}

/** Without the stack, which the whole output has. */
function beginning(error) {
  const lines = error.split('\n').filter((line) => line.trim() !== '' && !/^\s+at /.test(line));
  return lines.slice(0, maxSummaryLines).join('\n').slice(0, maxSummaryChars);
}

function sayLongest() {
  const files = results.map(({ name, seconds, cpuSeconds }) => [
    name,
    seconds,
    `, ${cpuSeconds.toFixed(1)} s of processors`,
  ]);
  const cases = results.flatMap((one) =>
    casesOf(one).map(({ path, ms }) => [`${one.name}: ${path.at(-1)}`, ms / 1000, '']),
  );
  for (const [kind, all] of [
    ['file', files],
    ['case', cases],
  ])
    for (const [name, seconds, more] of all.sort(([, a], [, b]) => b - a).slice(0, 30))
      console.log(`${seconds.toFixed(1).padStart(8)} s  ${kind} ${name}${more}`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
