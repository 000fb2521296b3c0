// Chooses the worker among the processes that have a listening socket open. Pure.

export interface HoldingProcess {
  readonly pid: number;
  /** Pids of its ancestors, the parent first. */
  readonly ancestors: readonly number[];
}

export type ChosenHolder =
  | { readonly kind: 'chosen'; readonly pid: number }
  | { readonly kind: 'unknown'; readonly reason: string; readonly hint: string };

const maxNamed = 5;
const initPid = 1;

/**
 * Chooses the master, because a master and its children share the socket. Refuses to choose if no process is an ancestor of all
 * others.
 * @param holders at least one, each process once
 */
export function chooseHolder(holders: readonly HoldingProcess[]): ChosenHolder {
  if (holders.some(({ pid }) => pid === initPid))
    return {
      kind: 'unknown',
      reason: 'process 1 has its socket, and passes it to the worker when a connection comes',
      hint: 'give `process.unit`',
    };
  const chosen = holders.find(({ pid }) =>
    holders.every((other) => other.pid === pid || other.ancestors.includes(pid)),
  );
  if (chosen !== undefined) return { kind: 'chosen', pid: chosen.pid };
  const pids = holders.slice(0, maxNamed).map(({ pid }) => pid);
  const others = holders.length > maxNamed ? ', ...' : '';
  return {
    kind: 'unknown',
    reason: `processes ${pids.join(', ')}${others} have its socket, and none of them started all the others`,
    hint: 'give `process.unit` or `process.pidFile`',
  };
}
