// Runs one scenario with both checkouts, one after the other in the same directory, from identical copies. Owns the initial
// state; the script owns the commands.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../kit/programs/free-port.js';
import type { Checkout } from './checkout.js';
import { differencesOf } from './difference.js';
import { type Recording, readRecordings } from './recording.js';
import { runScenario, type ScenarioRun } from './run-scenario.js';
import { common, type Scenario } from './scenarios.js';

/** The parameters of one comparison. */
export interface ComparisonRun {
  readonly a: Checkout;
  readonly b: Checkout;
  /** A temporary directory with a short path, because sockets are below it. */
  readonly base: string;
  /** Epoch milliseconds at the first command of every scenario. */
  readonly startMs: number;
  /**
   * Aborts the comparison: scenarios run in their own process groups, which a signal to this process does not reach.
   */
  readonly signal: AbortSignal;
}

export interface Compared {
  readonly a: readonly Recording[];
  readonly b: readonly Recording[];
  readonly differences: readonly string[];
}

/** The virtual time between two stages, so that the times of a stage are above those of the previous one. */
const stageMs = 60_000;

/** Creates the common initial state of all scenarios. @throws Error when its script fails */
export async function prepareCommon(run: ComparisonRun): Promise<void> {
  const directory = join(run.base, 'common');
  await prepare(run, { script: common, directory, form: 'human', ports: [], startMs: run.startMs });
}

export async function compareScenario(run: ComparisonRun, scenario: Scenario): Promise<Compared> {
  const directory = join(run.base, scenario.name);
  const kept = `${directory}.kept`;
  const stage = {
    form: scenario.form,
    directory,
    ports: [await freePort(), await freePort(), await freePort(), await freePort()],
  };
  copyTree(join(run.base, 'common'), directory);
  if (scenario.preparation !== undefined) {
    await prepare(run, { ...stage, script: scenario.preparation, startMs: run.startMs + stageMs });
  }
  copyTree(directory, kept);
  const sides: (readonly Recording[])[] = [];
  for (const checkout of [run.a, run.b]) {
    rmSync(directory, { recursive: true, force: true });
    copyTree(kept, directory);
    const startMs = run.startMs + 2 * stageMs;
    sides.push(await recordingsOf(run, { ...stage, script: scenario.script, startMs, checkout }));
  }
  for (const path of [directory, kept]) rmSync(path, { recursive: true, force: true });
  const [a = [], b = []] = sides;
  return { a, b, differences: [...incompleteRuns(a), ...differencesOf(a, b)] };
}

type Stage = Omit<ScenarioRun, 'records' | 'checkout' | 'signal'>;

async function prepare(run: ComparisonRun, stage: Stage): Promise<void> {
  const records = `${stage.directory}.records`;
  const end = await runScenario({ ...stage, records, checkout: run.a, signal: run.signal });
  rmSync(records, { recursive: true, force: true });
  if (end !== completeEnd) throw new Error(`${stage.script} ${end}`);
}

async function recordingsOf(
  run: ComparisonRun,
  scenarioRun: Omit<ScenarioRun, 'records' | 'signal'>,
): Promise<readonly Recording[]> {
  const records = `${scenarioRun.directory}.records`;
  const end = await runScenario({ ...scenarioRun, records, signal: run.signal });
  const placeholders = placeholdersOf(run, scenarioRun);
  const recordings = readRecordings(records, { placeholders, startMs: run.startMs });
  rmSync(records, { recursive: true, force: true });
  return [...recordings, { title: scenarioEnd, text: `${end}\n` }];
}

const scenarioEnd = 'the end of the scenario';
const completeEnd = 'ended';

/** Counts a scenario that did not end as a difference, even when both runs stopped at the same command. */
function incompleteRuns(recordings: readonly Recording[]): readonly string[] {
  const end = recordings.find(({ title }) => title === scenarioEnd)?.text.trim();
  return end === completeEnd ? [] : [`  the scenario itself ${end}`];
}

function placeholdersOf(
  { a, b }: ComparisonRun,
  { directory, ports }: Pick<Stage, 'directory' | 'ports'>,
): [string, string][] {
  return [
    [directory, 'SCENARIO'],
    [a.directory, 'CHECKOUT'],
    [b.directory, 'CHECKOUT'],
    ...ports.map((port, index): [string, string] => [`127.0.0.1:${port}`, `127.0.0.1:PORT${index + 1}`]),
  ];
}

/** Copies a tree with modes, times and links; sockets remain sockets. */
function copyTree(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
}
