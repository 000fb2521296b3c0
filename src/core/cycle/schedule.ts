// The times of polls. Each host has its own phase in the interval, from its install id, and keeps it through restarts and failures:
// a million hosts that start in the same second still poll one after the other. Pure; all times are epoch milliseconds.

import { createHash } from 'node:crypto';
import { computeBackoffMs } from '../backoff.js';
import { maxRetryAfterMs } from '../limits.js';

/**
 * @param text stable and unique for the host
 * @returns the phase of the host in each interval, from 0 to below everyMs
 */
export function phaseMs(text: string, everyMs: number): number {
  const digest = createHash('sha256').update(text).digest();
  // With 48 bits, the phases of hosts are distributed evenly over intervals of up to many days.
  return digest.readUIntBE(0, 6) % everyMs;
}

interface PollOptions {
  readonly nowMs: number;
  readonly everyMs: number;
  readonly phaseMs: number;
  /** Retry-After of the server; stored, so that it remains after a restart. */
  readonly retryAfterUntilMs?: number;
}

/** @returns the next time in the phase of the host */
export function nextPollAt({ nowMs, everyMs, phaseMs }: PollOptions): number {
  const intervals = Math.floor((nowMs - phaseMs) / everyMs) + 1;
  return intervals * everyMs + phaseMs;
}

interface FirstPollOptions extends PollOptions {
  /** Time of the last successful refresh; undefined without one. */
  readonly lastSuccessMs?: number;
  readonly anythingActive: 'yes' | 'no';
}

/** @returns the time of the first poll after a start: now if nothing is active or the last success is older than an interval */
export function firstPollAt(options: FirstPollOptions): number {
  const { nowMs, everyMs, lastSuccessMs, anythingActive } = options;
  // After the clock was set back, a success appears to be in the future: it does not count as recent.
  const recent = lastSuccessMs !== undefined && lastSuccessMs <= nowMs && nowMs - lastSuccessMs <= everyMs;
  const atMs = anythingActive === 'yes' && recent ? nextPollAt(options) : nowMs;
  return notBefore(atMs, options);
}

interface DelayOptions extends PollOptions {
  /** Consecutive failures to reach the server; 0 after a success. */
  readonly failures: number;
  /** Random, from 0 to below 1, new in each call. */
  readonly random01: number;
}

const quickRetryMs = 30_000;
const maxBackoffIntervals = 4;

/**
 * @returns milliseconds until the next poll. After the first failure: one quick retry with jitter. After more failures: the phase of
 *   the host after 1, 2, 3, then 4 intervals, so that the load during an outage is not above the usual load. Never before the
 *   Retry-After.
 */
export function nextDelay(options: DelayOptions): number {
  const { nowMs, everyMs, failures, random01 } = options;
  const phase = nextPollAt(options);
  const skipped = Math.min(Math.max(failures - 2, 0), maxBackoffIntervals - 1);
  const regular = phase + skipped * everyMs;
  // From half of this time to all of it: 30 s, or a tenth of a short interval.
  const quickMs = Math.ceil((Math.min(quickRetryMs, everyMs / 10) * (1 + random01)) / 2);
  const atMs = failures === 1 ? Math.min(regular, nowMs + quickMs) : regular;
  return notBefore(atMs, options) - nowMs;
}

/** Long enough for a server with a million hosts to answer the others. A withdrawal is delayed by at most this time. */
const minQuietMs = 300_000;

/**
 * @param everyMs interval of polls; 0 if a cron expression schedules them
 * @returns the longest Retry-After that a host accepts: an attacker on the network can forge one, and delays new policy for that
 *   time
 */
export function longestQuietMs(everyMs = 0): number {
  return Math.min(Math.max(everyMs, minQuietMs), maxRetryAfterMs);
}

/** After a Retry-After the host returns to its phase, so that all delayed hosts do not poll at once. */
function notBefore(atMs: number, options: PollOptions): number {
  const { retryAfterUntilMs } = options;
  if (retryAfterUntilMs === undefined || atMs >= retryAfterUntilMs) return atMs;
  return nextPollAt({ ...options, nowMs: retryAfterUntilMs - 1 });
}

interface WaitDelayOptions {
  /** Number of attempts so far, at least 1. */
  readonly tries: number;
  /** Random, from 0 to below 1, new in each call. */
  readonly random01: number;
  /** Retry-After of the server, if it sent one. */
  readonly retryAfterMs?: number;
}

const waits = { firstMs: 5000, maxMs: 60_000 };

/**
 * The delay of a command that waits for policy and has no interval of polls.
 * @returns milliseconds until the next attempt: from 5 s, doubled up to a minute, with jitter from half to the whole of it, because
 *   a thousand containers may start in one second. Never before a Retry-After, of which at most five minutes count, as for an agent
 *   with that interval.
 */
export function waitDelayMs({ tries, random01, retryAfterMs = 0 }: WaitDelayOptions): number {
  const wholeMs = computeBackoffMs(tries, waits);
  return Math.max(Math.ceil((wholeMs * (1 + random01)) / 2), Math.min(retryAfterMs, longestQuietMs()));
}
