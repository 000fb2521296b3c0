// Sends status reports to the connections of `writ status --watch`: at once, at each change, and every 10 s as a keepalive, so that a
// watcher can detect an agent that hangs. Bounds the number of watchers; a slow watcher gets only the newest report.
import { WritError } from '../../core/errors.js';
import type { ControlAnswer, StatusReport } from '../../core/protocol/control-protocol.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { AgentObserver } from './observer.js';

/** One connection of the control socket that watches the status. */
export interface Watcher {
  /** Resolves when the connection accepts the next answer. */
  readonly send: (answer: ControlAnswer) => Promise<void>;
  /** Aborted when the connection closes. */
  readonly gone: AbortSignal;
}

export interface StatusFeed {
  /** Attached to the agent; wakes the watchers at a change and at shutdown. */
  readonly observer: AgentObserver;
  /**
   * Sends reports until the connection closes or the agent shuts down; a shutdown sends a last report.
   * @throws WritError AGENT_BUSY with 16 watchers already
   */
  watch(watcher: Watcher): Promise<void>;
}

export interface StatusFeedOptions {
  readonly clock: Clock;
  /** @returns the current report. */
  readonly now: () => StatusReport;
}

/** Less than the limit of connections of the socket, so that watchers cannot block a `writ pull`. */
export const maxWatchers = 16;
/** Sent without a change too, because ages grow. A watcher times out after a multiple of this. */
const beatMs = 10_000;

/** @returns a feed without watchers, which takes at most 16 */
export function createStatusFeed({ clock, now }: StatusFeedOptions): StatusFeed {
  let version = 0;
  let isOver = false;
  let changed = new AbortController();
  const watchers = new Set<Watcher>();
  const wake = (): void => {
    version += 1;
    const before = changed;
    changed = new AbortController();
    before.abort();
  };
  const feed = async ({ send, gone }: Watcher): Promise<void> => {
    while (!gone.aborted) {
      const sent = version;
      const isLast = isOver;
      await send(now());
      if (isLast) return;
      if (sent !== version) continue;
      using changeOrEnd = joinSignals(changed.signal, gone);
      await clock.sleep(beatMs, changeOrEnd.signal);
    }
  };
  return {
    observer: {
      onStatus: wake,
      onState: (state) => {
        if (state !== 'shutdown') return;
        isOver = true;
        wake();
      },
    },
    watch: async (watcher) => {
      if (watchers.size >= maxWatchers) {
        throw new WritError('AGENT_BUSY', `this agent already has ${maxWatchers} watchers`, {
          facts: { expected: maxWatchers },
        });
      }
      watchers.add(watcher);
      try {
        await feed(watcher);
      } finally {
        watchers.delete(watcher);
      }
    },
  };
}
