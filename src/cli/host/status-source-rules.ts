// Chooses the source of a status when no agent answered the request. Pure: a table test covers every combination.
// A user without permission gets no alarm, an old status.json is no good news, and a socket alone proves nothing.
import type { AgentState } from '../../core/status/status.js';

export interface StatusEvidence {
  /**
   * `denied`: this user cannot open a socket of the agent. `not-listening`: no process listens on the socket. An agent may run all
   * the same, because it could not open its socket.
   */
  readonly socket: 'denied' | 'not-listening';
  /** From `status.json`; undefined if it is missing, or this user cannot read it. `ageMs` is negative if its time is in the future. */
  readonly statusFile?: { readonly agent: AgentState; readonly ageMs: number };
  /**
   * `denied`: this user cannot read the ledger. `locked`: a process holds the lock of the host; `free`: none does. `starting`: an
   * agent took the lock after `status.json` was written.
   */
  readonly stateDirectory: 'denied' | 'free' | 'locked' | 'starting';
}

/**
 * `state-directory`: the ledger, because no agent runs. `unanswered`: the same source, but an agent should run and its socket does
 * not answer. `starting`: the ledger, because the agent opens its socket after the recovery of the host. `agent-lost`: an agent ended
 * without a final status. `unknown`: no source that this user can read is good enough.
 */
export type StatusSource =
  | 'status-file'
  | 'status-file-unanswered'
  | 'state-directory'
  | 'state-directory-starting'
  | 'state-directory-unanswered'
  | 'agent-lost'
  | 'unknown';

/** Three heartbeats of an agent: a status.json that is older does not count. */
export const maxStatusFileAgeMs = 180_000;

/**
 * @returns the best source for this user. `status.json` counts while it is at most 3 minutes old; an old one of a
 * running agent is `agent-lost` where the ledger can be read, else `unknown`.
 */
export function chooseStatusSource({ socket, statusFile, stateDirectory }: StatusEvidence): StatusSource {
  const isFresh = statusFile !== undefined && Math.abs(statusFile.ageMs) <= maxStatusFileAgeMs;
  // An agent that stops writes `stop`, and so does a pull without an agent.
  const isOfRunningAgent = statusFile !== undefined && statusFile.agent !== 'stop';
  if (socket === 'not-listening' && stateDirectory !== 'denied') {
    if (!isOfRunningAgent) return 'state-directory';
    return isFresh ? chooseByLock(statusFile.agent, stateDirectory) : 'agent-lost';
  }
  if (!isFresh) return 'unknown';
  return socket === 'denied' || !isOfRunningAgent ? 'status-file' : 'status-file-unanswered';
}

/** For a recent status.json of a running agent, if the socket of that agent does not answer. */
function chooseByLock(agent: AgentState, lock: 'free' | 'locked' | 'starting'): StatusSource {
  if (lock === 'free') return 'state-directory';
  return lock === 'starting' || agent === 'init' ? 'state-directory-starting' : 'state-directory-unanswered';
}
