// The disk operations of the host's agent: full, read-only or broken at operations that the seed selects. After a kill the
// agent changes nothing on the disk any more. Owns failing operations; host-events.ts damages the files themselves.
import type { FileOperation, OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { Killed } from '../../kit/disk/operation-trap.js';

export const diskFaults = ['ENOSPC', 'EROFS', 'EIO', 'EMFILE', 'EDQUOT'] as const;
export type DiskFault = (typeof diskFaults)[number];

export interface FaultyDisk extends OperationObserver {
  /** From now on `fault` fails one in `onceIn` operations. */
  fail(fault: DiskFault, onceIn: number): void;
  /** Kills the agent after so many more operations. */
  killAfter(operations: number): void;
  /** True after the kill. */
  isDead(): boolean;
  /** Ends the fault and cancels a pending kill. */
  heal(): void;
}

/** Creates the disk of one agent: each new agent needs a new one, because a kill is final. */
export function faultyDisk(random: Seeded): FaultyDisk {
  let failing: { readonly fault: DiskFault; readonly onceIn: number } | undefined;
  let killAt: number | undefined;
  let isDead = false;
  const killed = new Killed('killed');
  const reach = ({ op }: FileOperation): void => {
    if (killAt !== undefined && killAt-- <= 0) isDead = true;
    if (isDead) throw killed;
    if (failing !== undefined && random.once(failing.onceIn))
      throw Object.assign(new Error(`${failing.fault}: injected at ${op}`), { code: failing.fault });
  };
  return {
    before: reach,
    after: (operation) => {
      if (isDead || killAt !== undefined) reach(operation);
    },
    fail: (fault, onceIn) => {
      failing = { fault, onceIn };
    },
    killAfter: (operations) => {
      killAt = operations;
    },
    isDead: () => isDead,
    heal: () => {
      failing = undefined;
      killAt = undefined;
    },
  };
}
