// Driver of a group without `reset`, such as one for a kernel table or a file in /run. Its one worker stands for the loader or
// the probe, and that verdict confirms it, so that the group counts like any other. Runs no command itself.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { confirmed, notified, unreachable } from '../../workers/contract/answer.js';
import type { Driver } from '../../workers/contract/driver.js';

export interface HookDriver extends Driver {
  /** @param generation that the loader loaded; undefined while it runs and after a failure */
  noteLoaded(generation: number | undefined): void;
}

/** @returns undefined for a group with neither a loader nor a probe */
export function createHookDriver({ load, probe }: WorkerGroupConfig): HookDriver | undefined {
  const worker = load === undefined ? 'probe' : 'load';
  if (load === undefined && probe === undefined) return undefined;
  let loaded: number | undefined;
  return {
    verdictClass: 'true',
    members: async () => [worker],
    reset: async (_, { target }) => {
      if (load === undefined) return notified('its probe runs');
      return loaded === target.generation
        ? confirmed('its loader accepted the generation')
        : unreachable('its loader has not run on this generation');
    },
    noteLoaded: (generation) => {
      loaded = generation;
    },
  };
}
