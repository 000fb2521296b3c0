// Whose word a command goes by that only wants to know how a host is, where no agent has answered. Pure: a table test holds
// every cell. "I may not look" is no alarm, what was said long ago no good news, and a socket alone no proof of anything.
import type { AgentState } from '../../core/status/status.js';

export interface StatusEvidence {
  /**
   * `denied`: this user cannot open a socket of the agent. `nobody`: no process listens on the one that is; an agent may run all the same,
   * that could not open it.
   */
  readonly door: 'denied' | 'nobody';
  /** What `status.json` says; left out where there is none, or it is not to be read. `ageMs`: below 0 if from the future. */
  readonly word?: { readonly agent: AgentState; readonly ageMs: number };
  /**
   * Whether this user can judge by the ledger, and, if so, whether a process holds the lock of the host. `starting`: an agent that
   * took the lock after `status.json` was written.
   */
  readonly state: 'denied' | 'free' | 'locked' | 'starting';
}

/**
 * `file`: status.json. `disk`: the ledger; no agent runs. Behind either, `-doubted`: status.json is of a running agent, and
 * nobody listens where it should. `disk-starting`: the agent recovers the host, and opens its socket after that. `disk-lost`: an agent has gone without a word. `unknown`: nobody who may be heard knows.
 */
export type StatusSource =
  | 'file'
  | 'file-doubted'
  | 'disk'
  | 'disk-starting'
  | 'disk-doubted'
  | 'disk-lost'
  | 'unknown';

/** Of three beats of an agent. */
export const maxStatusFileAgeMs = 180_000;

export function chooseStatusSource({ door, word, state }: StatusEvidence): StatusSource {
  const isFresh = word !== undefined && Math.abs(word.ageMs) <= maxStatusFileAgeMs;
  // An agent that ends with order says so, and so does a pull by cron.
  const speaksForAgent = word !== undefined && word.agent !== 'stop';
  if (door === 'nobody' && state !== 'denied') {
    if (!speaksForAgent) return 'disk';
    return isFresh ? judgeByLock(word.agent, state) : 'disk-lost';
  }
  if (!isFresh) return 'unknown';
  return door === 'denied' || !speaksForAgent ? 'file' : 'file-doubted';
}

/** For a recent status.json of an agent, and a socket that does not answer. */
function judgeByLock(agent: AgentState, state: 'free' | 'locked' | 'starting'): StatusSource {
  if (state === 'free') return 'disk';
  return state === 'starting' || agent === 'init' ? 'disk-starting' : 'disk-doubted';
}
