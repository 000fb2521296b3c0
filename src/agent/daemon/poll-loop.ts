// When the agent polls by itself: at its phase of the interval, or by a cron expression; later after failures,
// never before a Retry-After. Owns the waiting; what a poll does is the caller's.
import { createTask } from 'node-cron';
import type { PollConfig } from '../../core/config/config.js';
import { firstPollAt, nextDelay, phaseMs } from '../../core/cycle/schedule.js';
import { WritError } from '../../core/errors.js';
import { maxRetryAfterMs } from '../../core/limits.js';
import type { Clock } from '../../platform/time/clock.js';

type CronPoll = Extract<PollConfig, { kind: 'cron' }>;

export interface PollLoopOptions {
  readonly poll: PollConfig;
  readonly hostId: string;
  readonly clock: Clock;
  readonly random01: () => number;
  /** Epoch milliseconds of the next time that the expression names, later than `afterMs`. */
  readonly nextCronTime: (poll: CronPoll, afterMs: number) => number;
  /** Epoch milliseconds of a stored Retry-After. */
  readonly retryAfterUntilMs: () => number | undefined;
  readonly lastSuccessMs?: number;
  readonly anythingActive: 'yes' | 'no';
  /** One poll. @returns whether the server was reached */
  readonly onPoll: () => Promise<'reached' | 'failed'>;
  readonly onScheduled: (atMs: number) => void;
}

/** Polls until the signal aborts. */
export async function runPollLoop(options: PollLoopOptions, signal: AbortSignal): Promise<void> {
  const { poll, clock } = options;
  let atMs = firstTime(options);
  let failures = 0;
  while (!signal.aborted) {
    options.onScheduled(atMs);
    await clock.sleep(Math.max(atMs - clock.nowMs(), 0), signal);
    if (signal.aborted) return;
    failures = (await options.onPoll()) === 'reached' ? 0 : failures + 1;
    atMs =
      poll.kind === 'cron'
        ? nextCronTime(poll, options, atMs)
        : clock.nowMs() + delayOf(options, poll.everyMs, failures);
  }
}

function firstTime(options: PollLoopOptions): number {
  const { poll, clock, hostId, lastSuccessMs, anythingActive } = options;
  const retryAfterUntilMs = quietUntil(options);
  const nowMs = clock.nowMs();
  if (poll.kind === 'cron')
    return anythingActive === 'no' ? notBefore(nowMs, options) : nextCronTime(poll, options, nowMs);
  return firstPollAt({
    nowMs,
    everyMs: poll.everyMs,
    phaseMs: phaseMs(hostId, poll.everyMs),
    anythingActive,
    ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
    ...(retryAfterUntilMs === undefined ? {} : { retryAfterUntilMs }),
  });
}

function delayOf(options: PollLoopOptions, everyMs: number, failures: number): number {
  const retryAfterUntilMs = quietUntil(options);
  return nextDelay({
    nowMs: options.clock.nowMs(),
    everyMs,
    phaseMs: phaseMs(options.hostId, everyMs),
    failures,
    random01: options.random01(),
    ...(retryAfterUntilMs === undefined ? {} : { retryAfterUntilMs }),
  });
}

function nextCronTime(poll: CronPoll, options: PollLoopOptions, afterMs: number): number {
  return notBefore(options.nextCronTime(poll, afterMs), options);
}

function notBefore(atMs: number, options: PollLoopOptions): number {
  return Math.max(atMs, quietUntil(options) ?? 0);
}

/**
 * @returns the stored Retry-After. One that is further ahead than any that is ever heard was stored by a clock that has
 *   been set back since: a host that booted in 2036 for a minute must not be silent until then
 */
function quietUntil({ retryAfterUntilMs, clock }: PollLoopOptions): number | undefined {
  const untilMs = retryAfterUntilMs();
  return untilMs === undefined || untilMs > clock.nowMs() + maxRetryAfterMs ? undefined : untilMs;
}

/** node-cron's own answer; it asks the system's clock, so a test of the loop brings its own function. */
export function cronTimeAfterNow(poll: CronPoll, afterMs: number): number {
  const options = poll.timeZone === undefined ? {} : { timezone: poll.timeZone };
  const task = createTask(poll.expression, () => undefined, options);
  // A timer may fire a little before its time: then the next time is the one that this poll was for. When no
  // time is later, the clock was set back, and the poll comes by the new time.
  const times = task.getNextRuns(2);
  const next = times.find((one) => one.getTime() > afterMs) ?? times.at(-1);
  void task.destroy();
  if (next === undefined) throw new WritError('CONFIG_INVALID', `poll.cron ${poll.expression} never comes`);
  return next.getTime();
}
