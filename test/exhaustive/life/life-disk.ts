// The host's disk as the agent meets it: full, read-only or broken at operations that chance chooses, and a kill, from which
// on nothing of that agent changes anything any more. Owns what fails; what is damaged on the disk itself is life-events'.
import type { FileOperation, OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { Killed } from '../../kit/disk/operation-trap.js';

export const diskFaults = ['ENOSPC', 'EROFS', 'EIO', 'EMFILE', 'EDQUOT'] as const;
export type DiskFault = (typeof diskFaults)[number];

export interface LifeDisk extends OperationObserver {
  /** From now on this happens once in so many operations. */
  fail(fault: DiskFault, onceIn: number): void;
  /** At one operation that is so far away. */
  killAfter(operations: number): void;
  /** True once it was killed. */
  isDead(): boolean;
  heal(): void;
}

/** One for each agent: a dead one stays dead. */
export function lifeDisk(random: Seeded): LifeDisk {
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
