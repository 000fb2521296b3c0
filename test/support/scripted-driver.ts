// A driver whose workers answer what a test says, and that notes what they were told.
import type { Answer, Driver, Target, VerdictClass } from '../../src/workers/driver.js';

export interface ScriptedDriver extends Driver {
  /** `worker generation`, in the order of the tells. */
  readonly told: string[];
  readonly announced: (Target | undefined)[];
  /** The workers that exist, with what each answers to a generation. */
  readonly workers: Map<string, (generation: number) => Answer>;
}

export const confirms = (generation: number): Answer => ({ kind: 'confirmed', text: `uses ${generation}` });
export const refuses = (text: string) => (): Answer => ({ kind: 'refused', text });
export const unreachable = (): Answer => ({ kind: 'unreachable', text: 'ECONNREFUSED' });

export function scriptedDriver(
  workers: Record<string, (generation: number) => Answer>,
  verdictClass: VerdictClass = 'true',
): ScriptedDriver {
  const known = new Map(Object.entries(workers));
  const told: string[] = [];
  const announced: (Target | undefined)[] = [];
  return {
    verdictClass,
    told,
    announced,
    workers: known,
    members: async () => [...known.keys()].sort(),
    reset: async (worker, { target }) => {
      told.push(`${worker} ${target.generation}`);
      return known.get(worker)?.(target.generation) ?? { kind: 'unreachable', text: 'gone' };
    },
    activeChanged: (target) => announced.push(target),
  };
}
