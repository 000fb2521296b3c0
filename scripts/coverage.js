// `npm run coverage [-- PART...]`: the lines of src that the tests run, of each module and in all. It counts the test processes,
// which load dist/src, and the processes of Writ that they start, by the maps of the bundle. It does not count processes with an
// environment without NODE_V8_COVERAGE, as that of hooks, or killed ones, because V8 writes its counts when a process exits.
// Arguments go to scripts/run-tests.js. Without arguments all tests run, and coverage below the minimum is a failure.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const leastPercent = { lines: 90, functions: 90, branches: 85 };
const parts = process.argv.slice(2);

const c8 = join(root, 'node_modules/c8/bin/c8.js');
const tests = [join(root, 'scripts/run-tests.js'), ...(parts.length > 0 ? parts : ['--all'])];
const { status } = spawnSync(process.execPath, [c8, process.execPath, ...tests], {
  cwd: root,
  stdio: 'inherit',
});
const whole = JSON.parse(readFileSync(join(root, 'coverage/coverage-final.json'), 'utf8'));
const files = Object.entries(whole)
  .map(([path, found]) => ({ path: relative(root, path), counts: countsOf(found) }))
  // Code of joined packages is not code of Writ.
  .filter(({ path }) => path.startsWith('src/'));
for (const [module, counts] of modulesOf(files))
  console.log(`${percent(counts.lines).padStart(6)} %  ${module}`);
const total = sum(files.map(({ counts }) => counts));
for (const kind of Object.keys(leastPercent))
  console.log(`${percent(total[kind]).padStart(6)} % of ${kind} (${total[kind].ran} of ${total[kind].all})`);
console.log('counted: processes of tests, and of Writ that they start and that end by themselves');
const missed = Object.keys(leastPercent).filter((kind) => Number(percent(total[kind])) < leastPercent[kind]);
const isWhole = parts.length === 0;
if (isWhole) for (const kind of missed) console.error(`fewer ${kind} than ${leastPercent[kind]} %`);
process.exitCode = status === 0 && !(isWhole && missed.length > 0) ? 0 : 1;

/** A function is one by its first line, since the two maps of a source differ in columns; a branch counts in each map that has it. */
function countsOf({ statementMap, s, fnMap, f, b }) {
  return {
    lines: countOf(Object.entries(s).map(([id, hits]) => [statementMap[id].start.line, hits])),
    functions: countOf(Object.entries(f).map(([id, hits]) => [fnMap[id].loc.start.line, hits])),
    branches: countOf(Object.entries(b).map(([id, hits]) => [id, Math.max(...hits)])),
  };
}

function countOf(all) {
  const keys = new Set(all.map(([key]) => key));
  return { all: keys.size, ran: new Set(all.filter(([, hits]) => hits > 0).map(([key]) => key)).size };
}

function modulesOf(all) {
  const folders = [...new Set(all.map(({ path }) => dirname(path)))].sort();
  return folders.map((module) => {
    const own = all.filter(({ path }) => dirname(path) === module);
    return [module, sum(own.map(({ counts }) => counts))];
  });
}

function sum(all) {
  const of = (kind) => ({
    all: all.reduce((count, one) => count + one[kind].all, 0),
    ran: all.reduce((count, one) => count + one[kind].ran, 0),
  });
  return { lines: of('lines'), functions: of('functions'), branches: of('branches') };
}

function percent({ ran, all }) {
  return all === 0 ? '100.0' : ((100 * ran) / all).toFixed(1);
}
