// A kill in this process, at a chosen operation of the durable layer: from there on every operation throws the same
// object, so that nothing of what was running can still change the disk, as little as a dead process can.
import type { FileOperation, OperationObserver } from '../../../src/platform/disk/durable-fs.js';

/** Thrown in place of a kill: no error of the disk, so that nobody handles it as one. */
export class Killed extends Error {}

export interface OperationTrap extends OperationObserver {
  /** Labels of the operations that began, in their order. */
  readonly seen: string[];
  /** Kills before or after the operation with this index. */
  arm(index: number, when: 'before' | 'after'): void;
  /** True when the kill has come. */
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
