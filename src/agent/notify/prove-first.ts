// Asks a group's probe before its workers are told: after a restart of the agent, or of a worker, it may show the wanted
// generation already, and nobody is told in vain. Only a yes counts: a no says that they are still to be told.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { confineOn } from '../hooks/host-sandbox.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { SettleOptions, TellContext } from './notify-context.js';
import { askProbe, asksEach } from './probe-workers.js';
import { groupOf, isDue, noteWorkers, tellableWorkers, workerOf } from './worker-ledger.js';

interface ProveOptions extends Pick<SettleOptions, 'staging' | 'signal' | 'nextTell' | 'who'> {
  readonly target: TellContext['target'];
}

/** @returns the workers that a probe has confirmed, without a tell */
export async function proveByProbe(host: Host, options: ProveOptions): Promise<WorkerResult[]> {
  const proven: WorkerResult[] = [];
  for (const group of host.groups) {
    if (group.config.probe !== undefined && isProbeDue(host, group, options))
      proven.push(...(await proveGroup(host, group, options)));
  }
  noteWorkers(host, proven);
  return proven;
}

async function proveGroup(host: Host, group: WorkerGroup, options: ProveOptions): Promise<WorkerResult[]> {
  const { target, signal, nextTell } = options;
  const { durable } = host;
  const context = { groups: [group], target, signal, nextTell, durable, confine: confineOn(host) };
  const members = membersOf(host, group.config.name);
  // One answer is worth as much as it asks about: one worker, or all of them.
  const questions = asksEach(group.config.probe) ? members.map((one) => [one]) : [members];
  const shown: [string, WorkerLedger][] = [];
  for (const asked of questions) {
    const worker = workerOf(asked[0]?.[0] ?? '');
    const report = await askProbe(group.config, { ...context, staging: options.staging() }, worker);
    if (report.verdict.kind === 'ok') shown.push(...asked);
  }
  return confirmAll(host, group, shown, target.generation);
}

/**
 * A probe asks the group and not one worker: only where nobody in it has confirmed the generation can its answer not
 * come from somebody else.
 */
function isProbeDue(host: Host, { config }: WorkerGroup, { who }: ProveOptions): boolean {
  const ledger = host.ledger.read();
  const isTheirTurn = who === 'all' ? undefined : tellableWorkers(ledger, host.clock.nowMs());
  const there = membersOf(host, config.name);
  return (
    there.length > 0 &&
    there.every(([, one]) => isDue(one) && isUnknown(one)) &&
    there.every(([key]) => isTheirTurn?.has(key) ?? true)
  );
}

/** Whom a move did not come to tell is told in full: a refusal before may have left it half way. */
function isUnknown({ appeared, state }: WorkerLedger): boolean {
  return appeared === true || state === 'unreachable';
}

function confirmAll(
  host: Host,
  { config }: WorkerGroup,
  workers: readonly [string, WorkerLedger][],
  generation: number,
): WorkerResult[] {
  return workers.map(([key, { process }]) => ({
    group: config.name,
    worker: workerOf(key),
    state: 'confirmed',
    generation,
    text: 'its probe shows the generation; nobody had to tell it',
    atMs: host.clock.nowMs(),
    ...(process === undefined ? {} : { process }),
  }));
}

function membersOf(host: Host, group: string): [string, WorkerLedger][] {
  return Object.entries(host.ledger.read().workers).filter(
    ([key, one]) => groupOf(key) === group && one.goneAtMs === undefined,
  );
}
