// A scripted driver with liveness and restart. A test can let workers die at a generation.
import type { Answer } from '../../../src/workers/contract/driver.js';
import { type ScriptedDriver, scriptedDriver } from './scripted-driver.js';

export interface LivingDriver extends ScriptedDriver {
  /** Dead workers. A restart removes a worker, unless its answer adds it again. */
  readonly dead: Set<string>;
}

export interface LivingOptions {
  readonly verdictClass?: 'true' | 'early' | 'silent';
  /** Answer to a restart; `notified` by default. */
  readonly restarts?: (worker: string, generation: number) => Answer;
}

export const notified = (): Answer => ({ kind: 'notified', text: 'signalled' });

/**
 * A dead worker is unreachable.
 * @param workers the answer of each worker to a generation, by its name
 * @returns a driver; its `notified` records a restart as `restart WORKER GENERATION`
 */
export function livingDriver(
  workers: Record<string, (generation: number) => Answer>,
  { verdictClass = 'true', restarts = notified }: LivingOptions = {},
): LivingDriver {
  const base = scriptedDriver(workers, verdictClass);
  const dead = new Set<string>();
  return Object.assign(base, {
    dead,
    liveness: async (worker: string) => (dead.has(worker) ? ('dead' as const) : ('alive' as const)),
    reset: async (worker: string, { target }: { target: { generation: number } }): Promise<Answer> => {
      base.notified.push(`${worker} ${target.generation}`);
      if (dead.has(worker)) return { kind: 'unreachable', text: 'ECONNREFUSED' };
      return base.workers.get(worker)?.(target.generation) ?? { kind: 'unreachable', text: 'gone' };
    },
    restart: async (worker: string, { target }: { target: { generation: number } }): Promise<Answer> => {
      base.notified.push(`restart ${worker} ${target.generation}`);
      dead.delete(worker);
      return restarts(worker, target.generation);
    },
  });
}
