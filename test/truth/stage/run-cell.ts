// Runs one cell with a new host and a new daemon, and records its result. Owns the directory and the end of the daemon.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../../kit/programs/free-port.js';
import type { Case, Observation } from '../cases/case.js';
import type { Daemon, Stage } from '../parts/daemon.js';
import { judge, reportedStateOf, type Verdict, worstOf } from '../rules/judge.js';
import { type Pace, probeEveryMs } from '../rules/pace.js';
import type { Cell } from '../rules/page.js';
import { placed, readRecipe, readRepeat } from '../rules/recipe.js';
import { makeStock, truthHost } from './host.js';

export interface RunOptions {
  /** The root directory of the project with the compiled tests. */
  readonly root: string;
  readonly stock: string;
  /** `all`: the directory remains, and its path is in the result. */
  readonly keep: 'all' | 'nothing';
  readonly pace: Pace;
}

export { makeStock };

/** Not in /tmp, which the sandbox hides; short, because socket paths are limited. */
export function newPlace(): string {
  const dir = mkdtempSync('/var/tmp/truth-');
  chmodSync(dir, 0o755);
  return dir;
}

export async function runCell(daemon: Daemon, one: Case, options: RunOptions): Promise<Cell> {
  const recipe = readRecipe(readFileSync(join(options.root, `docs/daemons/${daemon.name}.md`), 'utf8'));
  const cell = { daemon: daemon.name, case: one.name };
  const never = one.never?.(daemon, recipe.agent);
  if (never !== undefined) return { ...cell, verdict: '-', text: never };
  const dir = newPlace();
  const [hostDir, daemonDir] = [join(dir, 'h'), join(dir, 'd')];
  for (const name of [hostDir, daemonDir]) mkdirSync(name);
  const ports = [await freePort(), await freePort(), await freePort()] as const;
  const stage: Stage = { dir: daemonDir, policy: join(hostDir, 'state/policy'), ports };
  const instance = daemon.open(stage);
  try {
    const here = placed(recipe, instance.places);
    instance.prepare(here.own);
    const { under } = instance;
    const host = truthHost({
      ...{ dir: hostDir, stock: options.stock, agent: here.agent, without: one.without, pace: options.pace },
      ...(under === undefined ? {} : { under }),
    });
    const repeat = readRepeat(here.agent);
    const pause = (ms: number): Promise<void> => setTimeout(ms);
    const observations = await one.play({
      ...{ daemon, stage, instance, host, pause },
      repeat: { ...repeat, everyMs: probeEveryMs(repeat.everyMs, options.pace) },
    });
    const verdict = worstOf(observations.map(judged));
    return {
      ...cell,
      verdict,
      text: observations.map((observe) => describeObservation(observe, dir)).join(';\n'),
    };
  } finally {
    instance.stopAndGo('SIGCONT');
    await instance[Symbol.asyncDispose]();
    if (options.keep === 'nothing') rmSync(dir, { recursive: true, force: true });
    else process.stdout.write(`${daemon.name}:${one.name} is kept in ${dir}\n`);
  }
}

function judged({ release, served, answers }: Observation): Verdict {
  const { active, refused } = answers;
  return judge({ release, refused, active, served, reported: reportedStateOf(answers) });
}

/** Describes an observation for people; no run compares it. */
function describeObservation({ what, answers, served }: Observation, dir: string): string {
  const { exitCode, outcome, confirmed, active, findings, tool } = answers;
  const daemon = `the daemon serves ${served ?? 'nothing'}`;
  const daemonFindings = findings.filter((code) => code !== 'NO_AGENT');
  const health = daemonFindings.length === 0 ? 'nothing' : [...new Set(daemonFindings)].join(', ');
  const writ = `Writ: ${exitCode} ${outcome}, ${active ?? 'nothing'} active, ${confirmed ? '' : 'not '}confirmed, health: ${health}`;
  return `${what}: ${daemon};\nits driver reports ${quoted(tool, dir)};\n${writ}`;
}

const maxQuotedLength = 120;

function quoted(text: string, dir: string): string {
  // Pids, ports and times differ in each run.
  const line = text
    .replaceAll(dir, '')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ ?/g, '')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b\d{3,}\b|(?<=_)\d{9,}/g, 'N')
    .replace(/\s+/g, ' ')
    .replaceAll('|', '/')
    .trim();
  return line === '' ? 'nothing' : `"${line.slice(0, maxQuotedLength)}"`;
}
