// Several signals as one, for a while. AbortSignal.any on a signal that lives as long as the agent keeps a trace of each
// of its uses there (Node 20): a worker that is notified for months would fill the memory.
import { setMaxListeners } from 'node:events';

export interface JoinedSignals extends Disposable {
  /** Aborts with the reason of the first of them that does. */
  readonly signal: AbortSignal;
}

/** @param signals may be aborted already. @returns their union, which lets go of all of them when it is disposed of */
export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): JoinedSignals {
  const joined = new AbortController();
  const given = signals.filter((one) => one !== undefined);
  const letGo = (): void => {
    for (const one of given) one.removeEventListener('abort', end);
  };
  function end(this: AbortSignal): void {
    letGo();
    joined.abort(this.reason);
  }
  // Sixteen watchers wait for the end of one agent, and two for each address of a server: each lets go again, so that their number is
  // no leak, and Node must not warn of one.
  setMaxListeners(0, joined.signal, ...given);
  for (const one of given) one.addEventListener('abort', end);
  const first = given.find((one) => one.aborted);
  if (first !== undefined) end.call(first);
  return { signal: joined.signal, [Symbol.dispose]: letGo };
}
