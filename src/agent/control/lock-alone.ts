// The lock of a host for a command that acts without an agent. Owns how long another command is waited for; what an agent that
// has it is asked is the command line's.
import type { AgentConfig } from '../../core/config/config.js';
import { given } from '../../core/given.js';
import type { LockHolder } from '../../platform/disk/find-lock-holder.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { type HeldHost, type LockRequest, lockHost } from '../startup/open-host.js';
import type { HostOptions } from '../state/host.js';

const lockWaitMs = 10_000;

/**
 * Nobody waits for the lock of an agent, which keeps it for as long as it lives: one that starts answers soon, and whoever
 * asked asks it again.
 * @throws WritError as lockHost; LOCK_HELD at once, with the fact `what: 'agent'`, where an agent has it
 */
export async function lockAlone(
  config: AgentConfig,
  options: HostOptions,
  {
    holder,
    signal,
    newState,
  }: Required<Pick<LockRequest, 'holder' | 'signal'>> & Pick<LockRequest, 'newState'>,
): Promise<HeldHost> {
  const ofAgent = new AbortController();
  using stop = joinSignals(signal, ofAgent.signal);
  const onWait = ({ what }: LockHolder): void => {
    if (what === 'agent') ofAgent.abort();
  };
  return await lockHost(config, options, {
    ...{ holder, waitMs: lockWaitMs, signal: stop.signal, onWait },
    ...given({ newState }),
  });
}
