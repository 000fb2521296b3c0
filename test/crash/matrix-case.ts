// One cycle of the crash matrix and its cases: the prepared disk is copied for each, a process meets its faults on the
// copy, and then the host is held to the invariant. Owns what a process may leave behind and what it may say.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/agent/load-config.js';
import { type HostPaths, hostPaths } from '../../src/agent/paths.js';
import { openRefusals } from '../../src/agent/refusals-file.js';
import type { AgentConfig } from '../../src/core/config.js';
import { isWritError } from '../../src/core/errors.js';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { holdInvariant, wholePolicy } from '../support/host-invariant.js';
import { memory, tempDir } from '../support/temp-dir.js';
import type { MatrixCycle, MatrixExpectation } from './matrix-cycles.js';
import { type Armed, faultName, type Moment, type Watch, watch } from './matrix-faults.js';
import {
  type MatrixHost,
  matrixWorker,
  type ProcessEnd,
  reopenMatrixHost,
  runProcess,
} from './matrix-process.js';
import { configAt, makeWorld } from './replay-cycles.js';

export interface MatrixCase extends Armed {
  /** The next process dies before its n-th operation, counted from 1. */
  readonly secondKillAt?: number;
}

export interface PreparedCycle extends Disposable {
  readonly cycle: MatrixCycle;
  /** What a run of the cycle comes to, in order. */
  readonly moments: readonly Moment[];
  /** Runs one case. @throws AssertionError when the promise is broken */
  run(one: MatrixCase): Promise<void>;
}

export function caseName({ label, nth, fault, secondKillAt }: MatrixCase): string {
  const again = secondKillAt === undefined ? '' : `, then killed before operation ${secondKillAt}`;
  return `${faultName(fault)} ${label} (${nth})${again}`;
}

/** Disks that several cycles begin with, each prepared once. */
export interface PreparedDisks extends Disposable {
  of(cycle: MatrixCycle): Promise<PreparedDisk>;
}

interface PreparedDisk {
  readonly template: Template;
  readonly expectation: MatrixExpectation;
}

export function openDisks(): PreparedDisks {
  const known = new Map<MatrixCycle['prepare'], Promise<PreparedDisk>>();
  const directories: Disposable[] = [];
  const prepare = async (cycle: MatrixCycle): Promise<PreparedDisk> => {
    const dir = tempDir(memory());
    directories.push(dir);
    const world = makeWorld(dir);
    const expectation = await cycle.prepare(world);
    const { config } = loadConfig(world.configPath);
    const used = linked(hostPaths(config));
    return {
      template: { config, disk: world.disk, run: config.run, ...(used === undefined ? {} : { used }) },
      expectation,
    };
  };
  return {
    of: (cycle) => {
      const found = known.get(cycle.prepare) ?? prepare(cycle);
      known.set(cycle.prepare, found);
      return found;
    },
    [Symbol.dispose]: () => {
      for (const one of directories) one[Symbol.dispose]();
    },
  };
}

/** Lets the crashes before a cycle happen, and runs it once to learn its operations. */
export async function prepareCycle(cycle: MatrixCycle, disks: PreparedDisks): Promise<PreparedCycle> {
  const { template: first, expectation } = await disks.of(cycle);
  const crashed = copy(cycle, first);
  try {
    let template = crashed.template;
    for (const one of cycle.before ?? []) template = await crash(cycle, template, one);
    const moments = await record(cycle, template, expectation);
    return {
      cycle,
      moments,
      run: (one) => runCase({ cycle, expectation, template }, one),
      [Symbol.dispose]: () => crashed[Symbol.dispose](),
    };
  } catch (error) {
    crashed[Symbol.dispose]();
    throw error;
  }
}

interface Template {
  readonly config: AgentConfig;
  readonly disk: string;
  readonly run: string;
  /** The generation that the worker uses, whoever has told it; absent before the first. */
  readonly used?: number;
}

interface Place extends Disposable {
  readonly cycle: MatrixCycle;
  readonly host: MatrixHost;
  readonly paths: HostPaths;
  /** The place as what further copies are made of. */
  readonly template: Template;
}

/** A copy of the disk, and of what a killed process leaves in the run directory. */
function copy(cycle: MatrixCycle, { config, disk, run, ...rest }: Template): Place {
  const path = fs.mkdtempSync(join(memory(), 'writ-matrix-'));
  const keep = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;
  fs.cpSync(disk, join(path, 'disk'), keep);
  if (fs.existsSync(run)) copyRun(run, join(path, 'run'));
  const at = configAt(config, join(path, 'disk'), join(path, 'run'));
  return {
    cycle,
    template: { ...rest, config: at.config, disk: join(path, 'disk'), run: join(path, 'run') },
    host: { config: at.config, worker: matrixWorker(cycle.worker ?? 'confirms') },
    paths: at.paths,
    [Symbol.dispose]: () => fs.rmSync(path, { recursive: true, force: true }),
  };
}

/** Sockets are no files to copy: a second name of one is a socket that nobody listens on. */
function copyRun(from: string, to: string): void {
  for (const one of ['.', ...fs.readdirSync(from, { recursive: true, encoding: 'utf8' })]) {
    const [source, place] = [join(from, one), join(to, one)];
    const stat = fs.lstatSync(source);
    if (stat.isDirectory()) fs.mkdirSync(place, { mode: stat.mode });
    else if (stat.isSocket()) fs.linkSync(source, place);
    else fs.copyFileSync(source, place);
  }
}

/** A process that dies on the disk that the cycle begins with. */
async function crash(cycle: MatrixCycle, template: Template, fault: Armed): Promise<Template> {
  const observer = watch([fault]);
  const host = { config: template.config, worker: matrixWorker('confirms') };
  await runProcess(host, 'pull', observer);
  assert.ok(observer.isDead(), `${cycle.name}: ${caseName(fault)} was not reached`);
  const used = told(host);
  return used === undefined ? template : { ...template, used };
}

/** @returns the moments of a run without a fault of the matrix, behind the one that it meets; it ends as expected */
async function record(
  cycle: MatrixCycle,
  template: Template,
  expectation: MatrixExpectation,
): Promise<readonly Moment[]> {
  using place = copy(cycle, template);
  const observer = watch(cycle.meets);
  const { result, error } = await runProcess(place.host, cycle.command, observer);
  assert.equal(error, undefined, `${cycle.name}: ${error}`);
  const active = wholePolicy(place.paths, expectation.policies);
  if (cycle.command !== 'start') {
    const expected = cycle.meets ? expectation.from : expectation.to;
    assert.equal(active, expected, `${cycle.name}: ${result?.outcome} ${JSON.stringify(result?.problems)}`);
  }
  const last = cycle.meets?.at(-1);
  if (last === undefined) return observer.seen;
  const met = observer.seen.findIndex((one) => one.label === last.label && one.nth === last.nth);
  assert.ok(met >= 0, `${cycle.name} does not meet its fault`);
  return observer.seen.slice(met + 1);
}

interface Subject {
  readonly cycle: MatrixCycle;
  readonly expectation: MatrixExpectation;
  readonly template: Template;
}

async function runCase({ cycle, expectation, template }: Subject, one: MatrixCase): Promise<void> {
  using place = copy(cycle, template);
  const { host, paths } = place;
  const observer = watch([...(cycle.meets ?? []), one]);
  const end = await runProcess(host, cycle.command, observer);
  assert.ok(observer.isFired(one), 'the operation was reached');
  if (!observer.isDead()) requireHonest(cycle, paths, end);
  const after = stateAfter(place, expectation, { end, observer });
  if (one.secondKillAt === undefined) return await holds(place, expectation, after);
  await dieAgain(cycle, host, one.secondKillAt);
  // By then it may have come to the other end.
  const { from, to, between = [] } = expectation;
  const allowed = [...after.allowed, from, to, ...between];
  // Together with a crash before the matrix it may be the third of one candidate.
  const mayBlock = cycle.before === undefined ? after.mayBlock : 'yes';
  await holds(place, expectation, { allowed, mayBlock, acknowledged: 'no' });
}

/** The disk's fault is said to be the disk's, and never held against a release. */
function requireHonest(cycle: MatrixCycle, paths: HostPaths, { result, error }: ProcessEnd): void {
  if (result === undefined) {
    // A start that has nothing to finish has nothing to say.
    if (error === undefined) return;
    assert.ok(isWritError(error) && error.code !== 'INTERNAL', `it ended with ${error}`);
    return;
  }
  const codes = result.problems.map((one) => one.code);
  assert.ok(!codes.includes('INTERNAL'), JSON.stringify(result.problems));
  if (cycle.worker !== undefined) return;
  assert.ok(!['rejected', 'rolled-back'].includes(result.outcome), JSON.stringify(result.problems));
  const { refusals } = openRefusals(paths.rejected, createDurableFs()).read();
  assert.deepEqual(refusals, [], 'no release is refused for it');
}

interface StateAfter {
  readonly allowed: readonly string[];
  /** `yes`: it was said that the command has succeeded. */
  readonly acknowledged: 'yes' | 'no';
  /** `yes`: the disk and the worker said no, or it was the third death of one candidate: a person is asked for. */
  readonly mayBlock: 'yes' | 'no';
}

/** What was said to be so stays so; what nobody was told may be the one or the other. */
function stateAfter(
  { paths, host, cycle }: Place,
  { policies, from, to, between = [] }: MatrixExpectation,
  { end, observer }: { readonly end: ProcessEnd; readonly observer: Watch },
): StateAfter {
  const active = wholePolicy(paths, policies);
  const all = [from, to, ...between];
  const isBlocked = end.result?.outcome === 'blocked' || (cycle.before?.length ?? 0) > 1;
  const unsaid = { acknowledged: 'no', mayBlock: isBlocked ? 'yes' : 'no' } as const;
  if (end.result?.exitCode === 0) {
    assert.equal(active, to, `it was said to be done: ${JSON.stringify(end.result)}`);
    return { ...unsaid, allowed: [to], acknowledged: 'yes' };
  }
  if (end.result !== undefined) return { ...unsaid, allowed: fs.existsSync(paths.journal) ? all : [active] };
  // A worker that has said yes to a generation is not sent back by the death of the agent that asked it.
  // A crash before this one changes that: what did not come to its end twice is taken back.
  const confirmed = observer.isDead() && cycle.before === undefined && usesActive(host, paths);
  return { ...unsaid, allowed: confirmed ? [active] : all };
}

function usesActive({ worker }: MatrixHost, paths: HostPaths): boolean {
  const generation = told({ worker });
  if (generation === undefined) return false;
  const answer = worker.workers.get('a')?.(generation);
  return answer?.kind === 'confirmed' && linked(paths) === generation;
}

/** @returns the generation that the worker was told last */
function told({ worker }: Pick<MatrixHost, 'worker'>): number | undefined {
  const [, generation] = worker.told.at(-1)?.split(' ') ?? [];
  return generation === undefined ? undefined : Number(generation);
}

/** @returns the generation that `current` leads to */
function linked({ current }: Pick<HostPaths, 'current'>): number | undefined {
  if (fs.lstatSync(current, { throwIfNoEntry: false }) === undefined) return undefined;
  return Number(fs.readlinkSync(current).slice('generations/'.length));
}

/** The process that follows dies as well, wherever it is by then; one that has come to its end is no harm. */
async function dieAgain(cycle: MatrixCycle, host: MatrixHost, at: number): Promise<void> {
  const inner = watch();
  let count = 0;
  let dead = false;
  const requireAlive = (): void => {
    if (dead) throw new Error('killed again');
  };
  await runProcess(host, cycle.command, {
    ...inner,
    isDead: () => dead,
    requireAlive,
    before: (operation) => {
      count += 1;
      dead ||= count >= at;
      requireAlive();
      inner.before?.(operation);
    },
    after: requireAlive,
  });
}

async function holds(
  place: Place,
  { policies, ends, succeeds, keeps }: MatrixExpectation,
  { allowed, acknowledged, mayBlock }: StateAfter,
): Promise<void> {
  const { host, paths } = place;
  await holdInvariant(paths, {
    policies,
    allowed,
    ends,
    mayBlock,
    ...(succeeds === undefined ? {} : { succeeds }),
    open: () => reopenMatrixHost(host),
    ...(keeps !== undefined && acknowledged === 'yes' ? { alsoHolds: keeps } : {}),
  });
  requireWorkerFollows(place);
}

/** A worker that nobody has told uses what it used before. */
function requireWorkerFollows({ host, paths, template }: Place): void {
  const active = linked(paths);
  if (active !== undefined)
    assert.equal(told(host) ?? template.used, active, `told: ${host.worker.told.join(', ')}`);
}
