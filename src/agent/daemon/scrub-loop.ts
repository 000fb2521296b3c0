// Scrubs the active policy periodically, in the background and at a bounded rate, and scans it for `writ verify`. Schedules only:
// integrity/scrub.ts compares and repairs.
import { isWritError } from '../../core/errors.js';
import { computeScrubDelayMs } from '../../core/status/scrub-state.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import { maxTimerMs } from '../../platform/time/clock.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { boundedPace } from '../../platform/time/rate-limit.js';
import type { Caller } from '../control/control-socket.js';
import { type CycleRunner, requirePresent } from '../cycle/cycle-runner.js';
import { type ScrubResult, scrub } from '../integrity/scrub.js';
import { verifyPolicy } from '../integrity/verify-policy.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { repairNow } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { isStateVanished, requireState, vanishedGapMs } from './vanished-state.js';

export interface ScrubberOptions {
  /** Called before each scan, because a reload may have replaced the host. */
  readonly host: () => Host;
  readonly runner: Pick<CycleRunner, 'preempt' | 'runShort' | 'watch'>;
  /** Called with the result of each complete scan. */
  readonly onScan: (scan: ScrubResult) => void;
  readonly stop: AbortSignal;
}

export interface Scrubber {
  /** Scrubs at its times until the stop request; never rejects. */
  run(): Promise<void>;
  /** Runs `writ verify`. @throws WritError as verifyPolicy; INTERRUPTED if the client disconnects while the request waits */
  verify(
    wanted: { readonly repair: boolean; readonly by: string },
    caller: Pick<Caller, 'onEvent' | 'gone'>,
  ): Promise<VerifyResult>;
  /** Schedules by the new configuration. */
  reloaded(): void;
}

/**
 * @returns a scrubber that scans nothing before `run` or `verify`. It skips scrubs while the state directory has
 * vanished.
 */
export function createScrubber(options: ScrubberOptions): Scrubber {
  const { stop, host } = options;
  let waiting = new AbortController();
  return {
    run: async () => {
      while (!stop.aborted) {
        waiting = new AbortController();
        const { clock } = host();
        using sooner = joinSignals(stop, waiting.signal);
        await clock.sleep(scrubDelayMs(host()), sooner.signal);
        if (stop.aborted || waiting.signal.aborted) continue;
        if (isStateVanished(host())) await clock.sleep(vanishedGapMs, sooner.signal);
        else await scrubOnce(options);
      }
    },
    verify: async ({ repair, by }, caller) => {
      requireState(host());
      const { onScan, runner } = options;
      const { onEvent } = caller;
      const exclusive = unlessClientGone(
        repair ? preemptReporting(runner, onEvent) : runner.runShort,
        caller,
      );
      const asked = { by, repair: repair ? 'yes' : 'no', signal: stop, onEvent } as const;
      return verifyPolicy({ ...asked, host, onScan, exclusive });
    },
    reloaded: () => waiting.abort(),
  };
}

/** Reports the cycle that a repair waits for. */
function preemptReporting(
  { preempt, watch }: ScrubberOptions['runner'],
  onEvent: Caller['onEvent'],
): Exclusive {
  return async (job) => {
    const stopWatching = watch(onEvent);
    return preempt((onJobEvent) => {
      stopWatching();
      return job(onJobEvent);
    });
  };
}

/** Rejects a job of a client that disconnected while it waited, so that no repair begins for it. */
function unlessClientGone(exclusive: Exclusive, { gone }: Pick<Caller, 'gone'>): Exclusive {
  return (job) =>
    exclusive((onJobEvent) => {
      requirePresent([gone]);
      return job(onJobEvent);
    });
}

function scrubDelayMs({ clock, config, ledger }: Host): number {
  const { everyMs } = config.scrub;
  if (everyMs === undefined) return maxTimerMs;
  return computeScrubDelayMs(ledger.read().scrub, { everyMs, nowMs: clock.nowMs() });
}

/** Scrubs once. Logs an error and does not throw it, because the next scrub tries again. */
async function scrubOnce({ host, runner, onScan, stop }: ScrubberOptions): Promise<void> {
  const { clock, config, log } = host();
  const { everyMs, bytesPerSecond } = config.scrub;
  if (everyMs === undefined) return;
  try {
    const scan = await scrub(host, {
      cycle: newCycleId(),
      contents: 'digests',
      pace: boundedPace({ clock, bytesPerSecond, signal: stop }),
      repair: repairNow(host()),
      download: 'yes',
      signal: stop,
      exclusive: runner.preempt,
    });
    log.info({ outcome: scan.outcome, found: scan.damage.length }, 'scanned the policy on disk');
    onScan(scan);
  } catch (error) {
    if (isWritError(error) && error.code === 'INTERRUPTED') return;
    log.error({ err: error }, 'the policy on disk could not be scanned');
    // Wait, so that a disk that cannot be read is not read again at once.
    await clock.sleep(everyMs, stop);
  }
}
