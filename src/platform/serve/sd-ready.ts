// Notifies the service manager of the state of a server: ready when it listens, reloading, stopping. Pings its watchdog while the event
// loop runs. Never delays a request.

import { monotonicUsec, type Notifier } from '../telemetry/sd-notify.js';
import { runWatchdog } from '../telemetry/watchdog.js';
import type { Clock } from '../time/clock.js';

export interface ServerManager {
  listening(url: string): void;
  /**
   * Notifies of a reload. Resolves after the notification.
   * @param reload runs the reload; its error is reported and rethrown
   */
  reloading(reload: () => void): Promise<void>;
  stopping(): void;
  /** Resolves when the last notification is sent. */
  end(): Promise<void>;
}

/**
 * Starts the watchdog notifications for the service manager, and returns the notifications of the server's states.
 * @param notifier undefined without a service manager
 * @returns without a notifier, an object that sends nothing; its `reloading` still runs the reload. `reloading` rejects with the
 *   error of the reload, after it notified READY=1 with the failure in the status. `end` stops the watchdog. Throws nothing
 *   itself.
 */
export function notifyManagerOfServer(
  notifier: Notifier | undefined,
  clock: Pick<Clock, 'sleep'>,
): ServerManager {
  if (notifier === undefined) return noManager;
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
    stopping: () => void notifier.notify(['STOPPING=1', 'STATUS=stopping, active requests are finished']),
    end: async () => {
      ended.abort();
      await watchdog;
      await notifier.idle();
    },
  };
}

const noManager: ServerManager = {
  listening: () => undefined,
  reloading: async (reload) => reload(),
  stopping: () => undefined,
  end: () => Promise.resolve(),
};
