// One cycle of the crash matrix and its cases: a process runs into its faults on a copy of the prepared disk, and then the
// host invariant must hold. Owns what the process may report, and which policy may be active afterwards.
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
  /** Kills the next process before its n-th operation, counted from 1. */
  readonly secondKillAt?: number;
}

export interface PreparedCycle extends Disposable {
  readonly cycle: MatrixCycle;
  /** The operations of a run of the cycle, in order. */
  readonly moments: readonly Moment[];
  /** Runs one case. @throws AssertionError when the invariant does not hold */
  run(one: MatrixCase): Promise<void>;
}

export function caseName({ label, nth, fault, secondKillAt }: MatrixCase): string {
  const again = secondKillAt === undefined ? '' : `, then killed before operation ${secondKillAt}`;
  return `${faultName(fault)} ${label} (${nth})${again}`;
}

/** Runs the crashes before a cycle, then the cycle itself, to learn its operations. */
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

/** Kills a process on the prepared disk. @returns the disk after it */
async function crash(cycle: MatrixCycle, template: Template, fault: Armed): Promise<Template> {
  const observer = watch([fault]);
  const host = { config: template.config, worker: matrixWorker('confirms') };
  await runProcess(host, 'pull', observer);
  assert.ok(observer.isDead(), `${cycle.name}: ${caseName(fault)} was not reached`);
  const used = notified(host);
  return used === undefined ? template : { ...template, used };
}

/**
 * Runs the cycle without a fault of the matrix and checks its result.
 * @returns its operations, after those of `meets`
 */
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
  const failingOperations = observer.seen.findIndex(
    (one) => one.label === last.label && one.nth === last.nth,
  );
  assert.ok(failingOperations >= 0, `${cycle.name} does not meet its fault`);
  return observer.seen.slice(failingOperations + 1);
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
  if (!observer.isDead()) requireReportedDiskFailure(cycle, paths, end);
  const after = stateAfter(place, expectation, { end, observer });
  if (one.secondKillAt === undefined) return await requireInvariant(place, expectation, after);
  await killNextProcess(cycle, host, one.secondKillAt);
  // The second process may have reached the other result.
  const { from, to, between = [] } = expectation;
  const allowed = [...after.allowed, from, to, ...between];
  // With a crash before the matrix this may be the third crash of one candidate, which blocks changes.
  const mayBlock = cycle.before === undefined ? after.mayBlock : true;
  await requireInvariant(place, expectation, { allowed, mayBlock, isAcknowledged: false });
}

/** Requires that a disk failure is reported as one, and that no release is refused for it. */
function requireReportedDiskFailure(
  cycle: MatrixCycle,
  paths: HostPaths,
  { result, error }: ProcessEnd,
): void {
  if (result === undefined) {
    // A start without an unfinished move returns no result.
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
  /** The command has reported success. */
  readonly isAcknowledged: boolean;
  /**
   * Changes may be blocked until a person acts: the disk and the worker both failed, or one candidate crashed three
   * times.
   */
  readonly mayBlock: boolean;
}

/** Decides what may be active: a reported result must stay; without a report either policy may be active. */
function stateAfter(
  { paths, host, cycle }: Place,
  { policies, from, to, between = [] }: MatrixExpectation,
  { end, observer }: { readonly end: ProcessEnd; readonly observer: Watch },
): StateAfter {
  const active = wholePolicy(paths, policies);
  const all = [from, to, ...between];
  const isBlocked = end.result?.outcome === 'blocked' || (cycle.before?.length ?? 0) > 1;
  const unacknowledged = { isAcknowledged: false, mayBlock: isBlocked } as const;
  if (end.result?.exitCode === 0) {
    assert.equal(active, to, `the command reported success: ${JSON.stringify(end.result)}`);
    return { ...unacknowledged, allowed: [to], isAcknowledged: true };
  }
  if (end.result !== undefined)
    return { ...unacknowledged, allowed: fs.existsSync(paths.journal) ? all : [active] };
  // A generation that a worker has confirmed stays active after the agent dies. After an earlier crash it does not:
  // recovery restores the old generation when a candidate crashed twice.
  const confirmed = observer.isDead() && cycle.before === undefined && usesActive(host, paths);
  return { ...unacknowledged, allowed: confirmed ? [active] : all };
}

function usesActive({ worker }: MatrixHost, paths: HostPaths): boolean {
  const generation = notified({ worker });
  if (generation === undefined) return false;
  const answer = worker.workers.get('a')?.(generation);
  return answer?.kind === 'confirmed' && linked(paths) === generation;
}

/** @returns the generation that the worker was last notified of */
function notified({ worker }: Pick<MatrixHost, 'worker'>): number | undefined {
  const [, generation] = worker.notified.at(-1)?.split(' ') ?? [];
  return generation === undefined ? undefined : Number(generation);
}

/** Kills the next process at its operation `at`; it may also end before. */
async function killNextProcess(cycle: MatrixCycle, host: MatrixHost, at: number): Promise<void> {
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

async function requireInvariant(
  place: Place,
  { policies, ends, succeeds, keeps }: MatrixExpectation,
  { allowed, isAcknowledged, mayBlock }: StateAfter,
): Promise<void> {
  const { host, paths } = place;
  await holdInvariant(paths, {
    policies,
    allowed,
    ends,
    mayBlock,
    ...(succeeds === undefined ? {} : { succeeds }),
    open: () => reopenMatrixHost(host),
    ...(keeps !== undefined && isAcknowledged ? { alsoHolds: keeps } : {}),
  });
  requireWorkerFollows(place);
}

/** Requires that the worker was notified of the active generation, or used it already. */
function requireWorkerFollows({ host, paths, template }: Place): void {
  const active = linked(paths);
  if (active !== undefined)
    assert.equal(notified(host) ?? template.used, active, `notified: ${host.worker.notified.join(', ')}`);
}
