// The summary to whoever follows it: one look a second for all of them, sent where it changed, and to nobody whose credential is not
// good any more. Owns the number of followers and how long one is followed.
import type { FastifyReply } from 'fastify';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import type { FleetSummary, Role } from '../../core/fleet/answers.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface SummaryEvents {
  /** @throws FLEET_OVERLOADED beyond the bound */
  follow(reply: FastifyReply, who: FollowerOf): FastifyReply;
  close(): void;
}

export interface FollowerOf {
  /** As the audit has it. */
  readonly who: string;
  /** Undefined behind a proxy that names people: all of them come from its address. */
  readonly address?: string | undefined;
  readonly role: Role;
  /** @throws FLEET_TOKEN_REFUSED and the like, from when on the credential of the request is not good any more */
  readonly again: () => Promise<unknown>;
}

export interface EventsOptions {
  readonly summary: (role: Role) => Promise<FleetSummary>;
  readonly clock: Clock;
  readonly log: Logger;
}

const maxFollowers = 200;
/** No credential and no address keeps the others out. */
const maxOfCredential = 50;
const maxOfAddress = 100;
const everyMs = 1000;
/** A comment, so that proxies and our own bound on idle connections see life. */
const beatMs = 15_000;
const followMs = 300_000;
const awayCodes: readonly ErrorCode[] = [
  ...(['FLEET_REFUSED_OFTEN', 'FLEET_STORE_BUSY', 'FLEET_STORE_FAILED'] as const),
  ...(['FLEET_STORE_UNREACHABLE', 'FLEET_STORE_UNWRITABLE'] as const),
];

interface Follower extends FollowerOf {
  readonly reply: FastifyReply;
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
      await Promise.all(mine.map((one) => tell(one, now, news)));
    }
  };
  const tell = async (one: Follower, now: FleetSummary, news: string): Promise<void> => {
    const nowMs = clock.monotonicMs();
    if (nowMs - one.sinceMs > followMs) {
      one.reply.raw.end();
      return;
    }
    if (news === one.sent && nowMs - one.lastMs < beatMs) return;
    // Who does not read gets nothing more until he does: what waits is one summary.
    if (one.reply.raw.writableLength > 0) return;
    const still = await stillGood(one);
    if (still === 'refused') one.reply.raw.end();
    if (still !== 'good' || one.reply.raw.writableEnded) return;
    one.reply.raw.write(
      news === one.sent ? ': still the same\n\n' : `event: summary\ndata: ${JSON.stringify(now)}\n\n`,
    );
    one.sent = news;
    one.lastMs = nowMs;
  };
  return {
    follow: (reply, who) => {
      if (followers.size >= maxFollowers)
        throw new WritError('FLEET_OVERLOADED', `${maxFollowers} follow the summary already`);
      requireRoom([...followers], who);
      const nowMs = clock.monotonicMs();
      const follower = { ...who, reply, sinceMs: nowMs, lastMs: nowMs, sent: '' };
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

/** @throws WritError FLEET_OVERLOADED */
function requireRoom(followers: readonly Follower[], { who, address }: FollowerOf): void {
  const ofCredential = followers.filter((one) => one.who === who).length;
  if (ofCredential >= maxOfCredential)
    throw new WritError('FLEET_OVERLOADED', `${maxOfCredential} follow the summary with this credential`);
  if (address === undefined) return;
  const ofAddress = followers.filter((one) => one.address === address).length;
  if (ofAddress >= maxOfAddress)
    throw new WritError('FLEET_OVERLOADED', `${maxOfAddress} follow the summary from this address`);
}

/** Asked before each word: a token that was revoked, or a session that ended, hears nothing more. */
async function stillGood({ again }: FollowerOf): Promise<'good' | 'refused' | 'unknown'> {
  try {
    await again();
    return 'good';
  } catch (error) {
    // A store that is away, or a bound that others have used up, ends nobody.
    const isAway = !isWritError(error) || awayCodes.includes(error.code);
    return isAway ? 'unknown' : 'refused';
  }
}
