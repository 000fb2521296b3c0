// Takes the lock of a host for a standalone run. Waits for another command for a limited time, and never for an agent: the command
// line sends the request to the agent instead.
import type { AgentConfig } from '../../core/config/config.js';
import { given } from '../../core/given.js';
import type { LockHolder } from '../../platform/disk/find-lock-holder.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { type HeldHost, type LockRequest, lockHost } from '../startup/open-host.js';
import type { HostOptions } from '../state/host.js';

const lockWaitMs = 10_000;

/**
 * Does not wait for an agent, which keeps the lock until its exit. An agent that starts accepts requests soon, and the caller sends
 * its request again.
 * @throws WritError as lockHost; LOCK_HELD at once, with the fact `what: 'agent'`, if an agent holds the lock
 */
export async function lockStandalone(
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
