// Writ beside what else delivers trees of files, in one run on one machine: `npm run bench`, with `-- --short` in under a
// minute, with `-- --full` the growth of each cost too. Asserts nothing: the counts that must not change are asserted by
// test/exhaustive/counts, and times are read by people.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { agentPoll, type Figure, serverPolls, startResting } from './at-rest.js';
import { type Comparison, compare } from './compare.js';
import { fleetFigures } from './fleet/fleet-figures.js';
import { allSizes, measureGrowth } from './growth.js';
import { thisMachine } from './measure/machine.js';
import { type Plan, planOf } from './plan.js';
import { changeTwoFiles, writePolicyTree } from './policy-tree.js';
import { describe, type Measurement, putSection } from './report/document.js';
import { drawGoals } from './report/goals.js';
import { drawPlot, type Panel } from './report/plot.js';
import { drawComparison, drawFigures } from './report/table.js';
import { restarts } from './restart.js';
import { statusCosts } from './status-cost.js';
import { casync } from './subjects/casync.js';
import { git } from './subjects/git.js';
import { node } from './subjects/node.js';
import { opa } from './subjects/opa.js';
import { ostree } from './subjects/ostree.js';
import { rsync, rsyncInPlace } from './subjects/rsync.js';
import { missing, type Subject, webNeed } from './subjects/subject.js';
import { tar } from './subjects/tar.js';
import { tufJs } from './subjects/tuf-js.js';
import { createRepository, publish, type Repository, writ } from './subjects/writ.js';
import { zchunk } from './subjects/zchunk.js';
import { zsync } from './subjects/zsync.js';
import { type StaticWeb, startStaticWeb } from './web/static-web.js';

const subjects = [writ, tar, ostree, casync, rsync, rsyncInPlace, git, zsync, zchunk, opa, tufJs, node];
const timeNeed = { program: 'time', debianPackage: 'time' };
const docs = join(import.meta.dirname, '..', '..', 'docs');

interface Result {
  readonly comparison: Comparison;
  readonly figures: readonly Figure[];
  readonly fleet: readonly Figure[];
  readonly panels: readonly Panel[];
}

/** What goes on running, for as long as it is to rest; meanwhile, what asks it. */
async function measureRest(plan: Plan, restMinutes: number, work: string): Promise<readonly Figure[]> {
  const tree = join(work, 'tree');
  logStep(`${plan.treeName}, and ${restMinutes} minutes of rest`);
  writePolicyTree(tree, plan.tree);
  const standing = await createStanding(join(work, 'standing'), tree);
  const asked = await statusCosts(standing, join(work, 'asked'), plan.rounds);
  await using resting = await startResting(standing, join(work, 'resting'));
  await setTimeout(restMinutes * 60_000);
  return [...resting.figures(), ...asked];
}

/** As much as the plan wants. */
async function measured(plan: Plan, work: string): Promise<Result | Pick<Result, 'figures'>> {
  if (plan.only === 'fleet') return { figures: await fleetFigures(join(work, 'fleet'), plan.fleet, logStep) };
  if (plan.restMinutes !== undefined) return { figures: await measureRest(plan, plan.restMinutes, work) };
  return measure(plan, work);
}

function logStep(progress: string): void {
  process.stderr.write(`${progress}\n`);
}

async function measure(plan: Plan, work: string): Promise<Result> {
  const [first, second] = [join(work, 'first'), join(work, 'second')];
  logStep(`${plan.treeName}: two versions`);
  writePolicyTree(first, plan.tree);
  cpSync(first, second, { recursive: true, preserveTimestamps: true });
  changeTwoFiles(second, plan.tree);
  const published = join(work, 'published');
  mkdirSync(published);
  // Of what runs all the time, and below what nginx serves.
  const standing = await createStanding(join(published, 'standing'), first);
  await using resting = await startResting(standing, join(work, 'resting'));
  const web = await webOrNone(join(work, 'web'), published);
  try {
    // Without nginx there are no requests to it, and its subjects are missing.
    const place = { first, second, web: web as StaticWeb };
    const comparison = await compare({ work, place, subjects, rounds: plan.rounds, logStep });
    logStep('polls, and starts of the agent');
    const figures = [
      ...(await agentPoll(standing, join(work, 'polling'), plan.pollSeconds)),
      ...(await serverPolls(standing, web && { pid: web.pid, url: `${web.url}/standing/repo` }, plan.polls)),
      ...(await statusCosts(standing, join(work, 'asked'), plan.rounds)),
      ...(await restarts(standing, join(work, 'restarts'), plan.rounds)),
      ...resting.figures(),
    ];
    const fleet = await fleetFigures(join(work, 'fleet'), plan.fleet, logStep);
    const panels =
      plan.growth === 'measured' ? await measureGrowth(join(work, 'growth'), allSizes, logStep) : [];
    return { comparison, figures, fleet, panels };
  } finally {
    await web?.[Symbol.asyncDispose]();
  }
}

async function createStanding(directory: string, tree: string): Promise<Repository> {
  mkdirSync(directory);
  const repository = await createRepository(directory);
  await publish(repository, tree);
  return repository;
}

async function webOrNone(directory: string, root: string): Promise<StaticWeb | undefined> {
  return missing([webNeed]).length > 0 ? undefined : await startStaticWeb(directory, root);
}

function writeDocument(text: string, panels: readonly Panel[]): void {
  const path = join(docs, 'performance.md');
  writeFileSync(path, putSection(readFileSync(path, 'utf8'), { name: 'table', text }));
  if (panels.length > 0) writeFileSync(join(docs, 'performance-growth.svg'), drawPlot(panels));
}

/** @returns what each subject is, below the table */
function notesOf(all: readonly Subject[]): string {
  return all.map(({ name, note }) => `- ${name}: ${note}.`).join('\n');
}

const plan = planOf(process.argv.slice(2));
if (missing([timeNeed]).length > 0 || !existsSync('/usr/bin/time')) {
  throw new Error('GNU time measures what programs cost: apt-get install time');
}
const measurement: Measurement = {
  command: plan.command,
  tree: plan.treeName,
  rounds: plan.rounds,
  machine: thisMachine(),
  atMs: Date.now(),
};
const work = mkdtempSync(join(tmpdir(), 'writ-bench-'));
// PostgreSQL refuses to run as root, and its user needs access to the folders below.
chmodSync(work, 0o711);
// Ctrl-C also reaches the started programs.
process.once('SIGINT', () => {
  rmSync(work, { recursive: true, force: true });
  process.exit(130);
});
try {
  const result = await measured(plan, work);
  const parts =
    'comparison' in result
      ? [
          drawComparison(result.comparison, writ.name),
          drawGoals(result.comparison),
          drawFigures('at rest, and polls', result.figures),
          drawFigures('a fleet server', result.fleet),
          notesOf(subjects),
        ]
      : [drawFigures(plan.only === 'fleet' ? 'a fleet server' : 'at rest, and polls', result.figures)];
  const text = [describe(measurement), ...parts].join('\n\n');
  if (plan.document === 'written' && 'comparison' in result) writeDocument(text, result.panels);
  process.stdout.write(
    plan.output === 'json' ? `${JSON.stringify({ ...measurement, ...result })}\n` : `${text}\n`,
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}
