// Tells the service manager what the server is: ready when it listens, reloads, the end; and pings its watchdog as long as
// its event loop goes round. Never delays a request.

import { monotonicUsec, type Notifier } from '../telemetry/sd-notify.js';
import { runWatchdog } from '../telemetry/watchdog.js';
import type { Clock } from '../time/clock.js';

export interface ServerManager {
  listening(url: string): void;
  /**
   * Resolves when the manager has been told.
   * @param reload what it does; a failure is told, and thrown on
   */
  reloading(reload: () => void): Promise<void>;
  stopping(): void;
  /** Resolves when the last word is out. */
  end(): Promise<void>;
}

/** @param notifier left out when no service manager wants to hear of the server */
export function notifyManagerOfServer(
  notifier: Notifier | undefined,
  clock: Pick<Clock, 'sleep'>,
): ServerManager {
  if (notifier === undefined) return nobody;
  const ended = new AbortController();
  const watchdog = runWatchdog({ notifier, clock, works: () => true, signal: ended.signal });
  let status: `STATUS=${string}` = 'STATUS=starting';
  return {
    listening: (url) => {
      status = `STATUS=listening on ${url}`;
      void notifier.notify(['READY=1', status]);
    },
    reloading: async (reload) => {
      void notifier.notify(['RELOADING=1', `MONOTONIC_USEC=${monotonicUsec()}`]);
      try {
        reload();
        await notifier.notify(['READY=1', status]);
      } catch (error) {
        await notifier.notify(['READY=1', `${status}; the last reload failed, the old certificate stays`]);
        throw error;
      }
    },
    stopping: () => void notifier.notify(['STOPPING=1', 'STATUS=stopping, requests under way are finished']),
    end: async () => {
      ended.abort();
      await watchdog;
      await notifier.idle();
    },
  };
}

const nobody: ServerManager = {
  listening: () => undefined,
  reloading: async (reload) => reload(),
  stopping: () => undefined,
  end: () => Promise.resolve(),
};
