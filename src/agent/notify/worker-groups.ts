// The groups of workers configured together: their drivers, and who is in them. Notifies nobody (notify-group does), and never
// touches `policy/`.
import type { AgentConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { readBootId } from '../../platform/process/boot-id.js';
import type { Answer, DriverContext, DriverKind, Target } from '../../workers/contract/driver.js';
import type { WorkerGroup } from '../state/host.js';
import { createHookDriver } from './hook-driver.js';

export interface GroupOptions
  extends Omit<DriverContext, 'group' | 'checked' | 'process' | 'programPath' | 'onLateAnswer'> {
  readonly kinds: readonly DriverKind[];
  /** A worker answered outside a notification: one that connected between cycles, or one that was late. */
  readonly onLateAnswer: (result: WorkerResult) => void;
}

/**
 * Makes the drivers of all groups; nothing is opened yet.
 * @throws WritError CONFIG_INVALID when a driver refuses its options
 */
export function createWorkerGroups(
  all: Pick<AgentConfig, 'workers' | 'bundles'>,
  { kinds, ...options }: GroupOptions,
): WorkerGroup[] {
  return all.workers.map((config): WorkerGroup => {
    const { reset, name: group } = config;
    if (reset === undefined) {
      const driver = createHookDriver(config);
      return driver === undefined ? { config } : { config, driver, noteLoaded: driver.noteLoaded };
    }
    const kind = kinds.find((one) => one.name === reset.driver);
    if (kind === undefined)
      throw new WritError('CONFIG_INVALID', `group ${group}: no driver ${reset.driver}`);
    const onLateAnswer: DriverContext['onLateAnswer'] = (worker, generation, answer, identity) =>
      options.onLateAnswer({
        ...workerResult(group, worker, answer, generation, options.clock.nowMs()),
        ...(identity === undefined ? {} : { process: processNamed(identity, readBootId()) }),
      });
    const checked = isChecked(config, all) ? 'yes' : 'no';
    const own = { ...options, group, checked, onLateAnswer, ...given({ process: config.process }) } as const;
    return { config, driver: kind.create(reset.options, own) };
  });
}

/** True when a check judges every bundle that the group uses. */
export function isChecked(
  { uses }: Pick<AgentConfig['workers'][number], 'uses'>,
  { bundles }: Pick<AgentConfig, 'bundles'>,
): boolean {
  return uses.every((name) => bundles.some((one) => one.name === name && one.checks.length > 0));
}

/** A worker that exists just now. */
export interface Member {
  readonly worker: string;
  /** Its process in this boot; only of this boot where its driver cannot tell one process from another. */
  readonly process: string;
}

/**
 * Reads the set of a group again.
 * @returns its workers, or the reason why nobody can say who they are: then they are neither gone nor confirmed
 */
export async function readMembers({ driver, config }: WorkerGroup): Promise<readonly Member[] | WritError> {
  if (driver === undefined) return [];
  try {
    const workers = await driver.members();
    const bootId = readBootId();
    return await mapBounded(workers, maxParallelNotices, async (worker) => {
      return { worker, process: processNamed((await driver.identity?.(worker)) ?? '', bootId) };
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

function processNamed(identity: string, bootId: string): string {
  return `${bootId.slice(0, bootCharacters)}:${identity}`;
}

/** @param process of a worker in the ledger */
export function isOfBoot(process: string | undefined, bootId: string): boolean {
  return process?.startsWith(processNamed('', bootId)) === true;
}

/** So many workers are asked or notified at a time. */
export const maxParallelNotices = 32;

/** What one worker said, as results carry it. */
export function workerResult(
  group: string,
  worker: string,
  answer: Answer,
  generation: number,
  atMs: number,
): WorkerResult {
  const { kind: state, text, notNow, code } = answer;
  return { group, worker, state, generation, text, atMs, ...given({ notNow, code }) };
}

/** As Promise.all, so many at a time. */
export async function mapBounded<A, B>(
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
