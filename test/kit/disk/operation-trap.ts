// A simulated kill at a chosen operation of the durable layer: each later operation throws the same object, so that running
// code cannot change the disk, as after a real kill.
import type { FileOperation, OperationObserver } from '../../../src/platform/disk/durable-fs.js';

/** Thrown instead of a real kill. It is no error of the disk, so that no code handles it as one. */
export class Killed extends Error {}

export interface OperationTrap extends OperationObserver {
  /** Labels of the begun operations, in order. */
  readonly seen: string[];
  /** Kills before or after the operation with this index, from 0. */
  arm(index: number, when: 'before' | 'after'): void;
  /** Whether the kill has happened. */
  isSprung(): boolean;
}

/** @example const trap = operationTrap(); trap.arm(3, 'after'); startHost(test.reopen({ observer: trap }), options) */
export function operationTrap(): OperationTrap {
  const seen: string[] = [];
  const killed = new Killed('killed');
  let armed: { readonly index: number; readonly when: 'before' | 'after' } | undefined;
  let sprung = false;
  const reach = (when: 'before' | 'after', index: number): void => {
    if (armed !== undefined && armed.index === index && armed.when === when) sprung = true;
    if (sprung) throw killed;
  };
  return {
    seen,
    arm: (index, when) => {
      armed = { index, when };
    },
    isSprung: () => sprung,
    before: ({ op }: FileOperation) => {
      if (sprung) throw killed;
      seen.push(op);
      reach('before', seen.length - 1);
    },
    after: () => reach('after', seen.length - 1),
  };
}
