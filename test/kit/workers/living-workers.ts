// A scripted driver that sees who lives and can restart: workers die of a generation when a test says so.
import type { Answer } from '../../../src/workers/contract/driver.js';
import { type ScriptedDriver, scriptedDriver } from './scripted-driver.js';

export interface LivingDriver extends ScriptedDriver {
  /** Who is dead just now; a restart takes it out, unless its answer puts it back. */
  readonly dead: Set<string>;
}

export interface LivingOptions {
  readonly verdictClass?: 'true' | 'early' | 'silent';
  /** What a worker that was restarted answers; `told` by default. */
  readonly restarts?: (worker: string, generation: number) => Answer;
}

export const notified = (): Answer => ({ kind: 'notified', text: 'signalled' });

/** `told` has a restart as `restart WORKER GENERATION`. A dead worker cannot be reached. */
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
