// The line of the history that a kill between commit and history left out: written at the next start, from what the
// ledger and the generations know. Owns this one line; a cycle that is in the history is left as it told itself.
import * as fs from 'node:fs';
import type { BundleResult, CycleResult, WorkerResult } from '../../core/cycle/cycle-report.js';
import { exitCodeOfOutcome, unprovenExitCode } from '../../core/cycle/sync-machine.js';
import { releasesBrought, releasesNamedBy } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { type CycleEnd, hasUnproven } from '../job/cycle-result.js';
import { appendHistory, readHistory } from '../job/history.js';
import { groupOf, workerOf } from '../notify/worker-ledger.js';
import type { Host } from '../state/host.js';
import type { Ledger } from '../state/ledger.js';

/** Who asked for it and how long its steps took died with the agent. */
const reason =
  'the history did not contain it: its agent ended before it could write it, or the entry was lost';

/**
 * Writes the missing line of the last committed cycle. Never throws: reporting changes no outcome.
 * @param recovered the end of a recovery that has its own line still to come
 */
export function completeHistory(host: Host, recovered: CycleEnd | undefined): void {
  try {
    const ledger = host.ledger.read();
    const { committedCycle: cycle } = ledger;
    if (cycle === undefined || recovered?.recovers === cycle) return;
    if (readHistory(host.paths, { limit: 1, cycle }).length > 0) return;
    const generation = activeGenerationNumber(host.paths);
    // Somebody moved the link since: nothing is known that would be true of that cycle.
    if (generation === undefined || generation !== ledger.settled) return;
    const result = resultOf(host, ledger, { cycle, generation });
    host.log.warn({ cycle, result }, 'the history did not contain the last cycle');
    const entry = { schema: 1, type: 'history.entry', reason, result, steps: [] } as const;
    appendHistory(host.paths, host.durable, entry);
  } catch (error) {
    host.log.error({ err: error }, 'history could not be written');
  }
}

interface Committed {
  readonly cycle: string;
  readonly generation: number;
}

function resultOf(host: Host, ledger: Ledger, { cycle, generation }: Committed): CycleResult {
  const from = lastRetired(ledger, generation);
  const pending = Object.values(ledger.workers).some((one) => !answered.has(one.state));
  const outcome = pending ? 'degraded' : 'activated';
  const workers = workersOf(ledger, generation);
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
    bundles: bundlesOf(host, from, generation),
    workers,
    problems: [],
    warnings: [],
    // The link's own time is the time of the swap.
    startedAtMs: Math.round(fs.lstatSync(host.paths.current).mtimeMs),
    durationMs: 0,
  };
}

const answered: ReadonlySet<string> = new Set(['confirmed', 'notified']);

/** The move noted the generation that it left as the last one of them. */
function lastRetired({ retired = {} }: Ledger, generation: number): number | undefined {
  const [last] = Object.entries(retired)
    .filter(([key]) => Number(key) !== generation)
    .sort(([, a], [, b]) => b - a);
  return last === undefined ? undefined : Number(last[0]);
}

function bundlesOf({ paths }: Host, from: number | undefined, to: number): BundleResult[] {
  const before = from === undefined ? [] : releasesNamedBy(paths, from);
  return releasesBrought(paths, { ...(from === undefined ? {} : { from }), to }).map((release) => {
    const { bundle, channel, serial, revision } = release;
    const fromSerial = before.find((one) => one.bundle === bundle)?.serial;
    const known = fromSerial === undefined ? {} : { fromSerial };
    return { bundle, channel, outcome: 'activated', ...known, toSerial: serial, revision };
  });
}

/** What each worker says by now; one that is not up yet has said nothing. */
function workersOf({ workers }: Ledger, generation: number): WorkerResult[] {
  return Object.entries(workers).flatMap(([key, { state, text, atMs, wanted }]) => {
    if (state === 'pending' || wanted !== generation) return [];
    return [{ group: groupOf(key), worker: workerOf(key), state, generation, text, atMs }];
  });
}
