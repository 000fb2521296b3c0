// Durable file layers that record their operations, or fail at one operation.
import * as fs from 'node:fs';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';

interface Observed {
  readonly disk: DurableFs;
  /** `before swap.link:rename`, in order. */
  readonly calls: string[];
}

/** @returns a durable file layer that records its operations */
export function observed(): Observed {
  const calls: string[] = [];
  const disk = createDurableFs({
    before: ({ op }) => calls.push(`before ${op}`),
    after: ({ op }) => calls.push(`after ${op}`),
  });
  return { disk, calls };
}

type Side = 'before' | 'after';

/** @returns a durable file layer on which one operation fails with an error of the kernel */
export function failing(op: string, side: Side = 'before', errno = 'EIO'): DurableFs {
  const fail = (operation: { op: string }): void => {
    if (operation.op === op) throw Object.assign(new Error(`${errno}: injected`), { code: errno });
  };
  return createDurableFs({ [side]: fail });
}

/** @returns the permission bits of the file, or of the link itself */
export function modeOf(path: string): number {
  return fs.lstatSync(path).mode & 0o7777;
}
