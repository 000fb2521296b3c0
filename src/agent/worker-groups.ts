// The groups of workers configured together: their drivers, and telling them about a generation. Reports what
// each worker said; the caller decides what that means for the policy. Never touches `policy/`.
import type { WorkerGroupConfig } from '../core/config.js';
import type { WorkerResult } from '../core/cycle-report.js';
import { isWritError, WritError } from '../core/errors.js';
import { readBootId } from '../platform/boot-id.js';
import type { Clock } from '../platform/clock.js';
import type { DurableFs } from '../platform/durable-fs.js';
import type { Logger } from '../platform/log.js';
import type { Answer, Driver, DriverContext, DriverKind, Target } from '../workers/driver.js';
import { tellWorker } from '../workers/tell-worker.js';

export interface WorkerGroup {
  readonly config: WorkerGroupConfig;
  /** Absent for a group that only has a loader. */
  readonly driver?: Driver;
}

export interface GroupOptions {
  readonly kinds: readonly DriverKind[];
  readonly runDirectory: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly durable: DurableFs;
  /** A worker answered outside a tell: one that connected between cycles, or one that was late. */
  readonly onLateAnswer: (result: WorkerResult) => void;
}

/**
 * Makes the drivers of all groups; nothing is opened yet.
 * @throws WritError CONFIG_INVALID when a driver refuses its options
 */
export function createWorkerGroups(
  configs: readonly WorkerGroupConfig[],
  options: GroupOptions,
): WorkerGroup[] {
  return configs.map((config): WorkerGroup => {
    const { reset } = config;
    if (reset === undefined) return { config };
    const kind = options.kinds.find((one) => one.name === reset.driver);
    if (kind === undefined)
      throw new WritError('CONFIG_INVALID', `group ${config.name}: no driver ${reset.driver}`);
    return { config, driver: kind.create(reset.options, driverContext(config, options)) };
  });
}

function driverContext(config: WorkerGroupConfig, options: GroupOptions): DriverContext {
  const { log, runDirectory, clock, durable } = options;
  return {
    group: config.name,
    log,
    runDirectory,
    clock,
    durable,
    onLateAnswer: (worker, generation, answer) =>
      options.onLateAnswer(workerResult(config.name, worker, answer, generation, clock.nowMs())),
  };
}

/** A worker's name in the ledger and in messages. */
export function workerKey(group: string, worker: string): string {
  return `${group}/${worker}`;
}

export interface TellOptions {
  readonly target: Target;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Only these workers (their keys); everybody when it is left out. */
  readonly only?: ReadonlySet<string>;
  /** Names each tell. */
  readonly nextTell: () => string;
}

export interface GroupTelling {
  readonly group: WorkerGroup;
  /** Workers that exist just now, whether or not they were told. */
  readonly members: readonly string[];
  readonly results: readonly WorkerResult[];
  /** WORKER_UNREACHABLE: nobody could say who the workers are. */
  readonly unlisted?: WritError;
}

/** A worker that exists just now. */
export interface Member {
  readonly worker: string;
  /** Its process in this boot; only of this boot where its driver cannot tell one process from another. */
  readonly process: string;
}

/**
 * Reads the set of a group anew.
 * @returns its workers, or the reason why nobody can say who they are: then they are neither gone nor confirmed
 */
export async function readMembers({ driver, config }: WorkerGroup): Promise<readonly Member[] | WritError> {
  if (driver === undefined) return [];
  try {
    const boot = readBootId().slice(0, bootCharacters);
    const workers = await driver.members();
    return await mapBounded(workers, maxParallelTells, async (worker) => {
      const identity = await driver.identity?.(worker);
      return { worker, process: `${boot}:${identity ?? ''}` };
    });
  } catch (error) {
    if (!isWritError(error) || error.code !== 'WORKER_UNREACHABLE') throw error;
    return new WritError('WORKER_UNREACHABLE', `group ${config.name}: ${error.message}`, {
      facts: { ...error.facts, group: config.name },
      cause: error,
    });
  }
}

/** Pids and inodes are used again after a boot. */
const bootCharacters = 8;

const maxParallelTells = 32;

/** Tells the workers of the groups, all at once within a bound, and waits for every answer or deadline. */
export function tellGroups(groups: readonly WorkerGroup[], options: TellOptions): Promise<GroupTelling[]> {
  return Promise.all(groups.map((group) => tellGroup(group, options)));
}

async function tellGroup(group: WorkerGroup, options: TellOptions): Promise<GroupTelling> {
  const { driver, config } = group;
  if (driver === undefined || config.reset === undefined) return { group, members: [], results: [] };
  const found = await readMembers(group);
  if (found instanceof WritError) return { group, members: [], results: [], unlisted: found };
  const wanted = found.filter(({ worker }) => options.only?.has(workerKey(config.name, worker)) ?? true);
  const timeoutMs = config.reset.timeoutMs;
  const { target, signal, clock } = options;
  const results = await mapBounded(wanted, maxParallelTells, async ({ worker, process }) => {
    const tell = options.nextTell();
    const answer = await tellWorker(driver, worker, { target, timeoutMs, ...(signal ? { signal } : {}) });
    return { ...workerResult(config.name, worker, answer, target.generation, clock.nowMs()), tell, process };
  });
  return { group, members: found.map((one) => one.worker), results };
}

function workerResult(
  group: string,
  worker: string,
  answer: Answer,
  generation: number,
  atMs: number,
): WorkerResult {
  return { group, worker, state: answer.kind, generation, text: answer.text, atMs };
}

async function mapBounded<A, B>(
  items: readonly A[],
  bound: number,
  act: (item: A) => Promise<B>,
): Promise<B[]> {
  const results: B[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      results[index] = await act(items[index] as A);
    }
  };
  await Promise.all(Array.from({ length: Math.min(bound, items.length) }, lane));
  return results;
}

export async function openGroups(groups: readonly WorkerGroup[]): Promise<void> {
  for (const { driver } of groups) await driver?.open?.();
}

export async function closeGroups(groups: readonly WorkerGroup[]): Promise<void> {
  for (const { driver } of groups) await driver?.close?.();
}

/** Says to drivers what a worker that connects later is to use. */
export function announceActive(groups: readonly WorkerGroup[], target: Target | undefined): void {
  for (const { driver } of groups) driver?.activeChanged?.(target);
}
