// The summary to whoever follows it: one look a second for all of them, sent where it changed. Owns the number of followers and
// how long one is followed, so that a revoked token is asked for again within minutes.
import type { FastifyReply } from 'fastify';
import { WritError } from '../../core/errors.js';
import type { FleetSummary, Role } from '../../core/fleet/answers.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface SummaryEvents {
  /** @throws FLEET_OVERLOADED beyond the bound */
  follow(reply: FastifyReply, role: Role): FastifyReply;
  close(): void;
}

export interface EventsOptions {
  readonly summary: (role: Role) => Promise<FleetSummary>;
  readonly clock: Clock;
  readonly log: Logger;
}

const maxFollowers = 200;
const everyMs = 1000;
/** A comment, so that proxies and our own bound on idle connections see life. */
const beatMs = 15_000;
const followMs = 300_000;

interface Follower {
  readonly reply: FastifyReply;
  readonly role: Role;
  readonly sinceMs: number;
  lastMs: number;
  sent: string;
}

export function createSummaryEvents({ summary, clock, log }: EventsOptions): SummaryEvents {
  const followers = new Set<Follower>();
  const closing = new AbortController();
  let running = false;
  const run = async (): Promise<void> => {
    running = true;
    while (followers.size > 0 && !closing.signal.aborted) {
      await look().catch((error: unknown) => log.error({ err: error }, 'no summary for its followers'));
      await clock.sleep(everyMs, closing.signal);
    }
    running = false;
  };
  const look = async (): Promise<void> => {
    for (const role of ['view', 'detail'] as const) {
      const mine = [...followers].filter((one) => (one.role === 'view') === (role === 'view'));
      if (mine.length === 0) continue;
      const now = await summary(role);
      // An age alone is no news.
      const news = JSON.stringify({ ...now, atMs: 0, countedAtMs: 0 });
      for (const one of mine) tell(one, now, news);
    }
  };
  const tell = (one: Follower, now: FleetSummary, news: string): void => {
    const nowMs = clock.monotonicMs();
    if (nowMs - one.sinceMs > followMs) {
      one.reply.raw.end();
      return;
    }
    if (news === one.sent && nowMs - one.lastMs < beatMs) return;
    // Who does not read gets nothing more until he does: what waits is one summary.
    if (one.reply.raw.writableLength > 0) return;
    one.reply.raw.write(
      news === one.sent ? ': still the same\n\n' : `event: summary\ndata: ${JSON.stringify(now)}\n\n`,
    );
    one.sent = news;
    one.lastMs = nowMs;
  };
  return {
    follow: (reply, role) => {
      if (followers.size >= maxFollowers)
        throw new WritError('FLEET_OVERLOADED', `${maxFollowers} follow the summary already`);
      const nowMs = clock.monotonicMs();
      const follower = { reply, role, sinceMs: nowMs, lastMs: nowMs, sent: '' };
      reply.hijack();
      reply.raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-accel-buffering': 'no',
      });
      reply.raw.write('retry: 2000\n\n');
      followers.add(follower);
      reply.raw.on('close', () => followers.delete(follower));
      if (!running) void run();
      return reply;
    },
    close: () => {
      closing.abort();
      for (const { reply } of followers) reply.raw.end();
    },
  };
}
