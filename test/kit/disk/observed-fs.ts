// Durable layers that a test watches, or that fail at one operation: what the tests of the layer itself start from.
import * as fs from 'node:fs';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';

interface Observed {
  readonly disk: DurableFs;
  /** `before swap.link:rename`, in order. */
  readonly calls: string[];
}

/** A durable file layer that writes down its operations. */
export function observed(): Observed {
  const calls: string[] = [];
  const disk = createDurableFs({
    before: ({ op }) => calls.push(`before ${op}`),
    after: ({ op }) => calls.push(`after ${op}`),
  });
  return { disk, calls };
}

type Side = 'before' | 'after';

/** A durable file layer on which one operation fails as the kernel would make it fail. */
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
