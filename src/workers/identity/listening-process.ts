// Finds the process that listens at the address of a worker: one walk over all processes, then a check of the result. Never chooses one
// of several unrelated processes.
import { lstatSync } from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import {
  findListeningSockets,
  isLocalPlace,
  type ListenPlace,
} from '../../platform/process/listening-sockets.js';
import { runsProgram } from '../../platform/process/process-details.js';
import { ancestorsOf } from '../../platform/process/processes.js';
import {
  findSocketHolders,
  isHeld,
  type SocketHolder,
  type SocketHolders,
} from '../../platform/process/socket-holders.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Daemon } from '../contract/driver.js';
import { chooseHolder } from './listening-rules.js';

/** A process with the listening socket, and the file of a Unix socket, because another process may bind the path later. */
export interface KeptHolder extends SocketHolder {
  readonly place: ListenPlace;
  readonly socketFile: string | undefined;
}

export type ListeningDaemon =
  | Exclude<Daemon, { kind: 'found' }>
  | { readonly kind: 'found'; readonly holder: KeptHolder };

/** @returns whether the same process still listens there */
export function stillListens({ place, socketFile, ...holder }: KeptHolder): boolean {
  return isHeld(holder) && socketFileOf(place) === socketFile;
}

/**
 * @param program name or path of the program that the process must run; undefined: any
 * @returns kind found, with the process; dead, if no process listens at a place of this host; unknown, with the reason, if the
 *   place can be of another host or several processes fit. Does not throw for these
 */
export async function findListener(
  place: ListenPlace,
  program: string | undefined,
  clock: Pick<Clock, 'monotonicMs'>,
): Promise<ListeningDaemon> {
  const where = 'path' in place ? place.path : `${place.host}:${place.port}`;
  const socketFile = socketFileOf(place);
  const inodes = new Set(findListeningSockets(place));
  if (inodes.size === 0 && !isLocalPlace(place))
    return { kind: 'unknown', reason: `${where}: no process of this host listens there` };
  if (inodes.size === 0) return { kind: 'dead', reason: `${where}: no process listens there` };
  const found = await findSocketHolders(inodes, clock);
  const chosen = choose(found, program);
  if (chosen.kind === 'unknown') return { ...chosen, reason: `${where}: ${chosen.reason}` };
  return { kind: 'found', holder: { ...chosen.holder, place, socketFile } };
}

type Choice =
  | { readonly kind: 'found'; readonly holder: SocketHolder }
  | { readonly kind: 'unknown'; readonly reason: string; readonly hint: string };

function choose({ holders, isComplete }: SocketHolders, program: string | undefined): Choice {
  const matching =
    program === undefined ? holders : holders.filter(({ process }) => runsProgram(process.pid, program));
  const byPid = new Map(matching.map((one) => [one.process.pid, one]));
  if (byPid.size === 0) {
    const hint = 'give `process.unit` or `process.pidFile`';
    if (holders.length > 0)
      return { kind: 'unknown', reason: `the process that has its socket does not run ${program}`, hint };
    const reason = isComplete
      ? 'no process has its socket'
      : 'the process that has its socket cannot be seen';
    return { kind: 'unknown', reason, hint };
  }
  const chosen = chooseHolder([...byPid.keys()].map((pid) => ({ pid, ancestors: ancestorsOf(pid) })));
  if (chosen.kind === 'unknown') return chosen;
  const holder = byPid.get(chosen.pid);
  return holder === undefined
    ? { kind: 'unknown', reason: 'its process ended during the search', hint: 'ask again' }
    : { kind: 'found', holder };
}

/** Identifies the file of a socket. No program writes into it, so its mtime is the time of its creation. */
function socketFileOf(place: ListenPlace): string | undefined {
  if (!('path' in place)) return undefined;
  try {
    const { dev, ino, mtimeMs } = lstatSync(place.path);
    return `${dev}:${ino}@${mtimeMs}`;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
