// Reads from the ledger whether all workers confirmed the active generation. The answer is no while a move is unfinished,
// because the ledger may not have the workers that the move has not notified yet. Writes nothing.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { isWritError } from '../../core/errors.js';
import { defaultProbeDeadlineMs, steadyNotNowMs } from '../../core/limits.js';
import { isConfirmed, type WorkerFacts, type WorkerGroupFacts } from '../../core/status/worker-rules.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Host } from './host.js';
import { readJournal } from './journal.js';
import type { Ledger, WorkerLedger } from './ledger.js';

interface ConfirmationView extends Pick<Host, 'paths' | 'ledger' | 'config'> {
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** @returns whether there are workers, and each one that must confirm has confirmed its wanted generation */
export function areWorkersConfirmed({ paths, ledger, config, clock }: ConfirmationView): boolean {
  return isConfirmed(workerGroupFacts(ledger.read(), config, clock.nowMs())) && !isMoveUnfinished(paths);
}

/** Between swap and commit. During a restore the ledger is complete. A journal that cannot be read counts as unfinished. */
function isMoveUnfinished(paths: Host['paths']): boolean {
  try {
    return readJournal(paths)?.direction === 'forward';
  } catch (error) {
    if (!isWritError(error)) throw error;
    return true;
  }
}

/** @returns the state of the workers of each group with `reset`, `load` or `probe`, from the ledger */
export function workerGroupFacts(
  {
    workers,
    unreadSets = {},
    unloaded = [],
    unheardCanaries = {},
    runs = {},
  }: Pick<Ledger, 'workers' | 'unreadSets' | 'unloaded' | 'unheardCanaries' | 'runs'>,
  { workers: groups }: Pick<Host['config'], 'workers'>,
  nowMs: number,
): WorkerGroupFacts[] {
  return groups.flatMap((config): WorkerGroupFacts[] => {
    const { name, reset, load, probe, canary, confirm } = config;
    if (reset === undefined && load === undefined && probe === undefined) return [];
    const isUnloaded = load !== undefined && unloaded.includes(name);
    const lostAfterMs = lostAfterMsOf(config, isUnloaded);
    const own = Object.entries(workers).filter(([key]) => key.startsWith(`${name}/`));
    return [
      {
        ...{ group: name, confirm, listFailure: unreadSets[name] },
        isUnloaded,
        canarySilence: canary === undefined ? undefined : unheardCanaries[name],
        // A group with only a loader or a probe has exactly one worker, which represents it.
        min: reset?.min ?? 1,
        hasProbe: probe !== undefined,
        workers: own.map(([key, entry]): WorkerFacts => {
          const { wanted, state, text, goneAtMs, tries, probed, code, secondProbe } = entry;
          return {
            ...{ state, text, goneAtMs, tries, probed, code, secondProbe },
            worker: key.slice(name.length + 1),
            generation: wanted,
            isLost: isLost(entry, lostAfterMs, nowMs),
            isDead: isDead(entry),
            failure: goneAtMs === undefined ? undefined : runs[key]?.failure,
          };
        }),
      },
    ];
  });
}

/** Without `confirmed`, an accepted generation shows that the worker ran before: some drivers cannot confirm. */
function isDead({ state, lives, confirmed, accepted }: WorkerLedger): boolean {
  return state === 'unreachable' && lives === 'no' && (confirmed ?? accepted) !== undefined;
}

/** An unreachable worker is lost after this many timeouts: a slow worker has answered by then. */
const lostAfterTimeouts = 3;

/** In milliseconds. Includes the deadline of a probe, because the notification may precede its end by that long. */
function lostAfterMsOf({ load, reset, probe }: WorkerGroupConfig, isUnloaded: boolean): number {
  const { timeoutMs = 0 } = (isUnloaded ? load : undefined) ?? reset ?? probe ?? load ?? {};
  const isProbed = probe !== undefined && !isUnloaded;
  return lostAfterTimeouts * timeoutMs + (isProbed ? (probe.deadlineMs ?? defaultProbeDeadlineMs) : 0);
}

function isLost(
  { state, lives, atMs, notNowSinceMs }: WorkerLedger,
  lostAfterMs: number,
  nowMs: number,
): boolean {
  // A deferral is an answer. A worker that defers for very long is lost, because the policy may keep it busy for ever.
  if (notNowSinceMs !== undefined) return nowMs - notNowSinceMs >= steadyNotNowMs;
  return state === 'unreachable' && lives === 'yes' && nowMs - atMs >= lostAfterMs;
}
