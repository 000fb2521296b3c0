// A driver whose workers answer what a test says, and that notes what they were told.
import { WritError } from '../../../src/core/errors.js';
import type { Answer, Driver, Target, VerdictClass } from '../../../src/workers/contract/driver.js';

export interface ScriptedDriver extends Driver {
  /** `worker generation`, in the order of the tells. */
  readonly notified: string[];
  readonly announced: (Target | undefined)[];
  /** The workers that exist, with what each answers to a generation. */
  readonly workers: Map<string, (generation: number) => Answer>;
  /** The process of each worker; one that is not named here cannot be told from another. */
  readonly processes: Map<string, string>;
  /** Nobody can say who the workers are. */
  unread: string | undefined;
  /** How often somebody asked who they are. */
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
