// The faults of the crash matrix: an observer that records every labelled operation of a process, and kills the process or
// fails the operation at one of them. matrix-case.ts owns what must hold afterwards.
import type { FileOperation, OperationObserver } from '../../../src/platform/disk/durable-fs.js';

/** The n-th operation (from 1) of a process with this label. */
export interface Moment {
  readonly label: string;
  readonly nth: number;
}

export const errnos = ['EIO', 'ENOSPC', 'EROFS', 'EMFILE'] as const;
export type Errno = (typeof errnos)[number];

export type Fault =
  /** The process does nothing more, not even cleanup. */
  | { readonly kind: 'killed'; readonly when: 'before' | 'after' }
  /** `for good`: every later operation fails too. */
  | { readonly kind: 'fails'; readonly errno: Errno; readonly how: 'once' | 'for good' }
  /** The operation takes effect and reports a failure, such as a flush that fails after a rename. */
  | { readonly kind: 'fails though done'; readonly errno: Errno };

/** Every fault of the complete matrix; it applies each at each moment. */
export const faults: readonly Fault[] = [
  { kind: 'killed', when: 'before' },
  { kind: 'killed', when: 'after' },
  ...errnos.map((errno): Fault => ({ kind: 'fails', errno, how: 'once' })),
  ...errnos.map((errno): Fault => ({ kind: 'fails', errno, how: 'for good' })),
  { kind: 'fails though done', errno: 'EIO' },
];

export function faultName(fault: Fault): string {
  switch (fault.kind) {
    case 'killed':
      return `killed ${fault.when}`;
    case 'fails':
      return `${fault.errno} ${fault.how}`;
    case 'fails though done':
      return `${fault.errno} though done`;
  }
}

/** Thrown instead of a kill. No disk error, so that no code handles it as one. */
class Killed extends Error {}

export interface Armed extends Moment {
  readonly fault: Fault;
}

export interface Watch extends OperationObserver {
  /** Every moment so far, in order. */
  readonly seen: readonly Moment[];
  /** Whether the operation of the fault was reached. */
  isFired(one: Armed): boolean;
  isDead(): boolean;
  /** @throws Killed after the kill, for actions other than disk operations: a dead process notifies no worker */
  requireAlive(): void;
}

/**
 * Observes one process.
 * @param armed its faults; empty to record only. Later faults count the operations that earlier faults cause.
 */
export function watch(armed: readonly Armed[] = []): Watch {
  const seen: Moment[] = [];
  const counts = new Map<string, number>();
  const left = new Set(armed);
  const running = new Map<string, Armed>();
  let dead = false;
  let broken: Errno | undefined;
  const requireAlive = (): void => {
    if (dead) throw new Killed('killed');
  };
  const due = ({ op }: FileOperation, nth: number): Armed | undefined =>
    [...left].find((one) => one.label === op && one.nth === nth);
  const strike = (one: Armed, operation: FileOperation): void => {
    left.delete(one);
    running.delete(keyOf(operation));
    if (one.fault.kind === 'killed') dead = true;
    requireAlive();
    if (one.fault.kind === 'killed') return;
    if (one.fault.kind === 'fails' && one.fault.how === 'for good') broken = one.fault.errno;
    throw diskFailure(one.fault.errno, operation);
  };
  return {
    seen,
    isFired: (one) => !left.has(one),
    isDead: () => dead,
    requireAlive,
    before: (operation) => {
      requireAlive();
      const nth = (counts.get(operation.op) ?? 0) + 1;
      counts.set(operation.op, nth);
      seen.push({ label: operation.op, nth });
      if (broken !== undefined) throw diskFailure(broken, operation);
      const one = due(operation, nth);
      if (one === undefined) return;
      if (isBehind(one.fault)) running.set(keyOf(operation), one);
      else strike(one, operation);
    },
    after: (operation) => {
      requireAlive();
      const one = running.get(keyOf(operation));
      if (one !== undefined) strike(one, operation);
    },
  };
}

function isBehind(fault: Fault): boolean {
  return fault.kind === 'fails though done' || (fault.kind === 'killed' && fault.when === 'after');
}

function keyOf({ op, path }: FileOperation): string {
  return `${op} ${path}`;
}

function diskFailure(errno: Errno, { op, path }: FileOperation): Error {
  return Object.assign(new Error(`${errno}: made by a test, ${op} '${path}'`), { code: errno });
}
