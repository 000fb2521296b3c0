// When to ask the server next. Each host has a phase of its own, made from its install id, and keeps it through
// restarts and failures: a million hosts that start in the same second still ask one after the other.
// Pure: times come in, a time goes out. Epoch milliseconds throughout.

import { createHash } from 'node:crypto';
import { computeBackoffMs } from '../backoff.js';
import { maxRetryAfterMs } from '../limits.js';

/**
 * @param text that is stable for the host, and no other host has
 * @returns the host's own offset in every interval, from 0 to below everyMs
 */
export function phaseMs(text: string, everyMs: number): number {
  const digest = createHash('sha256').update(text).digest();
  // 48 bits: the remainder is even over any interval of days to far below a host's notice.
  return digest.readUIntBE(0, 6) % everyMs;
}

interface PollOptions {
  readonly nowMs: number;
  readonly everyMs: number;
  readonly phaseMs: number;
  /** A stored Retry-After of the server; it outlives a restart. */
  readonly retryAfterUntilMs?: number;
}

/** @returns the first time after now that is at the host's phase of the interval */
export function nextPollAt({ nowMs, everyMs, phaseMs }: PollOptions): number {
  const intervals = Math.floor((nowMs - phaseMs) / everyMs) + 1;
  return intervals * everyMs + phaseMs;
}

interface FirstPollOptions extends PollOptions {
  /** The last refresh that succeeded; left out when there was none. */
  readonly lastSuccessMs?: number;
  readonly anythingActive: 'yes' | 'no';
}

/** @returns when to poll first after a start: at once if nothing is active or the last success is too old */
export function firstPollAt(options: FirstPollOptions): number {
  const { nowMs, everyMs, lastSuccessMs, anythingActive } = options;
  // A success in the future is a clock that was set back: it proves nothing about how long ago it was.
  const recent = lastSuccessMs !== undefined && lastSuccessMs <= nowMs && nowMs - lastSuccessMs <= everyMs;
  const atMs = anythingActive === 'yes' && recent ? nextPollAt(options) : nowMs;
  return notBefore(atMs, options);
}

interface DelayOptions extends PollOptions {
  /** Failures of the way to the server in a row; 0 after a success. */
  readonly failures: number;
  /** From 0 to below 1, drawn again each time. */
  readonly random01: number;
}

const quickRetryMs = 30_000;
const maxBackoffIntervals = 4;

/**
 * @returns milliseconds from now to the next poll. After the first failure one quick retry with jitter; after
 * more, the host's own phase at 1, 2, 3, then 4 intervals' distance (peak load in an outage stays that of normal
 * days). Never before a Retry-After.
 */
export function nextDelay(options: DelayOptions): number {
  const { nowMs, everyMs, failures, random01 } = options;
  const phase = nextPollAt(options);
  const skipped = Math.min(Math.max(failures - 2, 0), maxBackoffIntervals - 1);
  const regular = phase + skipped * everyMs;
  // Half to the whole of 30 s, or of a tenth of a short interval.
  const quickMs = Math.ceil((Math.min(quickRetryMs, everyMs / 10) * (1 + random01)) / 2);
  const atMs = failures === 1 ? Math.min(regular, nowMs + quickMs) : regular;
  return notBefore(atMs, options) - nowMs;
}

/** Long enough for a server with a million hosts to answer the rest; a withdrawal waits no longer than that. */
const minQuietMs = 300_000;

/**
 * @param everyMs left out where a cron expression names the times
 * @returns the longest Retry-After that counts: anyone on the line can send one, and no policy moves meanwhile
 */
export function longestQuietMs(everyMs = 0): number {
  return Math.min(Math.max(everyMs, minQuietMs), maxRetryAfterMs);
}

/** After a Retry-After has passed the host goes back to its own phase, or all who were sent away come at once. */
function notBefore(atMs: number, options: PollOptions): number {
  const { retryAfterUntilMs } = options;
  if (retryAfterUntilMs === undefined || atMs >= retryAfterUntilMs) return atMs;
  return nextPollAt({ ...options, nowMs: retryAfterUntilMs - 1 });
}

interface WaitDelayOptions {
  /** Tries so far, at least 1. */
  readonly tries: number;
  /** From 0 to below 1, drawn again each time. */
  readonly random01: number;
  /** What the server has asked for, if it did. */
  readonly retryAfterMs?: number;
}

const waits = { firstMs: 5000, maxMs: 60_000 };

/**
 * For a command that waits for policy, and knows no interval of polls.
 * @returns milliseconds to the next try: 5 s doubling to a minute, half to the whole of it (a thousand containers start in one
 *   second); never before a Retry-After, which counts for five minutes at most, as for an agent that polls as often
 */
export function waitDelayMs({ tries, random01, retryAfterMs = 0 }: WaitDelayOptions): number {
  const wholeMs = computeBackoffMs(tries, waits);
  return Math.max(Math.ceil((wholeMs * (1 + random01)) / 2), Math.min(retryAfterMs, longestQuietMs()));
}
