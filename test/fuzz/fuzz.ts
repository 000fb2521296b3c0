// `npm run fuzz -- [--seconds N] [--seed N] [--keep] [--kept] [TARGET...]`: runs the stored corpus of each target, then new
// inputs for N seconds; none with `--kept`. The inputs follow from the seed, which is fixed with CI=true and random by hand.
// Without names the commit selects the targets, so that one commit always runs the same ones. Exits with 1 after a fault, and
// stores its input in the corpus.
import { spawnSync } from 'node:child_process';
import { inspect, parseArgs } from 'node:util';
import { searchSeed } from '../kit/assert/seeded.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { keepInput, readCorpus } from './engine/corpus.js';
import { measureCoverage } from './engine/coverage.js';
import { type FuzzBound, fuzzTarget } from './engine/fuzz-target.js';
import { targets } from './targets/targets.js';

/** The least time of a target, because less finds nothing: fewer seconds select fewer targets. */
const secondsOfTurn = 12;
/** Bounds the stored inputs, because each run executes the corpus. */
const maxKeptBytes = 4096;
const maxKept = 60;

const freshCoverage = measureCoverage((url) => url.includes('/dist/src/'));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    seed: { type: 'string' },
    keep: { type: 'boolean' },
    kept: { type: 'boolean' },
  },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const unknown = positionals.filter((name) => targets[name] === undefined);
if (unknown.length > 0) {
  print(`no target ${unknown.join(', ')}; there are ${Object.keys(targets).join(', ')}`);
  process.exit(2);
}
const seconds = Number(options.seconds ?? '60');
const seed = Number(options.seed ?? searchSeed());
process.exitCode = (await fuzzAll()) ? 0 : 1;

async function fuzzAll(): Promise<boolean> {
  const wanted = positionals.length > 0 ? positionals : Object.keys(targets);
  const turns = positionals.length > 0 ? wanted.length : Math.floor(seconds / secondsOfTurn);
  const count = options.kept ? 0 : Math.min(Math.max(turns, 1), wanted.length);
  const first = turnOfCommit() % wanted.length;
  if (options.kept) print(`the kept inputs of ${wanted.length} targets`);
  else print(`seed ${seed}, ${count} of ${wanted.length} targets for ${Math.round(seconds / count)} s each`);
  let isGood = true;
  for (const [index, name] of wanted.entries()) {
    const hasTurn = (index - first + wanted.length) % wanted.length < count;
    const bound = hasTurn ? { maxMs: (seconds / count) * 1000 } : { maxRuns: 0 };
    isGood = (await fuzzOne(name, bound)) && isGood;
  }
  return isGood;
}

async function fuzzOne(name: string, bound: FuzzBound): Promise<boolean> {
  const target = await targets[name]?.();
  if (target === undefined) return false;
  const corpus = readCorpus(name);
  const startedMs = performance.now();
  const { runs, found, fault } = await fuzzTarget(target, { seed, bound, coverage: freshCoverage(), corpus });
  await target.close?.();
  const tookMs = Math.round(performance.now() - startedMs);
  print(
    `${fault ? '✖' : '✔'} ${name}: ${runs} inputs in ${tookMs} ms, ${corpus.length} kept, ${found.length} new`,
  );
  if (options.keep === true) {
    const small = found.filter((input) => input.length <= maxKeptBytes);
    for (const input of small.slice(0, Math.max(0, maxKept - corpus.length))) keepInput(name, input);
  }
  if (fault === undefined) return true;
  print(`  ${keepInput(name, fault.input)}: ${fault.input.toString('base64').slice(0, 2000)}`);
  print(inspect(fault.error));
  return false;
}

/** Number of commits; 0 without git, as in an unpacked archive. */
function turnOfCommit(): number {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: projectRoot, encoding: 'utf8' });
  return status === 0 ? Number.parseInt(stdout.slice(0, 8), 16) : 0;
}
