// One cycle of the crash matrix and its cases: on a copy of the prepared disk a process meets its faults, and then the
// host is held to the invariant. Owns what a process may say, and what may be active after it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { openRefusals } from '../../../src/agent/state/refusals-file.js';
import { isWritError } from '../../../src/core/errors.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { holdInvariant, wholePolicy } from '../../kit/assert/host-invariant.js';
import type { MatrixCycle } from './matrix-cycles.js';
import { copy, linked, type Place, type PreparedDisks, type Template } from './matrix-disks.js';
import { type Armed, faultName, type Moment, type Watch, watch } from './matrix-faults.js';
import type { MatrixExpectation } from './matrix-hosts.js';
import {
  type MatrixHost,
  matrixWorker,
  type ProcessEnd,
  reopenMatrixHost,
  runProcess,
} from './matrix-process.js';

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

/** A process that dies on the disk that the cycle begins with. */
async function crash(cycle: MatrixCycle, template: Template, fault: Armed): Promise<Template> {
  const observer = watch([fault]);
  const host = { config: template.config, worker: matrixWorker('confirms') };
  await runProcess(host, 'pull', observer);
  assert.ok(observer.isDead(), `${cycle.name}: ${caseName(fault)} was not reached`);
  const used = notified(host);
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
  const generation = notified({ worker });
  if (generation === undefined) return false;
  const answer = worker.workers.get('a')?.(generation);
  return answer?.kind === 'confirmed' && linked(paths) === generation;
}

/** @returns the generation that the worker was told last */
function notified({ worker }: Pick<MatrixHost, 'worker'>): number | undefined {
  const [, generation] = worker.notified.at(-1)?.split(' ') ?? [];
  return generation === undefined ? undefined : Number(generation);
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
    assert.equal(notified(host) ?? template.used, active, `notified: ${host.worker.notified.join(', ')}`);
}
