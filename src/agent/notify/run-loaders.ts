// The loaders: for which groups they have to run, and what their ends mean. A loader that reached nobody has refused nothing:
// the generation stays, the ledger keeps that the group is not loaded, and its workers are notified behind a loader that
// reached them. Owns that member of the ledger.
import { toWritError, type WritError } from '../../core/errors.js';
import { retryHook } from '../hooks/run-hook.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import type { NotifyContext } from './notify-context.js';
import { groupHook, requireLoaded } from './probe-workers.js';
import { groupOf } from './worker-ledger.js';

const changeUnloaded = ledgerSection('unloaded');

export interface LoadReport {
  /** One for each loader that was run. */
  readonly lines: readonly string[];
  /** By the names of the groups that were not reached: why. Their workers are not notified. */
  readonly unreached: ReadonlyMap<string, string>;
}

/**
 * Runs the loader of each group, one after the other: its exit code is the verdict.
 * @throws WritError LOADER_FAILED (a verdict), LOADER_DEFERRED (not now), LOADER_BROKEN (no verdict)
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
 * Apart from a move: the loaders of those groups of the context that are not loaded yet. Whatever is no yes leaves the group
 * as it is, until its next turn.
 * @returns the report, and the first no to the generation
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

/** @returns names of the groups that are not loaded, and have no worker that would have their loader run again */
export function unloadedWithNobody({
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
  // A loader that fails may have changed a part of what it had loaded before.
  noteLoaded?.(undefined);
  const report = await retryHook(load, retries, (hook) => groupHook(host, config, hook, context));
  requireLoaded(name, report);
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
