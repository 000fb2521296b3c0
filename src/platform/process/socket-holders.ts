// Finds the processes that have a socket open, by a walk over /proc. Bounded in descriptors and time, with pauses for the event
// loop. The caller decides which of several processes serves.
import { type Clock, yieldToEventLoop } from '../time/clock.js';
import { listPids, listProcNames, readProcLink } from './proc-files.js';
import { findProcess, type ProcessInfo } from './processes.js';

export interface SocketHolder {
  readonly process: ProcessInfo;
  /** Link in /proc that leads to the socket while the process has it open. */
  readonly link: string;
  readonly inode: string;
}

export interface SocketHolders {
  readonly holders: readonly SocketHolder[];
  /** False if a limit ended the walk, or if this user may not see all processes. */
  readonly isComplete: boolean;
}

const maxDescriptors = 500_000;
const maxWalkMs = 3000;
const maxHolders = 1024;
const sliceMs = 2;

/** @returns the processes that have one of these sockets open, each process once for each socket */
export async function findSocketHolders(
  inodes: ReadonlySet<string>,
  clock: Pick<Clock, 'monotonicMs'>,
): Promise<SocketHolders> {
  const holders: SocketHolder[] = [];
  const endMs = clock.monotonicMs() + maxWalkMs;
  let sliceEndMs = clock.monotonicMs() + sliceMs;
  let seen = 0;
  let isComplete = true;
  for (const pid of listPids('/proc')) {
    if (clock.monotonicMs() > sliceEndMs) {
      await yieldToEventLoop();
      sliceEndMs = clock.monotonicMs() + sliceMs;
    }
    const { names, why } = listProcNames(`/proc/${pid}/fd`);
    seen += names.length;
    if (why === 'denied') isComplete = false;
    holders.push(...holdersIn(pid, names, inodes));
    if (seen > maxDescriptors || holders.length > maxHolders || clock.monotonicMs() > endMs)
      return { holders, isComplete: false };
  }
  return { holders, isComplete };
}

function holdersIn(pid: number, names: readonly string[], inodes: ReadonlySet<string>): SocketHolder[] {
  // Read the process before its descriptors: a later process with the same pid has another start time.
  let process: ProcessInfo | undefined;
  const found = new Map<string, SocketHolder>();
  for (const name of names) {
    const link = `/proc/${pid}/fd/${name}`;
    const inode = inodeAt(link);
    if (inode === undefined || !inodes.has(inode) || found.has(inode)) continue;
    process ??= findProcess(pid);
    if (process !== undefined) found.set(inode, { process, link, inode });
  }
  return [...found.values()].filter(isHeld);
}

/** @returns true if the same process still has the socket open */
export function isHeld({ process: { pid, startTicks }, link, inode }: SocketHolder): boolean {
  return findProcess(pid)?.startTicks === startTicks && inodeAt(link) === inode;
}

function inodeAt(link: string): string | undefined {
  return /^socket:\[(\d+)\]$/.exec(readProcLink(link).text ?? '')?.[1];
}
