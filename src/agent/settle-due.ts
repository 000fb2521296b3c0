// Tells the workers that could not be told before what they are to use: a failed tell stays due until it is
// confirmed or superseded. Runs inside a cycle with nothing new, and apart from cycles on the agent's timer.
import type { Problem, WorkerResult } from '../core/cycle-report.js';
import { toWritError } from '../core/errors.js';
import type { Clock } from '../platform/clock.js';
import { problemOf } from './cycle-story.js';
import { readActive } from './generations.js';
import type { Host } from './host.js';
import { openStagingArea } from './staging-area.js';
import { judgeProof, resetWorkers, runProbes, type TellContext } from './tell-steps.js';
import { type WorkerGroup, workerKey } from './worker-groups.js';
import { dueWorkers, forgetWorkers, noteWorkers } from './worker-ledger.js';

export interface SettleResult {
  readonly results: readonly WorkerResult[];
  readonly problems: readonly Problem[];
}

const nothing: SettleResult = { results: [], problems: [] };

/**
 * @param options.staging makes the directory for scratch when a probe needs it
 * @returns what the due workers said; no problem is left when all of them are told
 */
export async function settleDue(
  host: Host,
  options: { readonly staging: () => string; readonly signal: AbortSignal },
): Promise<SettleResult> {
  if (dueWorkers(host.ledger.read()).size === 0) return nothing;
  await forgetAbsent(host);
  const due = dueWorkers(host.ledger.read());
  const active = readActive(host.paths);
  if (due.size === 0 || active === undefined) return nothing;
  const groups = groupsOf(host, due);
  const context: TellContext = {
    groups,
    target: { generation: active.number, path: active.path },
    staging: options.staging(),
    durable: host.durable,
    signal: options.signal,
    only: due,
  };
  return tellDue(host, context);
}

function groupsOf(host: Host, due: ReadonlySet<string>): WorkerGroup[] {
  return host.groups.filter(({ config }) =>
    [...due].some((key) => key.startsWith(workerKey(config.name, ''))),
  );
}

async function tellDue(host: Host, context: TellContext): Promise<SettleResult> {
  try {
    const reset = await resetWorkers(host, context);
    const probed = reset.results.length > 0 ? await runProbes(host, context) : new Set<string>();
    const proof = judgeProof(context.groups, reset.results, probed);
    noteWorkers(host, proof.results);
    return { results: proof.results, problems: [...reset.problems, ...proof.problems] };
  } catch (error) {
    const refusal = toWritError(error);
    const { results } = refusal.facts as { results?: readonly WorkerResult[] };
    noteWorkers(host, results ?? []);
    return { results: results ?? [], problems: [problemOf(refusal)] };
  }
}

/** A worker that its driver does not list any more is not due: it is gone. */
async function forgetAbsent(host: Host): Promise<void> {
  const present = new Set<string>();
  for (const { config, driver } of host.groups) {
    for (const worker of (await driver?.members()) ?? []) present.add(workerKey(config.name, worker));
  }
  forgetWorkers(host, (group, worker) => present.has(workerKey(group, worker)));
}

const firstDelayMs = 5000;
const maxDelayMs = 300_000;

/** @returns milliseconds to wait before due workers are told again after so many tries: 5 s doubling to 5 min */
export function dueDelayMs(tries: number): number {
  return Math.min(firstDelayMs * 2 ** Math.min(tries, 10), maxDelayMs);
}

/** Apart from cycles. @returns `nothing-due` without a write when every worker has been told */
export async function settleDueApart(
  host: Host,
  options: { readonly cycle: string; readonly signal: AbortSignal },
): Promise<'nothing-due' | 'told' | 'still-due'> {
  if (dueWorkers(host.ledger.read()).size === 0) return 'nothing-due';
  const area = openStagingArea(host.paths, host.durable, options.cycle);
  try {
    const { results, problems } = await settleDue(host, {
      staging: () => area.path(),
      signal: options.signal,
    });
    host.log.info({ results, problems }, 'workers that were due');
    return dueWorkers(host.ledger.read()).size === 0 ? 'told' : 'still-due';
  } catch (error) {
    host.log.warn({ err: error }, 'due workers could not be told');
    return 'still-due';
  } finally {
    area.remove(host.log);
  }
}

export interface SettleLoopOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly stop: AbortSignal;
  /** What else is done between polls, before each wait and after each tell. */
  readonly before: () => Promise<void>;
  readonly after: () => Promise<void>;
  readonly settle: () => ReturnType<typeof settleDueApart>;
}

/** Workers that could not be told stay due: they are told apart from the cycles, later and later. */
export async function runSettleLoop(options: SettleLoopOptions): Promise<void> {
  const { clock, stop, before, after, settle } = options;
  for (let tries = 0; !stop.aborted; ) {
    await before();
    await clock.sleep(dueDelayMs(tries), stop);
    if (stop.aborted) return;
    const settled = await settle();
    tries = settled === 'still-due' ? tries + 1 : 0;
    await after();
  }
}
