// Worker groups: creates their drivers and lists their members. Sends no notification (notify-group does), and does not touch
// `policy/`.
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
  /** Called for an answer outside a notification: a worker connected between cycles, or answered after its deadline. */
  readonly onLateAnswer: (result: WorkerResult) => void;
}

/**
 * Creates the drivers of all groups; `openGroups` opens them.
 * @throws WritError CONFIG_INVALID if a driver rejects its options
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
        ...(identity === undefined ? {} : { process: nameProcess(identity, readBootId()) }),
      });
    const checked = isChecked(config, all) ? 'yes' : 'no';
    const own = { ...options, group, checked, onLateAnswer, ...given({ process: config.process }) } as const;
    return { config, driver: kind.create(reset.options, own) };
  });
}

/** @returns true if every bundle that the group uses has a check */
export function isChecked(
  { uses }: Pick<AgentConfig['workers'][number], 'uses'>,
  { bundles }: Pick<AgentConfig, 'bundles'>,
): boolean {
  return uses.every((name) => bundles.some((one) => one.name === name && one.checks.length > 0));
}

/** A current member of a group. */
export interface Member {
  readonly worker: string;
  /** Boot id and process identity; the boot id alone if the driver cannot distinguish processes. */
  readonly process: string;
}

/**
 * Lists the members of a group.
 * @returns the members, or WORKER_UNREACHABLE with the reason if they cannot be listed: then none counts as departed
 */
export async function readMembers({ driver, config }: WorkerGroup): Promise<readonly Member[] | WritError> {
  if (driver === undefined) return [];
  try {
    const workers = await driver.members();
    const bootId = readBootId();
    return await mapBounded(workers, maxParallelNotices, async (worker) => {
      return { worker, process: nameProcess((await driver.identity?.(worker)) ?? '', bootId) };
    });
  } catch (error) {
    if (!isWritError(error) || error.code !== 'WORKER_UNREACHABLE') throw error;
    return new WritError('WORKER_UNREACHABLE', `group ${config.name}: ${error.message}`, {
      facts: { ...error.facts, group: config.name },
      cause: error,
    });
  }
}

/** The identity begins with these characters of the boot id, because pids and inodes are reused after a boot. */
const bootCharacters = 8;

function nameProcess(identity: string, bootId: string): string {
  return `${bootId.slice(0, bootCharacters)}:${identity}`;
}

/** @param process of a worker in the ledger. @returns true if the process was seen in this boot */
export function isOfBoot(process: string | undefined, bootId: string): boolean {
  return process?.startsWith(nameProcess('', bootId)) === true;
}

/** The limit of workers that are notified or checked in parallel. */
export const maxParallelNotices = 32;

/** @returns the answer of a worker as a result for the cycle report */
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

/** As Promise.all, with at most `bound` calls of `act` at a time. */
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

/**
 * Opens the sockets of all drivers, one after the other. Groups without a driver or sockets are left out.
 * @throws the error of the first driver that fails; the drivers before it stay open
 */
export async function openGroups(groups: readonly WorkerGroup[]): Promise<void> {
  for (const { driver } of groups) await driver?.open?.();
}

/**
 * Closes the sockets of all drivers, one after the other.
 * @throws the error of the first driver that fails
 */
export async function closeGroups(groups: readonly WorkerGroup[]): Promise<void> {
  for (const { driver } of groups) await driver?.close?.();
}

/** Gives the active generation to the drivers, for workers that connect later. */
export function announceActive(groups: readonly WorkerGroup[], target: Target | undefined): void {
  for (const { driver } of groups) driver?.activeChanged?.(target);
}
