// The one worker of a group that has no `reset`: what its loader or its probe has judged. It is confirmed by that verdict,
// so that a group of a kernel table or a file in /run counts like any other. Runs nothing itself.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { confirmed, notified, unreachable } from '../../workers/contract/answer.js';
import type { Driver } from '../../workers/contract/driver.js';

export interface HookDriver extends Driver {
  /** @param generation that the loader has taken in; undefined while it runs, and where it did not end well */
  noteLoaded(generation: number | undefined): void;
}

/** @returns undefined for a group that nobody judges */
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
