// A driver with workers that answer as a test defines. It records notifications.
import { WritError } from '../../../src/core/errors.js';
import type { Answer, Driver, Target, VerdictClass } from '../../../src/workers/contract/driver.js';

export interface ScriptedDriver extends Driver {
  /** `worker generation`, in the order of the notifications. */
  readonly notified: string[];
  readonly announced: (Target | undefined)[];
  /** The existing workers, with the answer of each to a generation. */
  readonly workers: Map<string, (generation: number) => Answer>;
  /** The process of each worker; the identity of a missing one is unknown. */
  readonly processes: Map<string, string>;
  /** Text of the error that a read of the members throws; undefined: the read succeeds. */
  unread: string | undefined;
  /** Number of reads of the members. */
  reads: number;
}

export const confirms = (generation: number): Answer => ({ kind: 'confirmed', text: `uses ${generation}` });
export const refuses = (text: string) => (): Answer => ({ kind: 'refused', text });
export const unreachable = (): Answer => ({ kind: 'unreachable', text: 'ECONNREFUSED' });

/** @param workers the answer of each worker to a generation, by its name */
export function scriptedDriver(
  workers: Record<string, (generation: number) => Answer>,
  verdictClass: VerdictClass = 'true',
): ScriptedDriver {
  const known = new Map(Object.entries(workers));
  const notified: string[] = [];
  const announced: (Target | undefined)[] = [];
  const processes = new Map<string, string>();
  const driver: ScriptedDriver = {
    verdictClass,
    notified,
    announced,
    workers: known,
    processes,
    unread: undefined,
    reads: 0,
    members: async () => {
      driver.reads += 1;
      if (driver.unread !== undefined) throw new WritError('WORKER_UNREACHABLE', driver.unread);
      return [...known.keys()].sort();
    },
    identity: async (worker) => processes.get(worker),
    reset: async (worker, { target }) => {
      notified.push(`${worker} ${target.generation}`);
      return known.get(worker)?.(target.generation) ?? { kind: 'unreachable', text: 'gone' };
    },
    activeChanged: (target) => announced.push(target),
  };
  return driver;
}
