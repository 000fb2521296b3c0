// Writes the history entry of the last committed cycle when it is missing, as after a kill between the commit and the
// history entry. The entry is reconstructed from the ledger and the generations. An entry that exists is not changed.
import * as fs from 'node:fs';
import type { BundleResult, CycleResult, WorkerResult } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome, unprovenExitCode } from '../../core/cycle/sync-machine.js';
import { findNewReleases, readNamedReleases } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { type CycleEnd, hasUnproven } from '../job/cycle-result.js';
import { appendHistory, readHistory } from '../job/history.js';
import { groupOf, workerOf } from '../notify/worker-ledger.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';

/** The entry cannot contain the caller and the step durations: only the ended process had them. */
const reason =
  'the history did not contain it: its agent ended before it could write it, or the entry was lost';

/**
 * Appends the missing history entry of the last committed cycle. Never throws, because reporting must not change an outcome.
 * @param recovered the end of the recovery in this start, which appends its own entry later; undefined without one
 */
export function completeHistory(host: Host, recovered: CycleEnd | undefined): void {
  try {
    const ledger = host.ledger.read();
    const { committedCycle: cycle } = ledger;
    if (cycle === undefined || recovered?.recovers === cycle) return;
    if (readHistory(host.paths, { limit: 1, cycle }).length > 0) return;
    const generation = activeGenerationNumber(host.paths);
    // The link was moved after that cycle, so the generations no longer show what the cycle changed.
    if (generation === undefined || generation !== ledger.settled) return;
    const result = reconstructResult(host, ledger, { cycle, generation });
    host.log.warn({ cycle, result }, 'the history did not contain the last cycle');
    const entry = { schema: 1, type: 'history.entry', reason, result, steps: [] } as const;
    appendHistory(host.paths, host.durable, entry);
  } catch (error) {
    host.log.error({ err: error }, 'history could not be written');
  }
}

interface CommittedCycle {
  readonly cycle: string;
  readonly generation: number;
}

function reconstructResult(host: Host, ledger: Ledger, { cycle, generation }: CommittedCycle): CycleResult {
  const from = findLatestRetired(ledger, generation);
  const pending = Object.values(ledger.workers).some((one) => !answeredStates.has(one.state));
  const outcome = pending ? 'degraded' : 'activated';
  const workers = listWorkerResults(ledger, generation);
  const isUnproven = outcome === 'activated' && from !== undefined && hasUnproven(host, workers);
  return {
    schema: 1,
    type: 'pull.result',
    cycle,
    trigger: 'recovery',
    outcome,
    exitCode: isUnproven ? unprovenExitCode : exitCodeOfOutcome[outcome],
    confirmed: !pending && workers.every((one) => one.state === 'confirmed'),
    changed: true,
    ...(from === undefined ? {} : { fromGeneration: from }),
    generation,
    bundles: listMovedBundles(host, from, generation),
    workers,
    problems: [],
    warnings: [],
    // The swap created the link, so the link's modification time is the time of the swap.
    startedAtMs: Math.round(fs.lstatSync(host.paths.current).mtimeMs),
    durationMs: 0,
  };
}

const answeredStates: ReadonlySet<string> = new Set(['confirmed', 'notified']);

/** A move records the generation that it leaves as retired, so the latest one is the generation before the move. */
function findLatestRetired({ retired = {} }: Ledger, generation: number): number | undefined {
  const [last] = Object.entries(retired)
    .filter(([key]) => Number(key) !== generation)
    .sort(([, a], [, b]) => b - a);
  return last === undefined ? undefined : Number(last[0]);
}

function listMovedBundles({ paths }: Host, from: number | undefined, to: number): BundleResult[] {
  const before = from === undefined ? [] : readNamedReleases(paths, from);
  return findNewReleases(paths, { ...(from === undefined ? {} : { from }), to }).map((release) => {
    const { bundle, channel, serial, revision } = release;
    const fromSerial = before.find((one) => one.bundle === bundle)?.serial;
    const known = fromSerial === undefined ? {} : { fromSerial };
    return { bundle, channel, outcome: 'activated', ...known, toSerial: serial, revision };
  });
}

/** The current state of each worker that was notified of this generation; a pending worker has no result yet. */
function listWorkerResults({ workers }: Ledger, generation: number): WorkerResult[] {
  return Object.entries(workers).flatMap(([key, { state, text, atMs, wanted }]) => {
    if (state === 'pending' || wanted !== generation) return [];
    return [{ group: groupOf(key), worker: workerOf(key), state, generation, text, atMs }];
  });
}
