// Runs the loaders at the first start after a boot, because their files in /run did not survive it. The run stays pending
// until every loader succeeded. Never moves the link: the policy was good before this boot, so a loader that fails now is a
// fault of the host.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { unreachable } from '../../workers/contract/answer.js';
import { readActive } from '../generations/generations.js';
import { notificationIds } from '../job/progress.js';
import { openStagingArea } from '../job/staging-area.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import { readProcessLiveness } from './dead-workers.js';
import type { NotifyContext } from './notify-context.js';
import { runLoaders } from './run-loaders.js';
import { workerResult } from './worker-groups.js';
import { groupOf, noteWorkers, workerOf } from './worker-ledger.js';

const changeLoaded = ledgerSection('loadedBootId', 'loadPending');

/** @returns true if loaders must run on the active generation: not yet run in this boot, or requested by noteLoadPending */
export function isLoadPending(host: Host, bootId: string): boolean {
  const { loadedBootId, loadPending } = host.ledger.read();
  return groupsWithLoader(host.groups).length > 0 && (loadedBootId !== bootId || loadPending === true);
}

function groupsWithLoader(groups: readonly WorkerGroup[]): readonly WorkerGroup[] {
  return groups.filter((one) => one.config.load !== undefined);
}

/**
 * Runs the loaders if they are pending.
 * @returns LOADER_PENDING with the message of the loader that failed; undefined if none is pending any more
 */
export async function loadAtBoot(
  host: Host,
  options: { readonly cycle: string; readonly signal: AbortSignal },
): Promise<Problem | undefined> {
  const bootId = readBootId();
  if (!isLoadPending(host, bootId)) return undefined;
  const area = openStagingArea(host.paths, host.durable, options.cycle);
  try {
    const active = readActive(host.paths);
    if (active === undefined) return undefined;
    const target = { generation: active.number, path: active.path };
    const { cycle, signal } = options;
    const context = {
      target,
      staging: area.path(),
      signal,
      nextNotificationId: notificationIds(cycle),
      groups: host.groups,
    };
    const { lines, unreached } = await runLoaders(host, context);
    host.log.info({ generation: active.number, loaders: lines }, 'loaders run for this boot');
    await noteUnreachedWorkers(host, unreached, context);
    host.ledger.write(changeLoaded(host.ledger.read(), { loadedBootId: bootId, loadPending: undefined }));
    return undefined;
  } catch (error) {
    host.log.error({ err: error }, 'a loader did not run for this boot');
    const { code, message } = toWritError(error);
    return problemOf(new WritError('LOADER_PENDING', message, { facts: { code } }));
  } finally {
    area.remove(host.log);
  }
}

/** Records the known workers of these groups as unreachable, because they have no files of their loader since the boot. */
async function noteUnreachedWorkers(
  host: Host,
  unreached: ReadonlyMap<string, string>,
  { target: { generation }, nextNotificationId, groups }: NotifyContext,
): Promise<void> {
  const results: WorkerResult[] = [];
  for (const key of Object.keys(host.ledger.read().workers)) {
    const [name, worker] = [groupOf(key), workerOf(key)];
    const text = unreached.get(name);
    const group = groups.find(({ config }) => config.name === name);
    if (text === undefined || group === undefined) continue;
    const liveness = await readProcessLiveness(group, worker, group.config.load);
    const result = workerResult(name, worker, unreachable(text), generation, host.clock.nowMs());
    results.push({ ...result, ...liveness, notificationId: nextNotificationId() });
  }
  noteWorkers(host, results);
}

/** Records that a loader deferred the restored generation: all loaders run again later, outside a move. */
export function noteLoadPending(host: Host): void {
  host.ledger.write(changeLoaded(host.ledger.read(), { loadPending: true }));
}

/** @returns the ledger; it records that loaders ran in this boot if `groups` has every group with a loader */
export function withLoaded(host: Host, ledger: Ledger, groups: readonly WorkerGroup[]): Ledger {
  const all = groupsWithLoader(host.groups);
  const isComplete = all.length > 0 && all.every((one) => groups.includes(one));
  return isComplete ? changeLoaded(ledger, { loadedBootId: readBootId() }) : ledger;
}
