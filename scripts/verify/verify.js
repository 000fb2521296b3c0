// `npm run verify [-- NAME...]`: everything, before an issue is called done and before a release. Stages run one after the other, and
// the next one runs after a failure. Each result goes into .verify/results.ndjson with its commit; the table at the end is the union
// of all runs for this commit. Ends with 1 when a stage of the table that was asked for failed, 2 for words that it does not know.
//   npm run verify                            all stages, some hours
//   npm run verify -- truth soak              two of them
//   npm run verify -- mutations --part 3/6    one part of a stage that has parts
//   npm run verify -- --continue              those that have not passed for this commit
//   npm run verify -- --list                  their names and shares; runs nothing
//   npm run verify -- --table                 the table; runs nothing
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { addResult, drawResults, readResults } from './results-file.js';
import { killStages, runStage } from './run-stage.js';
import { verifyStages } from './stages.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const resultsPath = join(root, '.verify/results.ndjson');
const flag = { type: 'boolean', default: false };
const { values: flags, positionals: names } = parsedArguments();
const runs = chosenRuns();
process.exitCode = await main();

function parsedArguments() {
  const options = { continue: flag, list: flag, table: flag, part: { type: 'string' } };
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return fail(error.message);
  }
}

/** Each stage or part of one, with the name that its result has. */
function chosenRuns() {
  const unknown = names.filter((name) => !verifyStages.some((stage) => stage.name === name));
  if (unknown.length > 0)
    fail(`there is no stage ${unknown.join(', ')}; npm run verify -- --list has their names`);
  const stages = verifyStages.filter(({ name }) => names.length === 0 || names.includes(name));
  const all = stages.flatMap(runsOf);
  if (flags.part === undefined) return all;
  const parts = all.filter(({ part }) => part === flags.part);
  if (parts.length === 0) fail(`no stage of these has the part ${flags.part}`);
  return parts;
}

function runsOf(stage) {
  if (stage.parts === undefined) return [{ stage, name: stage.name }];
  return Array.from({ length: stage.parts }, (_, at) => {
    const part = `${at + 1}/${stage.parts}`;
    return { stage, part, name: `${stage.name} ${part}` };
  });
}

async function main() {
  if (flags.list) {
    for (const { stage, name } of runs)
      say(`${name.padEnd(16)} ${String(stage.shareMinutes).padStart(3)} minutes`);
    return 0;
  }
  const commit = nameCommit();
  if (!flags.table && !(await runAll(commit))) return 2;
  const results = readResults(resultsPath, commit);
  say(
    `\n${commit}\n\n${drawResults(
      verifyStages.flatMap(runsOf).map(({ name }) => name),
      results,
    )}`,
  );
  return runs.some(({ name }) => results.get(name)?.failure !== undefined) ? 1 : 0;
}

/** @returns {Promise<boolean>} false if nothing could be run, because programs are missing */
async function runAll(commit) {
  if (spawnSync('.ci/install-debian', ['verify', '--check'], { cwd: root, stdio: 'inherit' }).status !== 0)
    return false;
  // Not in /tmp, which the sandbox hides, and for every user: tests start what is here in the sandbox, and as nobody.
  const tools = mkdtempSync('/var/tmp/writ-verify-');
  chmodSync(tools, 0o755);
  process.on('exit', () => {
    killStages();
    rmSync(tools, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));
  execFileSync('.ci/install-tools', [tools], { cwd: root, stdio: 'inherit' });
  execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'inherit' });
  const passed = flags.continue ? readResults(resultsPath, commit) : new Map();
  for (const { stage, part, name } of runs.filter(({ name }) => !hasPassed(passed.get(name)))) {
    say(`\n== ${name}, about ${stage.shareMinutes} minutes`);
    const result = await runStage(stage, { tools, ...(part === undefined ? {} : { part }) });
    const node = stage.usesNewestNode ? 'newest LTS' : process.version;
    addResult(resultsPath, { commit, stage: name, ...result, endedAt: new Date().toISOString(), node });
    say(`== ${name}: ${result.failure ?? 'passed'}, ${(result.seconds / 60).toFixed(1)} minutes`);
  }
  return true;
}

function hasPassed(result) {
  return result !== undefined && result.failure === undefined;
}

/** A result of changed files belongs to no commit. */
function nameCommit() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const commit = git('rev-parse', 'HEAD');
  return git('status', '--porcelain') === '' ? commit : `${commit}+changes`;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
