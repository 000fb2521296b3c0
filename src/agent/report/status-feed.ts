// Sends the status to those who watch it (`writ status --watch`): at once, at each change, and now and then, so that a
// silent agent can be told from a quiet one. Owns the watchers and their bound; a slow one is sent the newest only.
import { WritError } from '../../core/errors.js';
import type { ControlAnswer, StatusReport } from '../../core/protocol/control-protocol.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import type { AgentObserver } from './observer.js';

/** Who watches: one connection of the control socket. */
export interface Watcher {
  /** Resolves when the next answer may follow: long answers wait for their reader, events do not. */
  readonly send: (answer: ControlAnswer) => Promise<void>;
  /** Aborted when the connection is gone. */
  readonly gone: AbortSignal;
}

export interface StatusFeed {
  /** Attached to the agent: what makes news, and its end. */
  readonly observer: AgentObserver;
  /**
   * Sends reports until the agent ends, with a last one then, or the watcher is gone.
   * @throws WritError AGENT_BUSY when too many watch already
   */
  watch(watcher: Watcher): Promise<void>;
}

export interface StatusFeedOptions {
  readonly clock: Clock;
  /** The report as of now. */
  readonly now: () => StatusReport;
}

/** Fewer than the connections of the socket: watchers must not keep a `writ pull` out. */
export const maxWatchers = 16;
/** Ages grow while nothing happens; a watcher gives up on an agent that is silent for much longer. */
const beatMs = 10_000;

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
      using news = joinSignals(changed.signal, gone);
      await clock.sleep(beatMs, news.signal);
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
