// Tells the workers that are due what they are to use: a failed tell stays due until it is confirmed or superseded,
// and who appears is told. Runs inside a cycle with nothing new, and apart from cycles on the agent's timer.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { toWritError } from '../../core/errors.js';
import { readActive } from '../generations/generations.js';
import { confineOn } from '../hooks/host-sandbox.js';
import type { Host } from '../state/host.js';
import { readSets } from './membership.js';
import type { SettleOptions, TellContext } from './notify-context.js';
import { resetWorkers } from './notify-steps.js';
import { dueProblems } from './pending-problems.js';
import { problemsOf, proveTold, type Told } from './prove.js';
import { proveByProbe } from './prove-first.js';
import { resultsIn } from './refusal.js';
import { standingRefusal } from './standing-refusal.js';
import { dueWorkers, groupOf, noteWorkers, refusingInVain, tellableWorkers } from './worker-ledger.js';

export interface SettleResult {
  /** What those said that were told now, or whose probe answered. */
  readonly results: readonly WorkerResult[];
  /** What is wrong still; none when every worker there is was told. */
  readonly problems: readonly Problem[];
  /** How long it took to read each set, in milliseconds by the names of the groups. */
  readonly readMs: ReadonlyMap<string, number>;
}

const nothing: SettleResult = { results: [], problems: [], readMs: new Map() };

/** Reads the sets anew, then tells who is due. Never rejects for what workers do. @throws WritError DISK_*, STATE_DAMAGED */
export async function settleDue(host: Host, options: SettleOptions): Promise<SettleResult> {
  const active = readActive(host.paths);
  if (active === undefined) return nothing;
  const { groups, doubt = 'the-answered' } = options;
  const readMs = await readSets(host, {
    ...{ active: active.number, doubt },
    ...(groups === undefined ? {} : { groups }),
  });
  const target = { generation: active.number, path: active.path };
  const proven = await proveByProbe(host, { ...options, target });
  const told = await tellDue(host, { ...options, target });
  // The ledger names each worker that refuses.
  const others = told.problems.filter((one) => one.code !== 'WORKER_REFUSED');
  const problems = [...others, ...dueProblems(host)];
  const refusal = told.refusal ?? standingRefusal(host, active.number);
  if (refusal !== undefined) await options.onRefused?.(refusal);
  return { results: [...proven, ...told.results], problems, readMs };
}

async function tellDue(
  host: Host,
  options: SettleOptions & { readonly target: TellContext['target'] },
): Promise<Told> {
  const only = whoseTurn(host, options.who);
  if (only.size === 0) return nothing;
  const { target, signal, nextTell } = options;
  const groups = host.groups.filter(({ config }) => [...only].some((key) => groupOf(key) === config.name));
  const context: TellContext = {
    ...{ groups, target, signal, nextTell, only },
    staging: options.staging(),
    durable: host.durable,
    confine: confineOn(host),
  };
  return judged(host, context);
}

function whoseTurn(host: Host, who: SettleOptions['who']): ReadonlySet<string> {
  const ledger = host.ledger.read();
  return who === 'all'
    ? new Set([...dueWorkers(ledger), ...refusingInVain(ledger)])
    : tellableWorkers(ledger, host.clock.nowMs());
}

/** What was said before somebody said no counts too. */
async function judged(host: Host, context: TellContext): Promise<Told> {
  try {
    const { results } = await resetWorkers(host, context);
    const proof = await proveTold(host, context, results);
    noteWorkers(host, proof.results);
    return proof;
  } catch (error) {
    const refusal = toWritError(error);
    const said = resultsIn(refusal);
    noteWorkers(host, said);
    return { results: said, ...problemsOf([refusal]) };
  }
}
