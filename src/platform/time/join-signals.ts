// Joins several signals for a limited time. AbortSignal.any on a signal that exists as long as the agent keeps a record of each use
// (Node 20): notifications of a worker for months would fill the memory.
import { setMaxListeners } from 'node:events';

export interface JoinedSignals extends Disposable {
  /** Aborts with the reason of the first signal that aborts. */
  readonly signal: AbortSignal;
}

/** @param signals may be aborted already. @returns the joined signal; its disposal removes all listeners */
export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): JoinedSignals {
  const joined = new AbortController();
  const given = signals.filter((one) => one !== undefined);
  const removeListeners = (): void => {
    for (const one of given) one.removeEventListener('abort', end);
  };
  function end(this: AbortSignal): void {
    removeListeners();
    joined.abort(this.reason);
  }
  // Disable the leak warning of Node: sixteen watchers wait for the end of one agent, and two for each address of a server. Each
  // removes its listener.
  setMaxListeners(0, joined.signal, ...given);
  for (const one of given) one.addEventListener('abort', end);
  const first = given.find((one) => one.aborted);
  if (first !== undefined) end.call(first);
  return { signal: joined.signal, [Symbol.dispose]: removeListeners };
}
