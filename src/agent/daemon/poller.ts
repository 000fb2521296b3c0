// Schedules the polls of the agent: at its phase of the interval, or by a cron expression; later after failures, and never before a
// Retry-After. A new configuration restarts the loop. The caller executes the polls.
import { createTask } from '#node-cron';
import type { PollConfig } from '../../core/config/config.js';
import { firstPollAt, longestQuietMs, nextDelay, phaseMs, waitDelayMs } from '../../core/cycle/schedule.js';
import { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { type CycleRunner, pullUnlessStopping } from '../cycle/cycle-runner.js';
import { type ContactKeeper, isUnreached } from '../freshness/contact-memory.js';
import { readActiveReleases } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';

export interface PollerOptions extends Pick<PollLoopOptions, 'random01'> {
  /** Called at each start of the loop, because a reload may have replaced the host. */
  readonly host: () => Host;
  /** Determines the phase of this host in the interval. */
  readonly installId: string;
  readonly contact: ContactKeeper;
  readonly stop: AbortSignal;
}

export interface Poller {
  /** Polls until the stop request; the first poll has the trigger `start`. */
  run(runner: Pick<CycleRunner, 'pull'>): Promise<void>;
  /** Epoch milliseconds; undefined before the first poll is scheduled, and while a poll waits or runs. */
  nextAtMs(): number | undefined;
  /** Schedules by the new configuration. */
  reloaded(): void;
  /** Schedules again if the server answered before the end of its Retry-After. */
  onCycleEnd(): void;
}

/** @returns a poller that schedules nothing before `run` */
export function createPoller({ host, installId, contact, random01, stop }: PollerOptions): Poller {
  let polling = new AbortController();
  let nextAtMs: number | undefined;
  let isPutOff = false;
  const retryAfterUntilMs = (): number | undefined => host().ledger.read().retryAfterUntilMs;
  return {
    run: async (runner) => {
      let trigger: 'start' | 'poll' = 'start';
      const onPoll = async (): Promise<'reached' | 'failed'> => {
        nextAtMs = undefined;
        isPutOff = false;
        const result = await pullUnlessStopping(runner, trigger);
        trigger = 'poll';
        return result === undefined || isUnreached(result) ? 'failed' : 'reached';
      };
      while (!stop.aborted) {
        polling = new AbortController();
        const { config, clock, paths } = host();
        using ending = joinSignals(stop, polling.signal);
        await runPollLoop(
          {
            ...{ poll: config.poll, installId, clock, random01, onPoll },
            nextCronTime: cronTimeAfterNow,
            retryAfterUntilMs,
            lastSuccessMs: contact.read().contact.verifiedAtMs,
            isAnythingActive: () => isAnythingActive(paths),
            onScheduled: (atMs) => {
              nextAtMs = atMs;
              isPutOff = retryAfterUntilMs() !== undefined;
            },
          },
          ending.signal,
        );
      }
    },
    nextAtMs: () => nextAtMs,
    reloaded: () => polling.abort(),
    onCycleEnd: () => {
      if (isPutOff && retryAfterUntilMs() === undefined) polling.abort();
    },
  };
}

function isAnythingActive(paths: Host['paths']): boolean {
  try {
    return readActiveReleases(paths)?.errors.length === 0;
  } catch (error) {
    // A policy that cannot be read counts as not active, so that a cycle replaces it at once.
    if (error instanceof Error) return false;
    throw error;
  }
}

type CronPoll = Extract<PollConfig, { kind: 'cron' }>;

export interface PollLoopOptions {
  readonly poll: PollConfig;
  readonly installId: string;
  readonly clock: Clock;
  readonly random01: () => number;
  /** Returns the next time of the expression after `afterMs`, in epoch milliseconds. */
  readonly nextCronTime: (poll: CronPoll, afterMs: number) => number;
  /** Returns the end of a stored Retry-After, in epoch milliseconds; undefined for none. */
  readonly retryAfterUntilMs: () => number | undefined;
  readonly lastSuccessMs?: number | undefined;
  readonly isAnythingActive: () => boolean;
  /** Runs one poll. */
  readonly onPoll: () => Promise<'reached' | 'failed'>;
  readonly onScheduled: (atMs: number) => void;
}

/** Polls until the signal aborts. */
export async function runPollLoop(options: PollLoopOptions, signal: AbortSignal): Promise<void> {
  const { clock } = options;
  let atMs = firstTime(options);
  let failures = 0;
  while (!signal.aborted) {
    options.onScheduled(atMs);
    const end = await sleepUntil(atMs, clock, signal);
    if (signal.aborted) return;
    if (end === 'clock-set') {
      // Poll soon: a certificate that was not valid at the old time may be valid now.
      atMs = notBefore(clock.nowMs(), options);
      continue;
    }
    failures = (await options.onPoll()) === 'reached' ? 0 : failures + 1;
    atMs = timeAfterPoll(options, { failures, polledForMs: atMs });
  }
}

const maxSleepMs = 60_000;
/** The least step that counts as a set clock. Slewing changes a clock by far less in a minute. */
const minStepMs = 30_000;

/**
 * Compares wall time with monotonic time every minute, because a sleep does not become shorter when the clock is set or the machine
 * is suspended.
 */
async function sleepUntil(atMs: number, clock: Clock, signal: AbortSignal): Promise<'due' | 'clock-set'> {
  let leftMs: number;
  do {
    const [wallMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()];
    await clock.sleep(Math.min(Math.max(atMs - wallMs, 0), maxSleepMs), signal);
    const stepMs = clock.nowMs() - wallMs - (clock.monotonicMs() - monotonicMs);
    if (Math.abs(stepMs) >= minStepMs) return 'clock-set';
    leftMs = atMs - clock.nowMs();
  } while (leftMs > 0 && !signal.aborted);
  return 'due';
}

function timeAfterPoll(
  options: PollLoopOptions,
  { failures, polledForMs }: { readonly failures: number; readonly polledForMs: number },
): number {
  const { poll, clock } = options;
  const random01 = options.random01();
  const regularMs =
    poll.kind === 'cron'
      ? nextCronTime(poll, options, polledForMs)
      : clock.nowMs() + nextDelay({ ...phaseOf(options, poll.everyMs), failures, random01 });
  if (failures === 0 || options.isAnythingActive()) return regularMs;
  // Retry earlier, because workers wait for a first policy.
  return Math.min(regularMs, notBefore(clock.nowMs() + waitDelayMs({ tries: failures, random01 }), options));
}

function firstTime(options: PollLoopOptions): number {
  const { poll, clock, lastSuccessMs } = options;
  const anythingActive = options.isAnythingActive() ? 'yes' : 'no';
  const nowMs = clock.nowMs();
  if (poll.kind === 'cron')
    return anythingActive === 'no' ? notBefore(nowMs, options) : nextCronTime(poll, options, nowMs);
  const known = lastSuccessMs === undefined ? {} : { lastSuccessMs };
  return firstPollAt({ ...phaseOf(options, poll.everyMs), anythingActive, ...known });
}

function phaseOf(
  options: PollLoopOptions,
  everyMs: number,
): Pick<Parameters<typeof nextDelay>[0], 'nowMs' | 'everyMs' | 'phaseMs' | 'retryAfterUntilMs'> {
  const untilMs = quietUntil(options);
  const common = { nowMs: options.clock.nowMs(), everyMs, phaseMs: phaseMs(options.installId, everyMs) };
  return untilMs === undefined ? common : { ...common, retryAfterUntilMs: untilMs };
}

function nextCronTime(poll: CronPoll, options: PollLoopOptions, afterMs: number): number {
  return notBefore(options.nextCronTime(poll, afterMs), options);
}

function notBefore(atMs: number, options: PollLoopOptions): number {
  return Math.max(atMs, quietUntil(options) ?? 0);
}

/**
 * @returns the stored Retry-After in epoch milliseconds; undefined for none, and for one that is too far ahead. The clock was then
 *   set back, or the interval changed: a host that booted with the year 2036 for a minute must not wait until then
 */
function quietUntil({ retryAfterUntilMs, clock, poll }: PollLoopOptions): number | undefined {
  const untilMs = retryAfterUntilMs();
  const longestMs = longestQuietMs(poll.kind === 'every' ? poll.everyMs : undefined);
  return untilMs === undefined || untilMs > clock.nowMs() + longestMs ? undefined : untilMs;
}

/** Computes the next time with node-cron, which reads the system clock; tests of the loop pass their own function. */
export function cronTimeAfterNow(poll: CronPoll, afterMs: number): number {
  const options = poll.timeZone === undefined ? {} : { timezone: poll.timeZone };
  const task = createTask(poll.expression, () => undefined, options);
  // A timer may fire early: then the first time is that of the last poll. If no time is later than `afterMs`, the clock was set
  // back, and the new time counts.
  const times = task.getNextRuns(2);
  const next = times.find((one) => one.getTime() > afterMs) ?? times.at(-1);
  void task.destroy();
  if (next === undefined) throw new WritError('CONFIG_INVALID', `poll.cron ${poll.expression} never fires`);
  return next.getTime();
}
