// Runs the loaders of groups and interprets their exit codes. A loader that reached no process is no refusal: the generation
// stays active, and the ledger records that the group is not loaded. Its workers are notified after a loader run that reached
// them. Owns the member `unloaded` of the ledger.
import { toWritError, type WritError } from '../../core/errors.js';
import { retryHook } from '../hooks/run-hook.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import type { NotifyContext } from './notify-context.js';
import { runGroupHook, throwIfNotLoaded } from './probe-workers.js';
import { groupOf } from './worker-ledger.js';

const changeUnloaded = ledgerSection('unloaded');

export interface LoadReport {
  /** One line for each loader that ran. */
  readonly lines: readonly string[];
  /** By group, if its loader reached no process: the reason. Its workers are not notified. */
  readonly unreached: ReadonlyMap<string, string>;
}

/**
 * Runs the loader of each group, one after the other. Its exit code is the verdict.
 * @throws WritError LOADER_FAILED (a refusal), LOADER_DEFERRED (a deferral), LOADER_BROKEN (no verdict)
 */
export async function runLoaders(host: Host, context: NotifyContext): Promise<LoadReport> {
  const lines: string[] = [];
  const unreached = new Map<string, string>();
  for (const group of context.groups) {
    const verdict = await runLoader(host, group, context);
    if (verdict === undefined) continue;
    lines.push(`${group.config.name}: ${verdict.kind}`);
    if (verdict.kind === 'unreachable') unreached.set(group.config.name, `its loader: ${verdict.reason}`);
  }
  noteUnloaded(host, context.groups, unreached);
  return { lines, unreached };
}

/**
 * Runs the loaders of the groups that are not loaded yet, outside a move. After a failure the group stays unloaded until the
 * next reconcile.
 * @returns the groups that stay unloaded, and the first refusal of the generation
 */
export async function runPendingLoaders(
  host: Host,
  context: NotifyContext,
): Promise<Pick<LoadReport, 'unreached'> & { readonly refusal?: WritError }> {
  const { unloaded = [] } = host.ledger.read();
  const unreached = new Map<string, string>();
  let refusal: WritError | undefined;
  for (const group of context.groups.filter((one) => unloaded.includes(one.config.name))) {
    try {
      const { unreached: away } = await runLoaders(host, { ...context, groups: [group] });
      for (const [name, text] of away) unreached.set(name, text);
    } catch (error) {
      const known = toWritError(error);
      unreached.set(group.config.name, known.message);
      if (known.kind === 'rolled-back') refusal ??= known;
    }
  }
  return { unreached, ...(refusal === undefined ? {} : { refusal }) };
}

/** @returns names of the unloaded groups without members: no pending worker makes their loader run again */
export function unloadedWithoutMembers({
  unloaded = [],
  workers,
}: Pick<Ledger, 'unloaded' | 'workers'>): string[] {
  const there = Object.entries(workers).filter(([, { goneAtMs }]) => goneAtMs === undefined);
  return unloaded.filter((name) => !there.some(([key]) => groupOf(key) === name));
}

async function runLoader(host: Host, { config, noteLoaded }: WorkerGroup, context: NotifyContext) {
  const { clock } = host;
  const { load, name } = config;
  if (load === undefined) return undefined;
  const retries = { clock, signal: context.signal };
  // A failed loader may have changed a part of the loaded state, so the group counts as not loaded while it runs.
  noteLoaded?.(undefined);
  const report = await retryHook(load, retries, (hook) => runGroupHook(host, config, hook, context));
  throwIfNotLoaded(name, report);
  if (report.verdict.kind !== 'unreachable') noteLoaded?.(context.target.generation);
  return report.verdict;
}

function noteUnloaded(
  { ledger, groups: all }: Pick<Host, 'ledger' | 'groups'>,
  asked: readonly WorkerGroup[],
  unreached: ReadonlyMap<string, string>,
): void {
  const { unloaded = [] } = ledger.read();
  const isLeft = ({ config: { name } }: WorkerGroup): boolean =>
    asked.some((one) => one.config.name === name) ? unreached.has(name) : unloaded.includes(name);
  const left = all.filter(isLeft).map((one) => one.config.name);
  ledger.write(changeUnloaded(ledger.read(), { unloaded: left.length === 0 ? undefined : left }));
}
