// Shows that the tests can fail: makes each change of test/mutations, one at a time, and runs the test case that
// must detect it. Works in scratch copies of the work tree, never in the work tree itself, and removes them.
// Arguments: ids of entries; `--sample N` takes N of them, evenly spread, others with each commit; `--part 3/6` the third of six
// parts; `--jobs N`.
// Ends with 1 when a change survived its test, or an entry is broken: it does not apply, its test does not pass
// without the change, or fails with it by a deadline or an import in place of an assertion or error of its own.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { bundleProgram } from './bundle-program.js';
import { readMutations } from './mutations-file.js';
import { fixedSeed } from './test-seed.js';

const projectRoot = fileURLToPath(new URL('..', import.meta.url));
const runTimeoutMs = 120_000;
/** A case that ends by its deadline, or because something else failed, has not noticed anything itself. */
const ownFailures = ['testCodeFailure', 'subtestsFailed'];

const children = new Set();
const scratch = fs.mkdtempSync(join(tmpdir(), 'writ-mutate-'));
// As a checkout is: some tests run parts of it as another user.
fs.chmodSync(scratch, 0o755);
process.on('exit', () => {
  for (const child of children) killGroup(child);
  fs.rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

const { values: options, positionals: ids } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, part: { type: 'string' }, jobs: { type: 'string' } },
});
const entries = chosen(readMutations(projectRoot));
const startedMs = Date.now();
const results = await tryAll(entries, wholeNumber('jobs') ?? availableParallelism());
process.exitCode = summary(results);

function chosen(all) {
  const unknown = ids.filter((id) => !all.some((one) => one.id === id));
  if (unknown.length > 0) fail(`test/mutations has no entry ${unknown.join(', ')}`);
  const wanted = partOf(ids.length === 0 ? all : all.filter((one) => ids.includes(one.id)));
  const count = Math.min(wholeNumber('sample') ?? wanted.length, wanted.length);
  const share = (index) => Math.floor((index * count) / wanted.length);
  const turn = ids.length === 0 ? turnOfCommit() : 0;
  return wanted.filter((_, index) => share(index + turn) !== share(index + turn - 1));
}

/** Entries of one test file stay together, because that file runs once without a change for all of them. */
function partOf(wanted) {
  if (options.part === undefined) return wanted;
  const [, part, parts] = (/^([1-9][0-9]*)\/([1-9][0-9]*)$/.exec(options.part) ?? []).map(Number);
  if (!(part <= parts)) fail('--part takes the number of a part and how many there are, as 3/6');
  const tests = [...new Set(wanted.map((one) => one.test))];
  return wanted.filter((one) => tests.indexOf(one.test) % parts === part - 1);
}

/** Of the commit, so that every entry has its turn, and one run can be had again; 0 without git. */
function turnOfCommit() {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: projectRoot, encoding: 'utf8' });
  return status === 0 ? Number.parseInt(stdout.slice(0, 8), 16) : 0;
}

function wholeNumber(option) {
  const text = options[option];
  if (text !== undefined && !/^[1-9][0-9]*$/.test(text)) fail(`--${option} needs a whole number`);
  return text === undefined ? undefined : Number(text);
}

/** Each job has a copy of its own, so that no test meets the change of another entry. */
async function tryAll(wanted, jobs) {
  const tests = [...new Set(wanted.map((one) => one.test))];
  const groups = tests.map((test) => wanted.filter((one) => one.test === test));
  groups.sort((a, b) => b.length - a.length);
  const done = [];
  const note = (result) => printResult(done.push(result), wanted.length, result);
  const copies = makeCopies(Math.min(jobs, groups.length));
  await Promise.all(
    copies.map(async (root) => {
      for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
        await tryGroup(root, group, note);
      }
    }),
  );
  return done;
}

function makeCopies(count) {
  const first = join(scratch, '0');
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const paths = execFileSync('git', listing, { cwd: projectRoot, encoding: 'utf8' }).split('\0');
  for (const path of paths.filter((one) => one !== '' && fs.existsSync(join(projectRoot, one)))) {
    fs.cpSync(join(projectRoot, path), join(first, path));
  }
  fs.symlinkSync(join(projectRoot, 'node_modules'), join(first, 'node_modules'));
  compile(first, 'tsconfig.json');
  execFileSync(process.execPath, ['scripts/finish-build.js'], { cwd: first });
  const others = Array.from({ length: count - 1 }, (_, index) => join(scratch, `${index + 1}`));
  for (const copy of others) fs.cpSync(first, copy, { recursive: true, verbatimSymlinks: true });
  return [first, ...others];
}

/** @returns the output of tsc; a type error never ends a run, because types are not checked */
function compile(root, config) {
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  return spawnSync(tsc, ['-p', config, '--noCheck'], { cwd: root, encoding: 'utf8' }).stdout.trim();
}

/** The entries of one test file: first without a change, then with one after the other. */
async function tryGroup(root, group, note) {
  const unchanged = await runUnchanged(root, group[0].test, [...new Set(group.map((one) => one.name))]);
  for (const entry of group) {
    const { kind, text } = verdictOn(unchanged, entry.name);
    if (kind === 'survived') note({ entry, ...(await tryEntry(root, entry)) });
    else if (kind === 'skipped') note({ entry, kind, text });
    else note({ entry, ...broken(`without the change: ${text}`) });
  }
}

/** Runs the unchanged test. node reports the reason of a skipped suite only without a name pattern. */
async function runUnchanged(root, test, names) {
  const run = await runCases(root, test, names);
  const hasRun = (name) => run.cases.some((one) => one.name.includes(name));
  return names.every(hasRun) ? run : runCases(root, test, []);
}

async function tryEntry(root, entry) {
  const { file, before, after, test, name } = entry;
  const source = join(root, file);
  const compiled = join(root, 'dist', file.replace(/\.tsx?$/, '.js'));
  const [text, code] = [source, compiled].map((path) => fs.readFileSync(path, 'utf8'));
  if (text.split(before).length !== 2) return broken('`before` is not exactly once in the file');
  try {
    fs.writeFileSync(
      source,
      text.replace(before, () => after),
    );
    const mutant = {
      extends: './tsconfig.json',
      compilerOptions: { noResolve: true, declaration: false },
      include: [],
      files: [file],
    };
    fs.writeFileSync(join(root, 'tsconfig.mutant.json'), JSON.stringify(mutant));
    const output = compile(root, 'tsconfig.mutant.json');
    if (output !== '') return broken(`it does not compile: ${output}`);
    if (fs.readFileSync(compiled, 'utf8') === code) return broken('it changes nothing');
    return verdictOn(await runCases(root, test, [name]), name);
  } finally {
    fs.writeFileSync(source, text);
    fs.writeFileSync(compiled, code);
  }
}

/** Runs the cases of these names alone, in a process group that ends with the run. */
async function runCases(root, test, names) {
  // Tests start the bundle, so it is made from the present dist/src.
  await bundleProgram(root);
  const events = join(root, 'events.ndjson');
  const pattern = names.map((name) => `--test-name-pattern=${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}`);
  const reporter = `--test-reporter=${join(root, 'scripts/mutate-reporter.js')}`;
  const path = join(root, 'dist', test.replace(/\.ts$/, '.js'));
  const preload = `--import=${pathToFileURL(join(root, 'scripts/test-preload.js'))}`;
  const argv = [preload, reporter, '--test-force-exit', ...pattern, path];
  fs.writeFileSync(events, '');
  // With UPDATE_GOLDEN a test would compare the broken output with itself.
  const { UPDATE_GOLDEN: _, ...inherited } = process.env;
  // A change is killed by the same cases in every run, also by hand.
  const seed = String(fixedSeed);
  // A case that `npm test` leaves out kills nothing (test/kit/assert/long-case.ts).
  const env = { WRIT_TEST_SEED: seed, ...inherited, WRIT_TEST_SHORT: '1', WRIT_MUTATE_EVENTS: events };
  const stdio = ['ignore', 'ignore', 'pipe'];
  const child = spawn(process.execPath, argv, { cwd: root, env, stdio, detached: true });
  children.add(child);
  let output = '';
  child.stderr.on('data', (chunk) => {
    output = `${output}${chunk}`.slice(-4000);
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child);
  }, runTimeoutMs);
  await new Promise((resolve) => child.once('exit', resolve));
  clearTimeout(timer);
  killGroup(child);
  children.delete(child);
  const lines = fs.readFileSync(events, 'utf8').split('\n');
  const cases = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  return {
    cases,
    end: isLate ? `ended after ${runTimeoutMs / 1000} s` : (/^\S*Error.*$/m.exec(output)?.[0] ?? ''),
  };
}

function verdictOn({ cases, end }, name) {
  const named = cases.filter((one) => !one.isSuite && one.name.includes(name));
  const failed = named.filter((one) => !one.hasPassed);
  const own = failed.find((one) => ownFailures.includes(one.failureType));
  if (own !== undefined) return { kind: 'killed', text: own.message };
  if (failed.length > 0) return broken(`the case failed, and not by itself: ${failed[0].failureType}`);
  const skipped = (named.length > 0 ? named : cases).find((one) => one.skip !== undefined);
  if (skipped?.skip === 'long') return broken('`npm test` leaves this case out');
  if (skipped !== undefined) return { kind: 'skipped', text: `${skipped.skip}` };
  return named.length > 0 ? { kind: 'survived' } : broken(`no case of this name came to its end; ${end}`);
}

function broken(text) {
  return { kind: 'broken', text };
}

function printResult(count, total, { entry, kind, text = '' }) {
  const shown = { killed: 'killed', survived: 'SURVIVED', broken: 'BROKEN', skipped: 'not run' }[kind];
  const place = `[${String(count).padStart(String(total).length)}/${total}]`;
  console.log(
    `${place} ${shown.padEnd(8)} ${entry.id.padEnd(5)} ${entry.file}  ${entry.test} "${entry.name}"`,
  );
  if (kind !== 'killed' && text !== '') console.log(`      ${text}`);
}

function summary(all) {
  const count = (kind) => all.filter((one) => one.kind === kind).length;
  const seconds = Math.round((Date.now() - startedMs) / 1000);
  console.log(
    `${all.length} changes in ${seconds} s: ${count('killed')} killed, ${count('survived')} survived, ` +
      `${count('broken')} broken, ${count('skipped')} not run for want of a program`,
  );
  return count('survived') + count('broken') > 0 ? 1 : 0;
}

function killGroup({ pid }) {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
