// What is known of the workers, and whether everybody is known to use what is active: by the ledger, and not while a move is
// on its way, for workers that it has not notified yet may be in no ledger. Reads only.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { isWritError } from '../../core/errors.js';
import { defaultProbeDeadlineMs, steadyNotNowMs } from '../../core/limits.js';
import { isConfirmed, type WorkerFacts, type WorkerGroupFacts } from '../../core/status/worker-rules.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Host } from './host.js';
import { readJournal } from './journal.js';
import type { Ledger, WorkerLedger } from './ledger.js';

interface ProofView extends Pick<Host, 'paths' | 'ledger' | 'config'> {
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** @returns true when somebody is there, and everybody who must be proved what it is to use */
export function isProven({ paths, ledger, config, clock }: ProofView): boolean {
  return isConfirmed(groupFacts(ledger.read(), config, clock.nowMs())) && !isOnItsWay(paths);
}

/** Behind its swap and before its commit; of a move that ended on its way back the ledger knows all. */
function isOnItsWay(paths: Host['paths']): boolean {
  try {
    return readJournal(paths)?.direction === 'forward';
  } catch (error) {
    if (!isWritError(error)) throw error;
    return true;
  }
}

/** @returns what the ledger knows of the workers of each group that has any */
export function groupFacts(
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
    const lostAfterMs = lostAfter(config, isUnloaded);
    const own = Object.entries(workers).filter(([key]) => key.startsWith(`${name}/`));
    return [
      {
        ...{ group: name, confirm, listFailure: unreadSets[name] },
        isUnloaded,
        canarySilence: canary === undefined ? undefined : unheardCanaries[name],
        // The one worker that stands for a loader or a probe is always there.
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

/** A driver that proves nothing has answers all the same: a worker that gave any was up. */
function isDead({ state, lives, confirmed, accepted }: WorkerLedger): boolean {
  return state === 'unreachable' && lives === 'no' && (confirmed ?? accepted) !== undefined;
}

/** So many times the time for an answer: who is only slow has answered by then. */
const lostAfterTimeouts = 3;

/** A worker may have been notified as long before its probe was given up as that was asked. */
function lostAfter({ load, reset, probe }: WorkerGroupConfig, isUnloaded: boolean): number {
  const { timeoutMs = 0 } = (isUnloaded ? load : undefined) ?? reset ?? probe ?? load ?? {};
  const isProbed = probe !== undefined && !isUnloaded;
  return lostAfterTimeouts * timeoutMs + (isProbed ? (probe.deadlineMs ?? defaultProbeDeadlineMs) : 0);
}

function isLost(
  { state, lives, atMs, notNowSinceMs }: WorkerLedger,
  lostAfterMs: number,
  nowMs: number,
): boolean {
  // A worker that is busy has answered; a policy that keeps it busy for ever is one that it is lost behind.
  if (notNowSinceMs !== undefined) return nowMs - notNowSinceMs >= steadyNotNowMs;
  return state === 'unreachable' && lives === 'yes' && nowMs - atMs >= lostAfterMs;
}
