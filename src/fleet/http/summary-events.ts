// Streams the summary to followers: one query a second for all of them, sent where it changed, and only while the credential of the
// follower is valid. Bounds the number of followers and the length of a stream.
import type { FastifyReply } from 'fastify';
import { type ErrorCode, isWritError, WritError } from '../../core/errors.js';
import type { FleetSummary, Role } from '../../core/fleet/answers.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

export interface SummaryEvents {
  /** @throws FLEET_OVERLOADED beyond the bound */
  follow(reply: FastifyReply, who: FollowerIdentity): FastifyReply;
  close(): void;
}

export interface FollowerIdentity {
  /** Name of the caller in the audit. */
  readonly who: string;
  /** Undefined behind a proxy that names persons: the requests of all of them have its address. */
  readonly address?: string | undefined;
  readonly role: Role;
  /** @throws FLEET_TOKEN_REFUSED or a similar code from the moment at which the credential of the request is not valid any more */
  readonly again: () => Promise<unknown>;
}

export interface EventsOptions {
  readonly summary: (role: Role) => Promise<FleetSummary>;
  readonly clock: Clock;
  readonly log: Logger;
}

const maxFollowers = 200;
/** So that no credential and no address takes all streams. */
const maxOfCredential = 50;
const maxOfAddress = 100;
const everyMs = 1000;
/** Interval of a comment, so that neither a proxy nor our own bound on idle connections ends the stream. */
const beatMs = 15_000;
const followMs = 300_000;
const temporaryCodes: readonly ErrorCode[] = [
  ...(['FLEET_REFUSED_OFTEN', 'FLEET_STORE_BUSY', 'FLEET_STORE_FAILED'] as const),
  ...(['FLEET_STORE_UNREACHABLE', 'FLEET_STORE_UNWRITABLE'] as const),
];

interface Follower extends FollowerIdentity {
  readonly reply: FastifyReply;
  readonly sinceMs: number;
  lastMs: number;
  sent: string;
}

/**
 * @returns a stream without followers. It queries the summary only while a follower exists; a failed query is logged
 * and retried.
 */
export function createSummaryEvents({ summary, clock, log }: EventsOptions): SummaryEvents {
  const followers = new Set<Follower>();
  const closing = new AbortController();
  let running = false;
  const run = async (): Promise<void> => {
    running = true;
    while (followers.size > 0 && !closing.signal.aborted) {
      await sendSummaries().catch((error: unknown) =>
        log.error({ err: error }, 'no summary for its followers'),
      );
      await clock.sleep(everyMs, closing.signal);
    }
    running = false;
  };
  const sendSummaries = async (): Promise<void> => {
    for (const role of ['view', 'detail'] as const) {
      const mine = [...followers].filter((one) => (one.role === 'view') === (role === 'view'));
      if (mine.length === 0) continue;
      const now = await summary(role);
      // An answer that only became older is not sent again.
      const content = JSON.stringify({ ...now, atMs: 0, countedAtMs: 0 });
      await Promise.all(mine.map((one) => sendSummary(one, now, content)));
    }
  };
  const sendSummary = async (one: Follower, now: FleetSummary, content: string): Promise<void> => {
    const nowMs = clock.monotonicMs();
    if (nowMs - one.sinceMs > followMs) {
      one.reply.raw.end();
      return;
    }
    if (content === one.sent && nowMs - one.lastMs < beatMs) return;
    // Nothing more for a follower that does not read: at most one summary is buffered.
    if (one.reply.raw.writableLength > 0) return;
    const still = await checkCredential(one);
    if (still === 'refused') one.reply.raw.end();
    if (still !== 'good' || one.reply.raw.writableEnded) return;
    one.reply.raw.write(
      content === one.sent ? ': still the same\n\n' : `event: summary\ndata: ${JSON.stringify(now)}\n\n`,
    );
    one.sent = content;
    one.lastMs = nowMs;
  };
  return {
    follow: (reply, who) => {
      if (followers.size >= maxFollowers)
        throw new WritError('FLEET_OVERLOADED', `${maxFollowers} follow the summary already`);
      requireFollowerBounds([...followers], who);
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
function requireFollowerBounds(followers: readonly Follower[], { who, address }: FollowerIdentity): void {
  const ofCredential = followers.filter((one) => one.who === who).length;
  if (ofCredential >= maxOfCredential)
    throw new WritError('FLEET_OVERLOADED', `${maxOfCredential} follow the summary with this credential`);
  if (address === undefined) return;
  const ofAddress = followers.filter((one) => one.address === address).length;
  if (ofAddress >= maxOfAddress)
    throw new WritError('FLEET_OVERLOADED', `${maxOfAddress} follow the summary from this address`);
}

/** Called before each event: a revoked token and an ended session receive no further one. */
async function checkCredential({ again }: FollowerIdentity): Promise<'good' | 'refused' | 'unknown'> {
  try {
    await again();
    return 'good';
  } catch (error) {
    // Neither an unreachable store nor a bound that other callers used up ends a stream.
    const isAway = !isWritError(error) || temporaryCodes.includes(error.code);
    return isAway ? 'unknown' : 'refused';
  }
}
